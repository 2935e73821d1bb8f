"""Small pure helpers for words and numbers; they know nothing of the product."""
