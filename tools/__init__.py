"""Helpers for those who work on rooda."""
