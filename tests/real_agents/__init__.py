"""Real agent programs, run through rooda against a scripted API on loopback."""
