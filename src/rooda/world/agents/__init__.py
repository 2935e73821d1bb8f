"""The agent CLIs that rooda knows: one module per CLI, and the code that reads their output."""
