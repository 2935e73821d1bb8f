"""The agent CLIs that we know: how each is started, and how to read what it prints."""
