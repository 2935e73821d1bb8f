"""What happened, kept in the state folder so that it survives whatever ends a run."""
