"""The loop of a run: pure decisions, the stages of an iteration, typed events."""
