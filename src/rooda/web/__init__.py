"""`rooda web`: a read-only page of all runs of this machine, for the browser of its user."""
