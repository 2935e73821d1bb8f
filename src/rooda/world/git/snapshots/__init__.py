"""Every state of the work tree, in a private store. `snapshots.py` is the way in."""
