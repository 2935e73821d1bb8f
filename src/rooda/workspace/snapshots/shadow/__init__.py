"""A git folder of rooda's own for the user's work tree, and what is done with it."""
