"""`rooda selftest`: misbehaving agents on the user's own machine, and what rooda did about them."""
