"""Git, the repository of a run, and its work tree."""
