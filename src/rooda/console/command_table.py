"""The commands of `rooda`, and what every command gets."""

from collections.abc import Mapping

from msgspec import Struct

from rooda.process.interrupts import Interrupts

# name: (module below rooda.cli.commands, attribute, section of the help)
COMMANDS: Mapping[str, tuple[str, str, str]] = {
    "run": ("run", "run", "Run"),
    "resume": ("run", "resume", "Run"),
    "demo": ("demo", "demo", "Run"),
    "stop": ("follow_stop", "stop", "Run"),
    "follow": ("follow_stop", "follow", "Look"),
    "history": ("records", "history", "Look"),
    "show": ("records", "show", "Look"),
    "why": ("records", "why", "Look"),
    "diff": ("trees", "diff", "Look"),
    "restore": ("trees", "restore", "Run"),
    "list": ("procedures", "list_", "Look"),
    "info": ("procedures", "info", "Look"),
    "init": ("setup", "init", "Set up"),
    "config": ("setup", "group", "Set up"),
    "doctor": ("doctor", "doctor", "Set up"),
    "completion": ("setup", "completion", "Set up"),
    "version": ("setup", "version", "Set up"),
}

# Words that `rooda WORD` does not give to a procedure.
RESERVED = frozenset({*COMMANDS, "help"})

HELP_FLAGS = {"help_option_names": ["-h", "--help"]}


class CliContext(Struct, frozen=True):
    """What commands need of this invocation."""

    interrupts: Interrupts
    arguments: tuple[str, ...]
