"""Messages to the user when a run ends, fails, waits or is blocked."""
