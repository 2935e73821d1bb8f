"""Publishes the work of an iteration: the commit, the push, the user's own command."""
