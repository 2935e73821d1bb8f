"""The settings: one row each, with the kind of its value."""
