"""`rooda demo`: a real loop with a scripted agent, to show how a run works."""
