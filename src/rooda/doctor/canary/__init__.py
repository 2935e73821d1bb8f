"""`rooda doctor --canary`: run an agent once, for real, and see what it can do."""
