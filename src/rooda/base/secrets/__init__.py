"""Which values and tokens are secrets, and how rooda masks them."""
