"""A trial of an agent: the task, a scratch repository, and one iteration of the engine."""

import secrets
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from msgspec import Struct, field

from rooda.base.event import Event
from rooda.loop.events.agent import AgentSaid
from rooda.loop.events.iteration import IterationEnded, PromptFailed
from rooda.loop.iteration import IterationReport, run_iteration
from rooda.loop.services import Execute, Services
from rooda.loop.stages.promises import Promises
from rooda.loop.state import State
from rooda.loop.tracker import FileChangeTracker
from rooda.plan.command import Agent
from rooda.plan.plan import Plan
from rooda.plan.prompts.compose import promise_tag
from rooda.plan.resolve import Values
from rooda.world.agents.agent_report import AgentReport
from rooda.world.files.plain_files import read_plain_file
from rooda.world.files.sight import Sight
from rooda.world.git.git import Git, GitError
from rooda.world.process.interrupts import Interrupts
from rooda.world.process.request import Listener, ProcessRequest, ProcessResult
from rooda.world.process.runner import Runner
from rooda.world.state.folder import StateFolder
from rooda.world.tools import Tools

# Runs one iteration of a plan alone: without a lock, a record and views.


def run_once(
    plan: Plan,
    name: str,
    interrupts: Interrupts,
    emit: Callable[[Event], None],
    wrap: Callable[[Execute], Execute] = lambda execute: execute,
) -> IterationReport:
    """Run the first iteration of the plan under this name, and return its report.

    `emit` gets every event. `wrap` may replace the function that runs the programs.
    """
    with Runner(name) as runner:
        services = Services(
            emit,
            interrupts,
            wrap(runner.run),
            interrupts.stopwatch.now,
            run=name,
            tracker=FileChangeTracker(plan.workspace, plan.tools, state=plan.state),
        )
        return run_iteration(plan, State(), services)


# -- the task --------------------------------------------------------------------------------

WRITTEN, COMMANDED = "canary-written.txt", "canary-command.txt"
_PROMPT_SIZE = 20_000  # bytes, more than fits into a line buffer
_POLYNOMIAL = 0x04C11DB7
_TOP_BIT, _ALL_BITS = 0x80000000, 0xFFFFFFFF

_PROMPT = """\
This is a test of the command that starts you, in an empty repository. Do these four things, one
after the other, and nothing else. No user is there to answer a question.

1. Write a file named {written} in the current folder with your own tool for writing files, not
   with a shell command. Its only content is this word:
   {word}
2. Run this shell command, exactly as it is:
   {command}
3. This prompt is long on purpose, and its very last line is a mark. Repeat that mark in your
   answer, exactly as it is. It begins with `mark-`.
4. When all of this is done, end your answer with this on a line of its own: {tag}

If you are not allowed to do one of them, say which one and why, and do the others all the same.

What follows has no meaning. It only makes the prompt long.

"""
_FILLER = "Line {number}: nothing to do here, the mark is on the very last line of this prompt.\n"


class CanaryTask(Struct, frozen=True):
    """The task for the agent, with random words, so that it cannot succeed by chance."""

    word: str
    seed: str
    mark: str
    signal: str

    @classmethod
    def new(cls, signal: str) -> "CanaryTask":
        """Return a new task; `signal` is the success signal."""
        word, seed, mark = (secrets.token_hex(8) for _ in range(3))
        return cls(word, seed, f"mark-{mark}", signal)

    @property
    def command(self) -> str:
        """The shell command to run. It prints a checksum, which a model cannot guess."""
        return f"printf %s {self.seed} | cksum > {COMMANDED}"

    def prompt(self) -> str:
        """Return the prompt, with the mark on its last line."""
        tag = promise_tag(self.signal)
        text = _PROMPT.format(written=WRITTEN, word=self.word, command=self.command, tag=tag)
        number = 0
        while len(text) < _PROMPT_SIZE:
            number += 1
            text += _FILLER.format(number=number)
        return f"{text}{self.mark}\n"

    def read(self, _iteration: int, _most: int | None = None, /) -> str:
        """Return the prompt; this makes the task the template of a plan."""
        return self.prompt()

    def in_sight(self, _sight: Sight, /) -> "CanaryTask":
        """Return the same task: it is read from no file."""
        return self

    def is_written(self, content: bytes) -> bool:
        """Return whether the content is the word that the agent had to write."""
        return content.strip() == self.word.encode()

    def is_commanded(self, content: bytes) -> bool:
        """Return whether the content is the output of the command."""
        return content.split()[:1] == [str(cksum(self.seed.encode())).encode()]

    def is_repeated(self, answer: bytes) -> bool:
        """Return whether the agent's answer contains the mark."""
        return self.mark.encode() in answer


