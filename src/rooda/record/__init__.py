"""What happened, kept in `.rooda` so that it survives whatever ends a run."""
