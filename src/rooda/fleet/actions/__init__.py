"""What the user's commands do with runs: add, merge, retry, forget, adopt, look."""
