"""Checks before the first agent, which change nothing."""
