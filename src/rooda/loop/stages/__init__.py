"""What an iteration does: the stages, in the order of `STAGES` in `loop/iteration.py`."""
