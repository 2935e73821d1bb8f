"""What the views show of a run: one model, built from the record."""
