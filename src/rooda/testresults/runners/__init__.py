"""One module per test runner: what it prints, as rules; `registry.py` lists them."""
