"""Every state of the work tree, kept in the user's repository. `series.py` is the way in."""
