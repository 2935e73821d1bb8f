"""How a fleet looks in a terminal: the table, the progress, the words for states."""
