"""Helpers for words, numbers and names; none of them knows agents, loops or configs."""
