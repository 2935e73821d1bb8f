"""Text, numbers, times, problems, secrets and the base of events. Imports nothing of rooda."""
