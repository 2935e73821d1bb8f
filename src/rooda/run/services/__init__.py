"""What a run has around its loop: record, messages, branch, sandbox, protected files."""
