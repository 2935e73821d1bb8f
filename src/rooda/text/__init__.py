"""Helpers for text, numbers and names, independent of agents, loops and configs."""
