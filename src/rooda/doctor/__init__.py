"""`rooda doctor`: is everything there that a run needs, and how to mend what is not."""
