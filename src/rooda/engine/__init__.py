"""Start a run from a plan: lock, record, services, loop, result; and resume one."""
