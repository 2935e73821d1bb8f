"""The report of a run: one HTML page, Markdown, or JSON."""
