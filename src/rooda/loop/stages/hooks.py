"""The user's own commands at certain moments of a run."""

import json
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from msgspec import Struct

from rooda.base.secrets.sensitive import without_secret_values
from rooda.loop.events.work import HookEnded
from rooda.loop.outcome import Outcome, Verdict
from rooda.loop.services import Services
from rooda.plan.plan import Plan
from rooda.plan.settings.feature_kinds import Hook
from rooda.plan.settings.setting import Setting
from rooda.plan.settings.settings import (
    HOOKS_LOOP_END,
    HOOKS_LOOP_START,
    HOOKS_ON_FAILURE,
    HOOKS_ON_WAIT,
    HOOKS_POST_ITERATION,
    HOOKS_PRE_ITERATION,
    KILL_GRACE,
)
from rooda.world.agents.failure_kinds import FailureKind
from rooda.world.tools import Command, Finished

_SHOWN = 64 * 1024


class Moment(StrEnum):
    """When hooks are run."""

    LOOP_START = "loop_start"
    PRE_ITERATION = "pre_iteration"
    POST_ITERATION = "post_iteration"
    ON_FAILURE = "on_failure"
    ON_WAIT = "on_wait"
    LOOP_END = "loop_end"


# The run is over, or may be: these still get a few seconds after max_duration.
_CLOSING = (Moment.POST_ITERATION, Moment.ON_FAILURE, Moment.LOOP_END)
_SETTINGS: Mapping[Moment, Setting[tuple[Hook, ...]]] = {
    Moment.LOOP_START: HOOKS_LOOP_START,
    Moment.PRE_ITERATION: HOOKS_PRE_ITERATION,
    Moment.POST_ITERATION: HOOKS_POST_ITERATION,
    Moment.ON_FAILURE: HOOKS_ON_FAILURE,
    Moment.ON_WAIT: HOOKS_ON_WAIT,
    Moment.LOOP_END: HOOKS_LOOP_END,
}


class HookPayload(Struct, frozen=True):
    """What a hook is told: where the run stands, and more as JSON on its standard input."""

    iteration: int | None
    status: str
    more: Mapping[str, Any]


def are_set(plan: Plan, *moments: Moment) -> bool:
    """Return whether there are hooks for one of these moments."""
    return any(_hooks(plan, moment) for moment in moments)


def run(moment: Moment, plan: Plan, services: Services, story: HookPayload) -> Outcome | None:
    """Run the hooks of a moment, in their order; return the outcome if a hook objects.

    The first hook that objects or is interrupted is the last one. No hook starts after the user
    asked for an end.
    """
    for hook in _hooks(plan, moment):
        if len(services.interrupts.received) > services.interrupts.acknowledged:
            return Outcome(Verdict.INTERRUPTED, reason="interrupted")
        services.note_program()
        finished = services.tools.run(_command(hook, moment, plan, services, story))
        services.emit(_ended(hook, moment, finished))
        objection = judge(hook, moment, finished)
        if objection is not None:
            return objection
    return None


def judge(hook: Hook, moment: Moment, finished: Finished) -> Outcome | None:
    """Return what the end of a hook means for the run. Pure."""
    if finished.was_interrupted:
        return Outcome(Verdict.INTERRUPTED, reason=finished.error)
    if finished.passed or hook.on_error == "ignore":
        return None
    reason = f"the {moment} hook failed: {finished.error}"
    seen = f"{finished.error} from {without_secret_values(hook.command)}"
    skipped = moment is Moment.PRE_ITERATION
    if moment is Moment.LOOP_END:
        return None  # there is nothing left to object to
    if hook.on_error == "abort" or moment is Moment.LOOP_START:
        return Outcome(Verdict.ABORT, FailureKind.HOOK, reason, skipped=skipped, evidence=seen)
    if moment in (Moment.PRE_ITERATION, Moment.POST_ITERATION):
        return Outcome(Verdict.FAILURE, FailureKind.HOOK, reason, skipped=skipped, evidence=seen)
    return None


def _hooks(plan: Plan, moment: Moment) -> tuple[Hook, ...]:
    return plan.values[_SETTINGS[moment]]


def _command(
    hook: Hook, moment: Moment, plan: Plan, services: Services, story: HookPayload
) -> Command:
    number = "" if story.iteration is None else str(story.iteration)
    about = {
        "ROODA_EVENT": str(moment),
        "ROODA_RUN": services.run,
        "ROODA_PROCEDURE": plan.procedure,
        "ROODA_ITERATION": number,
        "ROODA_STATUS": story.status,
    }
    told = {
        "schema_version": 1,
        "event": str(moment),
        "run": services.run,
        "procedure": plan.procedure,
        "workspace": str(plan.workspace),
        "iteration": story.iteration,
        "status": story.status,
        **story.more,
    }
    return Command(
        what=f"{moment} hook",
        argv=services.tools.shell(hook.command),
        cwd=plan.working_dir,
        environ={**plan.environ, **about},
        timeout=hook.timeout,
        stdin=json.dumps(told, default=str).encode() + b"\n",
        kill_grace=plan.values[KILL_GRACE],
        closing=moment in _CLOSING,
        ending=moment is Moment.LOOP_END,
        shown=without_secret_values(hook.command),
    )


def _ended(hook: Hook, moment: Moment, finished: Finished) -> HookEnded:
    return HookEnded(
        hook=str(moment),
        command=without_secret_values(hook.command),
        exit_code=finished.exit_code,
        error=finished.error,
        on_error=hook.on_error,
        duration=finished.duration,
        output=finished.last_words(_SHOWN),
        cleaned_up=finished.cleaned_up,
    )
