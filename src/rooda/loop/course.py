"""An iteration on its way."""

from dataclasses import dataclass, field
from typing import Any

from rooda.agents.report import Report
from rooda.config.command import Agent
from rooda.config.plan import Plan
from rooda.config.work import Work
from rooda.iteration.executor import IterationExecutor
from rooda.iteration.types import Iteration, IterationStatus
from rooda.loop import events, hooks
from rooda.loop.edge import Edge
from rooda.loop.hooks import Moment, Story
from rooda.loop.looks import Looks
from rooda.loop.outcome import FailureKind, Outcome, Verdict
from rooda.loop.promises import Promises
from rooda.loop.state import Limits, State
from rooda.process.request import Result
from rooda.workspace.state import place_of


@dataclass(slots=True)
class Course:
    """The iteration, and what is known of it so far."""

    plan: Plan
    limits: Limits
    state: State
    edge: Edge
    executor: IterationExecutor
    looks: Looks
    iteration: Iteration
    turn: int = 0  # which of the plan's agents works
    work: Work = field(default_factory=Work)
    promises: Promises = field(default_factory=Promises)
    process: Result | None = None
    report: Report | None = None
    feedback: str = ""

    @property
    def number(self) -> int:
        """The iteration's number."""
        return self.iteration.number

    @property
    def agent(self) -> Agent:
        """The agent that works."""
        return self.plan.agents[self.turn]

    @property
    def place(self) -> str:
        """The folder for what belongs to it."""
        return place_of(self.edge.run, self.number, self.state.attempt)

    @property
    def changed_anything(self) -> bool:
        """Whether the agent has changed a file or moved HEAD; who can't tell believes it."""
        seen = self.executor.seen
        return seen.changes is None or bool(seen.changes) or seen.head_moved

    def enter(self, status: IterationStatus) -> None:
        """It is at this stage now."""
        self.iteration.status = status
        self.edge.emit(events.StageEntered(self.number, status))

    def others_may_change_files(self) -> None:
        """What comes now is not the agent's doing."""
        if self.edge.tracker is not None:
            self.edge.tracker.forget()

    def hooks(self, moment: Moment, outcome: Outcome | None = None) -> Outcome | None:
        """Run the hooks of a moment; what they object to."""
        if not hooks.are_set(self.plan, moment):
            return None
        self.others_may_change_files()
        status = self.iteration.status if outcome is None else status_of(outcome)
        story = Story(self.number, str(status), self._so_far(outcome))
        return hooks.run(moment, self.plan, self.edge, story)

    def _so_far(self, outcome: Outcome | None) -> dict[str, Any]:
        result = self.iteration.result
        return {
            "reason": outcome.reason if outcome else "",
            "kind": outcome.kind if outcome else None,
            "result": result.to_json() if result else None,
        }


def status_of(outcome: Outcome) -> IterationStatus:
    """How the record calls it."""
    if outcome.skipped:
        return IterationStatus.SKIPPED
    match outcome.verdict:
        case Verdict.SUCCESS | Verdict.DONE:
            return IterationStatus.COMPLETED
        case Verdict.INTERRUPTED | Verdict.LIMITED:
            return IterationStatus.INTERRUPTED
        case Verdict.FAILURE if outcome.kind is FailureKind.TIMEOUT:
            return IterationStatus.TIMED_OUT
        case Verdict.FAILURE | Verdict.ABORT:
            return IterationStatus.FAILED
