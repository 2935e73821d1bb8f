"""The commands of `rooda`, and what click passes to each of them."""

from collections.abc import Mapping
from typing import NamedTuple

from rooda.world.process.interrupts import Interrupts


class CommandRow(NamedTuple):
    """A command: its module below rooda.front.cli.commands, its name there, its help line."""

    module: str
    attribute: str
    section: str
    help: str


# The help of `rooda` and shell completion read this table alone: it takes long to load every
# command. The formatter would spread each row over six lines.
# fmt: off
COMMANDS: Mapping[str, CommandRow] = {
    "run": CommandRow("run", "run", "Run",
        "Run a procedure until its work is done or a limit is reached."),
    "loop": CommandRow("run", "loop", "Run",
        "Run one prompt file until its work is done or a limit is reached."),
    "resume": CommandRow("run", "resume", "Run",
        "Continue an interrupted run with its flags."),
    "demo": CommandRow("demo", "demo", "Run",
        "Show in ten seconds what a run looks like, with a scripted agent."),
    "fleet": CommandRow("fleet", "group", "Run",
        "Run many tasks at once, each on a branch of its own; without a command: show them."),
    "worker": CommandRow("fleet_run", "worker", "Run",
        "Work on the runs of a fleet, on this machine."),
    "stop": CommandRow("at_work", "stop", "Run",
        "End the run of this work tree after its current iteration."),
    "tell": CommandRow("at_work", "tell", "Run",
        "Write a note for the agent into the next prompt."),
    "follow": CommandRow("at_work", "follow", "Look",
        "Show a run live, until it ends."),
    "watch": CommandRow("watch", "watch", "Look",
        "Show the runs of this machine on the full screen, live."),
    "history": CommandRow("records", "history", "Look",
        "List the runs of this work tree, or of all (--all), newest first."),
    "show": CommandRow("records", "show", "Look",
        "Show a run, or one of its iterations. Without RUN: the last run."),
    "why": CommandRow("records", "why", "Look",
        "Explain which rule ended a run or an iteration, on which evidence."),
    "report": CommandRow("report", "report", "Look",
        "Make one page of a run: outcome, proof, timeline, iterations."),
    "web": CommandRow("web", "web", "Look",
        "Show all runs of this machine in a browser: live, with diffs and reports."),
    "diff": CommandRow("trees", "diff", "Look",
        "Show what a run, or some of its iterations, changed."),
    "restore": CommandRow("trees", "restore", "Run",
        "Restore the work tree as an iteration left it."),
    "record": CommandRow("record", "group", "Look",
        "Show where records are, and move, delete, export or import them."),
    "list": CommandRow("procedures", "list_", "Look",
        "List the procedures, or the aliases of agent commands."),
    "info": CommandRow("procedures", "info", "Look",
        "Show the phases, prompts and settings of a procedure."),
    "init": CommandRow("setup", "init", "Set up",
        "Find agents and tests, and write a commented rooda-config.yml here."),
    "config": CommandRow("setup", "group", "Set up",
        "Show, check and describe the configuration."),
    "doctor": CommandRow("doctor", "doctor", "Set up",
        "Check agents, git, disk and configuration, and advise what to do."),
    "notify": CommandRow("notify", "notify", "Set up",
        "Show where messages about runs go, and when; with --test: send one now."),
    "selftest": CommandRow("selftest", "selftest", "Set up",
        "Let misbehaving agents loose on this machine, and show which promises of rooda hold."),
    "completion": CommandRow("setup", "completion", "Set up",
        "Print the completion script for a shell."),
    "version": CommandRow("setup", "version", "Set up",
        "Show the version."),
}
# fmt: on

# Words that `rooda WORD` does not take as a procedure.
RESERVED = frozenset({*COMMANDS, "help"})

HELP_FLAGS = {"help_option_names": ["-h", "--help"]}


class CliContext(NamedTuple):
    """What click passes to every command: the signal handlers, and the arguments as given."""

    interrupts: Interrupts
    arguments: tuple[str, ...]
