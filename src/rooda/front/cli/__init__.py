"""The command line: thin. Arguments in, exit code out."""
