"""One iteration while it runs: what is known of it so far."""

import time
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from rooda.loop.events.iteration import StageEntered
from rooda.loop.iteration_facts import IterationFacts
from rooda.loop.outcome import Outcome, Verdict
from rooda.loop.result import Iteration, IterationStatus
from rooda.loop.services import Services
from rooda.loop.session import Response
from rooda.loop.stages import hooks
from rooda.loop.stages.doneness import Answer
from rooda.loop.stages.hooks import HookPayload, Moment
from rooda.loop.stages.promises import Promises
from rooda.loop.state import Limits, State
from rooda.plan.command import Agent
from rooda.plan.plan import CurrentTask, Plan
from rooda.world.agents.agent_report import AgentReport
from rooda.world.agents.failure_kinds import FailureKind
from rooda.world.git.snapshots.tree_changes import Changes, TreeScan
from rooda.world.process.request import ProcessResult
from rooda.world.state.folder import place_of
from rooda.world.state.user_notes import UserNote
from rooda.world.tasks.standing import TaskLedger, TaskStanding
from rooda.world.tasks.task_file import Task
from rooda.world.testresults.census import TestCensus
from rooda.world.testresults.results import TestResults


class IterationContext(Struct):
    """What the stages of one iteration share. Each stage reads it and adds what it learns.

    `facts` are what the record keeps and the views show; the rest ends with the iteration.
    `outcome` is None until something has decided it: the pre hooks, the prompt or the signals.
    """

    plan: Plan
    state: State
    services: Services
    limits: Limits
    iteration: Iteration
    facts: IterationFacts
    task: CurrentTask
    tests: TestResults | None
    census: TestCensus | None  # the tests that the next verify is compared with
    began: float
    outcome: Outcome | None = None
    prompt: bytes = b""
    notes: tuple[UserNote, ...] = ()  # of the user, in the prompt
    is_started: bool = False  # the agent
    agent_started: float = field(default_factory=time.time)
    agent_ms: int = 0
    process: ProcessResult | None = None
    response: Response | None = None
    report: AgentReport | None = None
    seen: TreeScan = field(default_factory=TreeScan)
    promises: Promises = field(default_factory=Promises)
    restored: set[str] = field(default_factory=set)  # protected files that rooda brought back
    violations: dict[str, str] = field(default_factory=dict)  # others, and why they could not be
    feedback: str = ""
    refusal: str = ""  # why nothing of this iteration may leave the work tree
    ledger: TaskLedger = TaskLedger()
    standing: TaskStanding | None = None  # the tasks of the task file, after the agent
    not_done: Answer | None = None  # why a SUCCESS of the agent is refused (`done_when`)
    tasks_before: tuple[Task, ...] = ()  # those in the file before the agent

    @property
    def number(self) -> int:
        """The iteration's number."""
        return self.facts.number

    @property
    def agent(self) -> Agent:
        """The agent that works."""
        return self.plan.agents[self.state.agent]

    @property
    def place(self) -> str:
        """The folder for the files of this iteration, in the state folder."""
        return place_of(self.services.run, self.number, self.state.attempt)

    @property
    def decided(self) -> Outcome:
        """The outcome, once there is one."""
        if self.outcome is None:
            raise AssertionError("no stage has decided the outcome")
        return self.outcome

    @property
    def changed_anything(self) -> bool:
        """Whether the agent changed a file or moved HEAD; true where rooda can't tell."""
        seen = self.seen
        return seen.changes is None or self.changed_files or seen.head_moved

    @property
    def changed_files(self) -> bool:
        """Whether the agent changed a file that rooda has not restored."""
        found = self.seen.changes or Changes()
        names = {*found.created, *found.modified, *found.deleted}
        return not names <= self.restored

    @property
    def failed_before(self) -> tuple[int, ...]:
        """The earlier failed iterations whose work was uncommitted before this one."""
        return tuple(one for one in self.state.uncommitted if one != self.number)

    def learn(self, **facts: Any) -> None:
        """Add facts, by the names of their fields."""
        self.facts = replace(self.facts, **facts)

    def add_feedback(self, words: str) -> None:
        """Add a paragraph to what the next prompt says about this iteration."""
        self.feedback = "\n\n".join(filter(None, (self.feedback, words)))

    def enter(self, status: IterationStatus) -> None:
        """Tell that the iteration has reached a stage."""
        self.learn(status=str(status))
        self.services.emit(StageEntered(self.number, status))

    def others_may_change_files(self) -> None:
        """Changes from here on are not the agent's: look again before the next iteration."""
        if self.services.tracker is not None:
            self.services.tracker.forget()

    def run_hooks(self, moment: Moment, outcome: Outcome | None = None) -> Outcome | None:
        """Run the hooks of a moment; the outcome that they ask for, if they object."""
        self.others_may_change_files()
        status = self.facts.status if outcome is None else str(status_of(outcome))
        payload = HookPayload(self.number, status, self._so_far(outcome))
        return hooks.run(moment, self.plan, self.services, payload)

    def _so_far(self, outcome: Outcome | None) -> dict[str, Any]:
        result = self.facts.result
        return {
            "reason": outcome.explained if outcome else "",
            "kind": outcome.kind if outcome else None,
            "result": result.to_json(output=False) if result else None,
        }


def status_of(outcome: Outcome) -> IterationStatus:
    """How the record calls it."""
    if outcome.skipped:
        return IterationStatus.SKIPPED
    match outcome.verdict:
        case Verdict.CONTINUE | Verdict.COMPLETE:
            return IterationStatus.COMPLETED
        case Verdict.INTERRUPTED | Verdict.LIMITED:
            return IterationStatus.INTERRUPTED
        case Verdict.FAILURE if outcome.kind is FailureKind.TIMEOUT:
            return IterationStatus.TIMED_OUT
        case Verdict.FAILURE | Verdict.ABORT:
            return IterationStatus.FAILED
