"""What the commands `rooda` and `ralph` share: entry point, errors, flags, resuming."""
