"""The folder that a run works in, and what rooda keeps there."""
