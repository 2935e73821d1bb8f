"""Git as truth and fence: the refs of a run on the remote, and what moves them."""
