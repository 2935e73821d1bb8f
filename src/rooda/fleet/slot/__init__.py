"""A slot: a folder with a clone of its own, in which one run after the other is at work."""
