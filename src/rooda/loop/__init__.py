"""The loop: pure decisions, typed events, and the run itself."""
