"""Events and records for people and programs: logs, terminal, session log, record, dry run."""
