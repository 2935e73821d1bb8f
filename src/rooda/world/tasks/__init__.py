"""Task files: the tasks in them, how many are done, and when all of them are."""
