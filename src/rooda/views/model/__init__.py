"""The model of a run that all views show, built from its record."""
