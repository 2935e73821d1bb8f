"""Parsers of the output of test runners, one module per language or family of tools."""
