"""What the user wrote: the tasks of a fleet, from Markdown files or a list."""
