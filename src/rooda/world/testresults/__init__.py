"""Reads test results out of an agent's output: pure functions, bounded, in linear time."""
