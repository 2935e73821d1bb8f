"""Prompts: parts in, one text out. The built-in words are in `builtin/`."""
