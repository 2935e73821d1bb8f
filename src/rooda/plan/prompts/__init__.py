"""Composes the prompt of an iteration from its parts. The built-in texts are in `builtin/`."""
