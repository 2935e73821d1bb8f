"""One run: its lock, record and wiring, its end and its continuation; how others talk to it."""
