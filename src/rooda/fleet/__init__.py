"""Many loops at once, on one machine and on many."""
