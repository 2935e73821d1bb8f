"""What the loop uses outside of its own code: listeners, signals, processes, git, clocks."""

import random
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import force_setattr

from rooda.base.event import Event
from rooda.base.secrets.masking import Masker
from rooda.base.times import local_now
from rooda.loop.events.work import CommandOutput, CommandStarted
from rooda.loop.history import IterationHistory
from rooda.loop.next_steps import RunCommands
from rooda.loop.note_delivery import NoteBox
from rooda.loop.tracker import FileChangeTracker
from rooda.world.files.protected_files import ProtectedFiles
from rooda.world.git.noted_files import UserFiles
from rooda.world.git.pin import Pin
from rooda.world.git.snapshots.tree_changes import Halt
from rooda.world.process import events as process
from rooda.world.process.interrupts import Interrupts
from rooda.world.process.request import Listener, ProcessRequest, ProcessResult
from rooda.world.tools import Command, Tools

if TYPE_CHECKING:  # a run without a sandbox does not load it
    from rooda.world.sandbox.sandbox import Sandbox
    from rooda.world.sandbox.tree_check import TreeCheck

Execute = Callable[[ProcessRequest, Interrupts, Listener], ProcessResult]

# Events that concern the whole run, whichever program they happen to.
_PASSED_ON = (
    process.Tick,
    process.InterruptSeen,
    process.MachineSlept,
    process.ProcessPaused,
    process.ProcessResumed,
    process.ProcessSurvived,
    process.ProcessLost,
)


class ReportedTrees(Struct):
    """What the run has already reported about its work tree, so that it reports each thing once."""

    left_out: set[str] = field(default_factory=set)
    not_committed: set[str] = field(default_factory=set)
    trouble: str = ""

    def not_yet(self, names: Iterable[str]) -> set[str]:
        """Return those of the names whose absence from a commit was not reported, and note them."""
        new = set(names) - self.not_committed
        self.not_committed |= new
        return new


class Services(Struct, frozen=True):
    """What a run uses outside of its own code.

    `run` is the run's name. Without a tracker rooda does not know what changed. `tools` runs git
    and the user's own commands; `pin` is the repository that they work in. rooda leaves the
    `user_files` out of commits until they change. `notes` has the user's notes for the next
    prompt. `now` is the wall clock, `rest` lets time pass, `chance` is anything from 0 to 1.
    `commands` are those with which the user resumes the run, if that is possible. `accounts` has
    the account of each agent's command. The run pauses after `pause_after` more iterations. The
    agent, and the commands of the user, run in the `sandbox`, if there is one; `tree_check` then
    looks at what they have left in the work tree. `protected` are the files that the agent may not
    change.
    `masker` removes secrets from texts that are published. `halts` are the times between Ctrl+Z and
    `fg`, in which only the user can change files.
    """

    emit: Callable[[Event], None]
    interrupts: Interrupts
    execute: Execute
    monotonic: Callable[[], float] = time.monotonic
    tick: float | None = None
    run: str = ""
    tracker: FileChangeTracker | None = None
    history: IterationHistory = field(default_factory=IterationHistory)
    now: Callable[[], datetime] = local_now
    rest: Callable[[float], None] = time.sleep
    chance: Callable[[], float] = random.random
    commands: RunCommands | None = None
    reported: ReportedTrees = field(default_factory=ReportedTrees)
    tools: Tools = None  # type: ignore[assignment]  # without any, `execute` runs them
    pin: Pin | None = None
    user_files: UserFiles | None = None
    notes: NoteBox | None = None
    accounts: Mapping[str, str] = field(default_factory=dict)
    pause_after: int | None = None
    sandbox: "Sandbox | None" = None
    tree_check: "TreeCheck | None" = None
    protected: ProtectedFiles | None = None
    masker: Masker = field(default_factory=Masker)
    halts: list[Halt] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Connect the tools to the run: its signals, its live line, its listeners."""
        given: Tools | None = self.tools
        tools = Tools(execute=self.execute) if given is None else given
        tools.interrupts, tools.tick, tools.listener = self.interrupts, self.tick, self._tell
        tools.sandbox = self.sandbox
        force_setattr(self, "tools", tools)

    def note_program(self) -> None:
        """Note that a program runs in the sandbox: the tree needs a check before git uses it."""
        if self.tree_check is not None:
            self.tree_check.is_due = True

    def note_halt(self, event: Event) -> None:
        """Note the time in which a program was halted, if the event ends one."""
        if isinstance(event, process.ProcessResumed):
            self.halts.append(Halt.that_ended(time.time(), event.after))

    def _tell(self, command: Command, event: Event) -> None:
        """Pass on the events of a command that rooda runs itself."""
        self.note_halt(event)
        if isinstance(event, process.ProcessStarted) and command.what:
            self.emit(CommandStarted(command.what, event.pid, event.started, command.shown))
        elif isinstance(event, process.Output) and command.streams:
            self.emit(CommandOutput(event.stream, event.data))
        elif isinstance(event, _PASSED_ON):
            self.emit(event)
