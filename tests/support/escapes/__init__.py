"""A hostile agent, which runs as a program of its own in the work tree of a test."""
