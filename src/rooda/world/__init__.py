"""What rooda touches: one package for each."""
