"""`rooda web`: a read-only page with all runs of this machine, for a browser on it."""
