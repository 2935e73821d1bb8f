"""`rooda watch`: a full-screen view of the runs at work on this machine."""
