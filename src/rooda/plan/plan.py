"""The plan: everything that a run needs to know. A run executes it, the dry run prints it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from rooda.plan.command import Agent
from rooda.plan.prompts.compose import (
    assemble,
    assemble_file,
    check_size,
    feedback_section,
    notes_section,
)
from rooda.plan.prompts.parts import Context, Part, in_sight, size_of
from rooda.plan.resolve import Values
from rooda.plan.settings.flag_names import FlagNames
from rooda.plan.settings.settings import (
    CAPTURE,
    DONE_WHEN,
    ENV,
    MAX_PROMPT_SIZE,
    MIN_FREE_DISK,
    REQUIRED_FILE,
    REQUIRED_MESSAGE,
    SIGNALS_FAILURE,
    SIGNALS_SUCCESS,
)
from rooda.plan.settings.text_kinds import BY_SIGNAL
from rooda.world.agents.facts import passed_on
from rooda.world.files.file_systems import DiskShortage, disk_places, find_shortage
from rooda.world.files.sight import Sight
from rooda.world.state.folder import StateFolder
from rooda.world.state.record_place import RecordPlace
from rooda.world.tasks.task_file import TaskFile
from rooda.world.tools import Tools

if TYPE_CHECKING:
    from rooda.world.sandbox.sandbox_plan import SandboxPlan


class CurrentTask(Struct, frozen=True):
    """The task that an iteration works on, and the specification that it belongs to."""

    task: str = ""
    spec: str = "none"


class TaskSource(Protocol):
    """Tells which task an iteration works on."""

    def now(self) -> CurrentTask:
        """Return the task of the next iteration."""

    def done(self, before: CurrentTask) -> CurrentTask:
        """Return the task that the agent has worked on, after the agent has ended."""

    def in_sight(self, sight: Sight, /) -> "TaskSource":
        """Return the source for an agent that sees only this."""


class FixedTask(Struct, frozen=True):
    """One task for all iterations: rooda knows no more of a procedure than its description."""

    work: CurrentTask

    def now(self) -> CurrentTask:
        """Return the task."""
        return self.work

    def done(self, before: CurrentTask) -> CurrentTask:
        """Return the same task."""
        return before

    def in_sight(self, _sight: Sight, /) -> "FixedTask":
        """Return the same task: it is in no file."""
        return self


class PromptTemplate(Protocol):
    """A prompt that does not consist of the four phases."""

    def in_sight(self, sight: Sight, /) -> "PromptTemplate":
        """Return the template for an agent that sees only this."""

    def read(self, iteration: int, most: int | None = None, /) -> str:
        """Return the prompt of an iteration. Raises PromptError, also beyond `most` bytes."""


class Plan(Struct, frozen=True):
    """Everything that a run needs to know.

    The first of `agents` does the work, the others take over from it. A `template`, or the prompt
    `file` of `rooda loop`, replaces the phases. `notes` are lines for the summary of the session
    log, `tools` are rooda's own programs, `flag_names` are the flags that advice may name.
    `workspace` is the top of the work tree; the user started the run there or in `started_in`, a
    folder below. `state` is the state folder, with the record: `is_apart` if the user chose it
    (`--record`). Without a `sandbox`, programs run as the user; in one, `sight` is what the agent
    can see. `tasks` is the task file, if the run has one.
    """

    procedure: str
    phases: Mapping[str, tuple[Part, ...]]
    contexts: tuple[Context, ...]
    agents: tuple[Agent, ...]
    values: Values
    workspace: Path
    state: StateFolder
    working_dir: Path
    environ: Mapping[str, str]
    work: TaskSource = FixedTask(CurrentTask())
    template: PromptTemplate | None = None
    file: Part | None = None
    mode: str = ""
    notes: tuple[tuple[str, str], ...] = ()
    tools: Tools = field(default_factory=Tools)
    flag_names: FlagNames = FlagNames()
    started_in: Path | None = None
    is_apart: bool = False
    sandbox: "SandboxPlan | None" = None
    sight: Sight | None = None
    tasks: TaskFile | None = None

    @property
    def place(self) -> RecordPlace:
        """The work tree and its state folder."""
        return RecordPlace(self.workspace, self.state)

    def in_sandbox(self, sandbox: "SandboxPlan | None") -> "Plan":
        """Return the plan with a sandbox: no file of the prompt is read out of the agent's sight.

        An agent could make a link, and would find a file of the user in its next prompt.
        """
        if sandbox is None:
            return self
        sight = sandbox.sight()
        return replace(
            self,
            sandbox=sandbox,
            sight=sight,
            phases={
                phase: tuple(in_sight(part, sight) for part in parts)
                for phase, parts in self.phases.items()
            },
            contexts=tuple(in_sight(one, sight) for one in self.contexts),
            file=None if self.file is None else in_sight(self.file, sight),
            template=None if self.template is None else self.template.in_sight(sight),
            work=self.work.in_sight(sight),
        )

    @property
    def agent(self) -> Agent:
        """The agent that does the work."""
        return self.agents[0]

    def writes_to_files(self, agent: Agent) -> bool:
        """Return whether the agent prints to files: a known CLI may exit before a pipe is empty."""
        chosen = self.values[CAPTURE]
        return chosen == "file" or (chosen == "auto" and agent.program.is_known)

    def environ_of(self, agent: Agent) -> Mapping[str, str]:
        """Return the agent's environment, without variables that make it refuse to run."""
        meant: Mapping[str, str | None] = self.values[ENV]
        return passed_on(agent.program.adapter.facts, self.environ, meant)

    def disk_shortage(self) -> DiskShortage | None:
        """Return the disk with too little free space for the next iteration, if there is one."""
        floor = self.values[MIN_FREE_DISK]
        return find_shortage(floor, disk_places(self.working_dir, self.state))

    def missing_file(self) -> str:
        """Return what to say if the required file is missing now; "" if it is there."""
        name = self.values[REQUIRED_FILE]
        if name is None or Path(name).is_file():
            return ""
        return self.values[REQUIRED_MESSAGE] or f"{name} is missing (required_file)"

    def prompt(self, feedback: str = "", iteration: int = 1, notes: Sequence[str] = ()) -> str:
        """Return the prompt of an iteration; reads its files again. Raises PromptError.

        `feedback` is the report on the iteration before, `notes` are those of the user.
        """
        most = self.values[MAX_PROMPT_SIZE]
        if self.template is not None:
            text = self.template.read(iteration, most)
            added = [notes_section(notes)] if notes else []
            if feedback and self.values[DONE_WHEN] != BY_SIGNAL:  # else a retry has the same prompt
                added.append(feedback_section(feedback))
            if added:
                text = "\n\n".join((text.rstrip("\r\n"), *added)) + "\n"
            check_size(size_of(text), most)
            return text
        own = {
            SIGNALS_SUCCESS.default: self.values[SIGNALS_SUCCESS],
            SIGNALS_FAILURE.default: self.values[SIGNALS_FAILURE],
        }
        words = {default: word for default, word in own.items() if default}
        if self.file is not None:
            return assemble_file(self.file, self.contexts, words, feedback, most, notes)
        return assemble(self.phases, self.contexts, words, feedback, most, notes)
