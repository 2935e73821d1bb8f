"""What rooda prints and logs: events, the live line, tables, one run, one iteration."""
