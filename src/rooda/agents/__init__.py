"""The agent CLIs that rooda knows: one module for each, and the code that reads their output."""
