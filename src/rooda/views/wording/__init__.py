"""What the views say about a run: sentences, lines, labels, next commands."""
