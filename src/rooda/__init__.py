"""rooda drives AI coding agents through iterations until the work is done or a limit is reached."""

__version__ = "0.1.0"
PROGRAMS = ("rooda", "ralph")  # the commands that this package installs
