"""`rooda doctor`: checks everything that a run needs, and says how to fix each problem."""
