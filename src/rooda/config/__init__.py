"""Configuration: a table of settings, layers of values that know their origin, one plan."""
