"""What the fleet knows, in one database for all workers: runs, accounts, workers."""
