"""Renderings of one stream of typed events, and of what the reading commands show."""
