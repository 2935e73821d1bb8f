"""The commands of a run: how the user starts it, resumes it, and what to run after its end. Pure.

Commands contain only rooda's own values: names of runs, numbers and files that the user named.
"""

import shlex
from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from rooda import PROGRAMS
from rooda.loop.state import Status
from rooda.loop.stops import NextStep, StopRule

_RUN = "{run}"
_LOOKING = ("rooda show", "rooda report")  # for the runs of every program
ValueOf = Callable[[str], float | None]  # of a limit by its name; None if it is unknown


class NextCommand(Struct, frozen=True):
    """A command that the user may want to run next; made of rooda's own values only."""

    why: str
    command: str


class RunCommands(Struct, frozen=True):
    """The commands with which the user starts a run and resumes it; the record keeps them."""

    start: str = ""  # starts a new run of this kind; version 0.1 did not keep it
    resume: str = f"rooda resume {_RUN}"
    flags: tuple[str, ...] = ()  # of the command that resumes: each raises a limit
    then: str = ""  # usually follows a run that has nothing left to do

    def named(self, run: str) -> "RunCommands":
        """Return the commands of the run with this name."""
        return replace(self, resume=self.resume.replace(_RUN, run))

    @property
    def make_sense(self) -> bool:
        """Whether rooda can have written them: an agent without a sandbox may have changed them."""
        return all(_is_own(text) for text in (self.start, self.resume, self.then) if text)


def flag_of(limit: str) -> str:
    """Return the flag that sets a limit."""
    return f"--{limit.replace('_', '-')}"


LIMIT_FLAGS = tuple(flag_of(rule.row.next.limit) for rule in StopRule if rule.row.next.limit)


def _is_own(text: str) -> bool:
    """Return whether a text is one command of this package, without words for the shell."""
    try:
        words = shlex.split(text)
    except ValueError:
        return False
    is_plain = text.isprintable() and shlex.join(words) == text
    return is_plain and words[0] in PROGRAMS


def earlier_commands(procedure: str, run: str) -> RunCommands:
    """Return the commands of a run in a record that has none: version 0.1 did not keep them.

    A procedure of another program than rooda has the name of the program in front.
    """
    program, _, mode = procedure.partition(" ")
    if program in PROGRAMS and mode.isalpha():
        flags = (flag_of(StopRule.MAX_ITERATIONS.row.next.limit),)
        return RunCommands(procedure, f"{procedure} --resume={run}", flags)
    return RunCommands(flags=LIMIT_FLAGS).named(run)


def resuming(commands: RunCommands, rule: StopRule | None, value_of: ValueOf) -> NextCommand | None:
    """Return the command that resumes a run which this rule ended; None if the run is a success.

    A limit that ended the run is raised.
    """
    if rule is not None and rule.row.status is Status.SUCCESS:
        return None
    step = NextStep() if rule is None else rule.row.next
    return NextCommand(step.why, _raised(commands, step, value_of))


def _raised(commands: RunCommands, step: NextStep, value_of: ValueOf) -> str:
    if not step.limit:
        return commands.resume
    value = value_of(step.limit)
    raised = "MORE" if value is None else step.raised(value)
    if flag_of(step.limit) in commands.flags:
        return f"{commands.resume} {flag_of(step.limit)} {raised}"
    return f"ROODA_LOOP_{step.limit.upper()}={raised} {commands.resume}"


def following(
    commands: RunCommands, rule: StopRule | None, value_of: ValueOf
) -> NextCommand | None:
    """Return the command that the user most likely runs after the end of a run, if there is one."""
    is_done = rule is not None and rule.row.status in (Status.SUCCESS, Status.MAX_ITERS)
    if commands.then and is_done:
        return NextCommand("Do what usually follows", commands.then)
    return resuming(commands, rule, value_of)


def commands_at_end(commands: RunCommands, rule: StopRule, value_of: ValueOf) -> tuple[str, ...]:
    """Return the commands that show a run and continue it."""
    found = following(commands, rule, value_of)
    return (*_LOOKING, found.command) if found else _LOOKING
