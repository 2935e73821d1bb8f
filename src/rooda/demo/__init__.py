"""`rooda demo`: a real loop with a scripted agent, to see what a run looks like."""
