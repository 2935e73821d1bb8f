"""One iteration of the engine, with the canary's errand for a prompt and nothing around it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rooda.agents.report import Report
from rooda.config.command import Agent
from rooda.config.plan import Plan
from rooda.config.resolve import Values
from rooda.doctor.canary.errand import Errand
from rooda.loop.agent_events import AgentSaid
from rooda.loop.events import Event, IterationEnded, PromptFailed
from rooda.loop.iteration import run_iteration
from rooda.loop.promises import Promises
from rooda.loop.services import Services
from rooda.loop.state import State
from rooda.process.events import ProcessEvent
from rooda.process.interrupts import Interrupts
from rooda.process.request import Listener, Request, Result
from rooda.process.run import Runner

_MOST_NOTES = 20

# What belongs to a run and not to its agent, as flags: none of it takes part.
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


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of it. `result_after` is when the agent had reported its result, in seconds."""

    ended: IterationEnded | None = None
    process: Result | None = None
    report: Report | None = None
    promises: Promises = field(default_factory=Promises)
    result_after: float | None = None
    notes: tuple[str, ...] = ()
    trouble: str = ""


@dataclass(slots=True)
class _Ears:
    """Hears what happens, and passes on what a person may want to see."""

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


@dataclass(slots=True)
class _Watched:
    """Runs programs, and notes when one has reported its result."""

    runner: Runner
    result_after: float | None = None

    def __call__(self, request: Request, interrupts: Interrupts, listener: Listener) -> Result:
        now = interrupts.stopwatch.now
        began = now()

        def hear(event: ProcessEvent) -> None:
            listener(event)
            if not request.result_is_in():  # whoever goes on working had none yet
                self.result_after = None
            elif self.result_after is None:
                self.result_after = now() - began

        return self.runner.run(request, interrupts, hear)


def run(
    agent: Agent,
    errand: Errand,
    folder: Path,
    values: Values,
    environ: Mapping[str, str],
    interrupts: Interrupts,
    show: Callable[[AgentSaid], None],
) -> Trial:
    """Run the agent once in the folder, as an iteration of a run would."""
    plan = Plan(
        procedure="canary",
        phases={},
        contexts=(),
        agents=(agent,),
        values=values,
        workspace=folder,
        working_dir=folder,
        environ=environ,
        template=errand,
    )
    ears = _Ears(show)
    name = f"canary-{errand.mark.removeprefix('mark-')}"
    with Runner(name) as runner:
        watched = _Watched(runner)
        services = Services(ears, interrupts, watched, interrupts.stopwatch.now, run=name)
        report = run_iteration(plan, State(), services)
    return Trial(
        ears.ended,
        report.process,
        report.agent,
        report.promises,
        watched.result_after,
        tuple(ears.notes),
        ears.trouble,
    )
