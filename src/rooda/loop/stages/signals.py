"""The stage that reads the agent's signals and decides what the iteration amounts to so far."""

from collections.abc import Collection

from msgspec.structs import replace

from rooda.base.controls import clean
from rooda.loop.context import IterationContext
from rooda.loop.events.iteration import OutputTruncated, SignalsScanned
from rooda.loop.outcome import CUT_OFF, Outcome, judge, without_stand_in
from rooda.loop.stages.promises import Promises, Prompt, Words, scan
from rooda.plan.settings.settings import (
    IGNORE_EXIT_STATUS,
    MAX_OUTPUT_BUFFER,
    SIGNALS_FAILURE,
    SIGNALS_MATCH,
    SIGNALS_STREAMS,
    SIGNALS_SUCCESS,
)
from rooda.world.agents.failure_kinds import FailureKind
from rooda.world.process.exits import describe
from rooda.world.process.request import ProcessResult

_LAST_WORDS = 4096  # bytes of standard error
_LONGEST_DETAIL = 300  # characters


def read_signals(context: IterationContext) -> None:
    """Look for signals in the agent's own words, and judge how the agent ended."""
    result = context.process
    if result is None:
        return
    context.promises = _scan(context, result)
    context.learn(signal=_word_said(context))
    outcome = judge(
        result.exit,
        context.promises,
        context.report,
        changed=context.changed_anything,
        ignore_exit_status=context.plan.values[IGNORE_EXIT_STATUS],
    )
    outcome = replace(outcome, detail=_detail(outcome, context.promises, result))
    context.outcome = without_stand_in(outcome) if context.state.agent > 0 else outcome


def _word_said(context: IterationContext) -> str | None:
    """Return the agent's signal, in the words of the settings."""
    values, promises = context.plan.values, context.promises
    if promises.failure:
        return values[SIGNALS_FAILURE]
    return values[SIGNALS_SUCCESS] if promises.success else None


def _detail(outcome: Outcome, promises: Promises, result: ProcessResult) -> str:
    """Return what the agent says about a failure: before its signal, or last on standard error."""
    if outcome.kind is FailureKind.SIGNAL:
        return promises.blocked
    if outcome.kind is not FailureKind.EXIT or outcome.reason != describe(result.exit):
        return ""  # a known CLI has said more
    text = clean(result.stderr.tail[-_LAST_WORDS:].decode("utf-8", "replace"))
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    return lines[-1][-_LONGEST_DETAIL:] if lines else ""


def _scan(context: IterationContext, result: ProcessResult) -> Promises:
    """Look for signals on each stream, each on its own."""
    values, services, number = context.plan.values, context.services, context.number
    streams = values[SIGNALS_STREAMS]
    words = Words(
        values[SIGNALS_SUCCESS],
        values[SIGNALS_FAILURE],
        last_line_only=values[SIGNALS_MATCH] == "last-line",
    )
    prepared, promises = Prompt(context.prompt), Promises()
    heard = _heard(context, streams)
    for name, stream in (("stdout", result.stdout), ("stderr", result.stderr)):
        if stream.truncated:
            limit = values[MAX_OUTPUT_BUFFER]
            services.emit(OutputTruncated(number, name, stream.total, limit))
        if name in heard:
            promises |= scan(stream.tail, words, prepared, truncated=stream.truncated)
    if context.report is not None and context.report.speaks_events and streams != "stderr":
        spoken, truncated = context.report.spoken, context.report.truncated
        promises |= scan(spoken, words, prepared, truncated=truncated)
    believed = not isinstance(result.exit, CUT_OFF)
    services.emit(SignalsScanned(number, promises.success, promises.failure, believed))
    return promises


def _heard(context: IterationContext, streams: str) -> Collection[str]:
    """The streams on which the agent itself may speak, of those that the policy listens to.

    A known CLI that prints events speaks in them alone; as text most have their tools' output, or
    the prompt, on standard error.
    """
    wanted = {"stdout", "stderr"} if streams == "both" else {streams}
    report = context.report
    if report is None or report.is_mute:
        return wanted
    if report.speaks_events:
        return wanted if streams == "stderr" else ()
    on_stderr = context.agent.program.adapter.facts.speaks_on_stderr or streams == "stderr"
    return wanted if on_stderr else wanted - {"stderr"}