def cksum(data: bytes) -> int:
    """Return the checksum that the POSIX command `cksum` prints."""
    size = len(data)
    length = size.to_bytes((size.bit_length() + 7) // 8, "little")
    crc = 0
    for byte in data + length:
        crc ^= byte << 24
        for _ in range(8):
            crc = (crc << 1) ^ (_POLYNOMIAL if crc & _TOP_BIT else 0)
            crc &= _ALL_BITS
    return crc ^ _ALL_BITS


# -- the scratch repository ------------------------------------------------------------------

_README = "# A scratch repository\n\nrooda made it to try an agent, and deletes it afterwards.\n"
_LARGEST_FILE = 4096  # bytes to read of a file that the agent wrote
# The user's git settings must not make the first commit fail.
_GIT_SETTINGS = {"commit.gpgSign": "false", "init.defaultBranch": "main"}


class ScratchRepository:
    """A temporary folder, and a git repository if git works.

    `trouble` is the reason why the folder is not a repository.
    """

    def __init__(self, tools: Tools) -> None:
        """Create the folder. Raises OSError, for example if the disk is full."""
        self.around = Path(tempfile.mkdtemp(prefix="rooda-canary-")).resolve()
        self.folder = self.around / "work"
        self.trouble = ""
        try:
            self.folder.mkdir()
            (self.folder / "README.md").write_text(_README, encoding="utf-8")
            git = Git(self.folder, tools, settings=_GIT_SETTINGS)
            git("init", "-q")
            git("add", "-A")
            git("commit", "-q", "-m", "A scratch repository")
        except GitError as error:
            self.trouble = str(error)
        except OSError:
            self.remove()
            raise

    def read(self, name: str) -> bytes | None:
        """Return the beginning of a file, or None if it is missing or not a regular file."""
        try:
            return read_plain_file(self.folder / name, _LARGEST_FILE)
        except OSError:
            return None

    def remove(self) -> None:
        """Delete the folder, and the one of the record beside it."""
        shutil.rmtree(self.around, ignore_errors=True)


# -- one iteration ---------------------------------------------------------------------------

_MOST_NOTES = 20

# Flags that turn off the settings of a run that must not apply to a trial.
OFF: Mapping[str, tuple[str, str]] = {
    key: ("--canary", value)
    for key, value in {
        "ai_cmd_fallbacks": "none",
        "verify.command": "none",
        "git.commit": "false",
        "git.push": "false",
        "git.require_changes": "false",
        "hooks.pre_iteration": "none",
        "hooks.post_iteration": "none",
        "hooks.on_failure": "none",
        "ignore_exit_status": "false",
        "parse_tests": "false",
        "max_duration": "none",
    }.items()
}


class TrialResult(Struct, frozen=True):
    """The engine's report of the iteration.

    `result_after` is the number of seconds from the start to the result of the agent.
    `trouble` is the reason why the prompt could not be written.
    """

    ended: IterationEnded | None = None
    process: ProcessResult | None = None
    report: AgentReport | None = None
    promises: Promises = field(default_factory=Promises)
    result_after: float | None = None
    notes: tuple[str, ...] = ()
    trouble: str = ""


class _TrialListener(Struct):
    """Collects the events of the iteration, and shows the agent's readable lines."""

    show: Callable[[AgentSaid], None]
    ended: IterationEnded | None = None
    notes: list[str] = field(default_factory=list)
    trouble: str = ""

    def __call__(self, event: Event) -> None:
        match event:
            case AgentSaid(kind=kind, text=text):
                self.show(event)
                if kind == "note" and len(self.notes) < _MOST_NOTES:
                    self.notes.append(text)
            case IterationEnded():
                self.ended = event
            case PromptFailed(error=error):
                self.trouble = error


class _ResultTimer(Struct):
    """Measures the time from the agent's start to its result."""

    result_after: float | None = None

    def wrap(self, execute: Execute) -> Execute:
        """Return `execute` with the measurement added."""

        def run(
            request: ProcessRequest, interrupts: Interrupts, listener: Listener
        ) -> ProcessResult:
            now = interrupts.stopwatch.now
            started_at = now()

            def on_event(event: Event) -> None:
                listener(event)
                if not request.result_is_in():  # the agent continued after its result
                    self.result_after = None
                elif self.result_after is None:
                    self.result_after = now() - started_at

            return execute(request, interrupts, on_event)

        return run


def run_trial(
    agent: Agent,
    task: CanaryTask,
    folder: Path,
    values: Values,
    environ: Mapping[str, str],
    interrupts: Interrupts,
    show: Callable[[AgentSaid], None],
) -> TrialResult:
    """Run the agent once in the folder, in the same way as an iteration of a run."""
    plan = Plan(
        procedure="canary",
        phases={},
        contexts=(),
        agents=(agent,),
        values=values,
        workspace=folder,
        state=StateFolder(folder.parent / "record"),
        working_dir=folder,
        environ=environ,
        template=task,
    )
    listener, timer = _TrialListener(show), _ResultTimer()
    name = f"canary-{task.mark.removeprefix('mark-')}"
    report = run_once(plan, name, interrupts, listener, timer.wrap)
    return TrialResult(
        listener.ended,
        report.process,
        report.agent,
        report.promises,
        timer.result_after,
        tuple(listener.notes),
        listener.trouble,
    )
