"""The plan: everything that a run needs to know. A run executes it, the dry run prints it."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct, field

from rooda.agents.facts import passed_on
from rooda.config.command import Agent
from rooda.config.flag_names import FlagNames
from rooda.config.resolve import Values
from rooda.config.settings import (
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
from rooda.config.text_kinds import BY_SIGNAL
from rooda.prompts.compose import (
    assemble,
    assemble_file,
    check_size,
    feedback_section,
    notes_section,
)
from rooda.prompts.parts import Context, FilePart, Part, PromptError, size_of
from rooda.tasks.task_file import TaskFile
from rooda.workspace.free_space import DiskShortage, disk_places, find_shortage
from rooda.workspace.real_folders import leads_out
from rooda.workspace.state_folder import STATE_FOLDER
from rooda.workspace.tools import Tools

if TYPE_CHECKING:
    from rooda.sandbox.sandbox_plan import SandboxPlan


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


class FixedTask(Struct, frozen=True):
    """One task for all iterations: rooda knows no more of a procedure than its description."""

    work: CurrentTask

    def now(self) -> CurrentTask:
        """Return the task."""
        return self.work

    def done(self, before: CurrentTask) -> CurrentTask:
        """Return the same task."""
        return before


class PromptTemplate(Protocol):
    """A prompt that does not consist of the four phases."""

    @property
    def files(self) -> Sequence[FilePart]:
        """The files that it is read from."""

    def read(self, iteration: int, most: int | None = None, /) -> str:
        """Return the prompt of an iteration. Raises PromptError, also beyond `most` bytes."""


class Plan(Struct, frozen=True):
    """Everything that a run needs to know.

    The first of `agents` does the work, the others take over from it. A `template`, or the prompt
    `file` of `rooda loop`, replaces the phases. `notes` are lines for the summary of the session
    log, `tools` are rooda's own programs, `flag_names` are the flags that advice may name.
    `workspace` has the record; the user started the run there or in `started_in`, a folder below.
    If the record is apart (`--record`), `project` is the folder that would have had it. Without a
    `sandbox`, programs run as the user. `tasks` is the task file, if the run has one.
    """

    procedure: str
    phases: Mapping[str, tuple[Part, ...]]
    contexts: tuple[Context, ...]
    agents: tuple[Agent, ...]
    values: Values
    workspace: Path
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
    project: Path | None = None
    sandbox: "SandboxPlan | None" = None
    tasks: TaskFile | None = None

    @property
    def root(self) -> Path:
        """The folder of the work: the workspace, unless the record is apart from it."""
        return self.project or self.workspace

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
        return find_shortage(floor, disk_places(self.working_dir, self.workspace))

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
        self._check_links()
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

    def _check_links(self) -> None:
        """Raise PromptError for a file behind a link that leads out of the sandbox.

        An agent can make such a link, and would find a file of the user in its next prompt.
        """
        if self.sandbox is None:
            return
        box, own = self.sandbox, self.workspace.resolve() / STATE_FOLDER
        inside = (box.tree, *box.writable, *box.real_writable)
        visible = (*box.readable, *box.real_readable)
        for file in self._files():
            target = leads_out(file.path, inside, visible)
            # `resolve` raises an error for links in a circle; reading the file reports them.
            real = Path(os.path.realpath(file.path))
            if target is None and real.is_relative_to(own):
                target = real
            if target is not None:
                raise PromptError(
                    f"{file.shown} leads to {target}, which the sandbox does not show",
                    hint="Remove the link and put the file itself there. Or, if the link is yours: "
                    "name the file itself, or add it to sandbox.readable",
                )

    def _files(self) -> Iterator[FilePart]:
        """Yield the files of the prompt."""
        parts = [part for parts in self.phases.values() for part in parts]
        parts += [] if self.file is None else [self.file]
        sources = [*(part.source for part in parts), *(one.source for one in self.contexts)]
        sources += [] if self.template is None else self.template.files
        yield from (source for source in sources if isinstance(source, FilePart))
