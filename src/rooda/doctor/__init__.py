"""`rooda doctor`: check everything that a run needs, and say how to correct what is wrong."""
