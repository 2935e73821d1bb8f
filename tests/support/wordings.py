"""What every view prints for a stop rule, for a kind of wait, and for a kind of failure.

Golden files pin these texts (`tests/corpus/wordings/`).
"""

import html
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec import to_builtins
from msgspec.structs import replace

from rooda.base.colors import Color, Painter
from rooda.base.event import Event
from rooda.front.watch.run_head import head_text
from rooda.loop import failure
from rooda.loop.events.agent import StillWaiting, WaitStarted
from rooda.loop.events.iteration import IterationEnded
from rooda.loop.events.run import RunEnded
from rooda.loop.next_steps import LIMIT_FLAGS, RunCommands, commands_at_end, resuming
from rooda.loop.outcome import Outcome, Verdict
from rooda.loop.result import IterationStatus
from rooda.loop.state import Status
from rooda.loop.stops import StopRule
from rooda.loop.wait_kinds import WaitKind
from rooda.record.rows import IterationRow, RecordedSetting, RecordedWait, RunRow
from rooda.views.messages.message import (
    Message,
    Named,
    blocked_message,
    end_message,
    failure_message,
    waiting_message,
)
from rooda.views.model.brief import brief_of
from rooda.views.model.build import summarize
from rooda.views.model.summary import RunSummary
from rooda.views.report.details import DetailReader
from rooda.views.report.markdown_report import markdown
from rooda.views.report.page import page
from rooda.views.terminal import why
from rooda.views.terminal.iteration_view import iteration_text
from rooda.views.terminal.run_view import Page, run_text, runs_text
from rooda.views.terminal.session_log import SessionLog
from rooda.views.wording.sentences import title_of, what_failed
from rooda.views.wording.words import AgentWords
from rooda.world.agents.failure_kinds import FailureKind, Reaction
from rooda.world.process.capture.buffers import Captured
from rooda.world.process.exits import Exited
from rooda.world.process.request import ProcessResult
from support.happenings import ENDED, ended, stamped, with_facts, written
from support.nights import RUN, STEP, at, failed, iteration, night
from support.states import record_at

Views = Iterator[tuple[str, str]]  # the name of a view, and what it prints

_NOW = datetime.fromisoformat(at(5 * STEP))
_NAMED = Named("tabq", "build", RUN, f"rooda resume {RUN}")
_PAINTED = Page(paint=Painter(is_on=True))
_LIMITS = (
    RecordedSetting("loop.default_max_iterations", "40", "built-in"),
    RecordedSetting("loop.failure_threshold", "3", "built-in"),
    RecordedSetting("loop.max_cost", "$5.00", "cli: --max-cost"),
    RecordedSetting("loop.max_duration", "28800s", "cli: --max-duration"),
    RecordedSetting("loop.max_tokens", "1000000", "cli: --max-tokens"),
)


def golden(views: Views) -> str:
    """Return what the views print as a part of a golden file, with colors as words."""
    parts = [f"-- {name}\n{_plain(text)}" for name, text in views]
    return "\n".join(part.rstrip("\n") for part in parts) + "\n"


def _plain(text: str) -> str:
    for color in Color:
        text = text.replace(color, f"{{{color.name.lower()}}}")
    return text.replace("\x1b[0m", "{}")


def _logs(event: Event, *forms: str) -> Views:
    for form in forms or ("text", "logfmt"):
        yield f"log, {form}", written(form, ("10:02:16", event))
    yield "color in the terminal", "" if event.tone is None else event.tone.name.lower()


def _message(message: Message) -> str:
    return f"[{message.kind}] {message.title}\n{message.body}"


def _session(*events: Event) -> str:
    written_lines: list[str] = []
    log = SessionLog(written_lines.append)
    for event in events:
        log(stamped("10:02:16", event))
    return "".join(written_lines)


def _parts(text: str, *beginnings: str) -> str:
    """Return the lines that begin with one of these words."""
    return "\n".join(one for one in text.splitlines() if _plain(one).startswith(beginnings))


def _history(row: RunRow) -> str:
    """Return the line of a run in the list of runs."""
    text = runs_text([brief_of(row, "Wrote the parser", _NOW)], _PAINTED)
    return text.splitlines()[-1].partition("build  ")[2]


def _html(run: RunSummary, tree: Path) -> str:
    """Return the words of the head of the page, of its waits, and of the timeline."""
    # Without trees the page has no diffs, for which it would ask git.
    without = replace(
        run, iterations=tuple(replace(one, tree_before=None) for one in run.iterations)
    )
    whole = "".join(page(without, DetailReader(record_at(tree))))
    (head,) = re.findall(r'<h1 id="h" class="\w+">', whole)
    facts = whole[whole.index(head) : whole.index('<dl class="stats">')]
    waits = re.findall(r"[^<>]*waited [^<>]*", whole)
    labels = re.findall(r"<text[^>]*>([^<]*[a-z]{2}[^<]*)</text>", whole)
    hint = re.findall(r'id="hn">.*?<p[^>]*>(.*?)</p>', whole)
    return "\n".join((head, _words(facts), *hint, *waits, *dict.fromkeys(labels)))


def _words(page_part: str) -> str:
    text = html.unescape(re.sub(r"<[^>]+>", " ", re.sub(r"<svg.*?</svg>", "", page_part)))
    return " ".join(text.split())


# -- stop rules ----------------------------------------------------------------------------------


def end_of(rule: StopRule, **more: Any) -> RunEnded:
    """Return the end of a run of three iterations that this rule ended."""
    is_counted = rule.row.status is Status.ABORTED
    usual: dict[str, Any] = {
        "status": str(rule.row.status),
        "rule": str(rule),
        "reason": "" if rule.row.reason else "why the rule held",
        "consecutive_failures": 3 if is_counted else 0,
        "promise_signal": "SUCCESS" if rule.row.is_claim and rule.row.is_good else None,
        "signal": "SIGINT" if rule is StopRule.INTERRUPTED else None,
        "max_iterations": 40,
    }
    return with_facts(ENDED, **(usual | more))


_ROODA = RunCommands("rooda build", flags=LIMIT_FLAGS).named(RUN)
_RALPH = RunCommands("ralph build", f"ralph build --resume={RUN}", ("--max-iterations",))
_VALUES = {"max_iterations": 40.0, "max_cost": 5.0, "max_duration": 28800.0, "max_tokens": 1e6}


def of_rule(rule: StopRule, tree: Path) -> Views:
    """Yield what the views print at the end of a run, and of its record."""
    event = end_of(rule)
    for commands in (_ROODA, _RALPH):
        resumed = resuming(commands, rule, _VALUES.get)
        with_commands = replace(
            event,
            resume=resumed.command if resumed else "",
            next_commands=commands_at_end(commands, rule, _VALUES.get),
        )
        if commands is _ROODA:
            yield from _logs(with_commands, "text", "logfmt", "json")
        yield "next at the end", f"{with_commands.resume}\n{with_commands.as_text()[-80:]}"
    last_failure = ended(2, 40, 5.0, Verdict.FAILURE, reason="exit code 1", kind="exit")
    yield "session log", _parts(_session(last_failure, event), "Exit Reason")
    row = night(
        status=str(event.status),
        rule=str(rule),
        reason=event.why("exit code 1"),
        signal=event.facts.signal,
        consecutive_failures=event.facts.consecutive_failures,
        threshold=3,
        settings=_LIMITS,
    )
    yield "reason in the record", row.reason or ""
    rows = [iteration(1), _last(event)]
    ralph = replace(row, procedure="ralph build")
    yield "next in a record of ralph", summarize(ralph, rows, _NOW).next_commands[0].command
    run = summarize(row, rows, _NOW)
    yield "show", _head_and_next("".join(run_text(row, run, _PAINTED)))
    yield "watch", "\n".join(head_text(run, 200, 40, Painter(is_on=True)).splitlines()[:2])
    yield "report", _html(run, tree)
    yield "markdown", _parts("".join(markdown(run)), "# ", "- **Rule", "rooda resume")
    yield "json", str({key: to_builtins(getattr(run, key)) for key in _IN_JSON})
    yield "why", why.of_run(row, rows[-1], None).partition("\n\n")[0]
    yield "settings", why.of_run(row, None, None).partition("\nLimits")[2]
    yield "history", _history(row)
    yield "message", _message(end_message(_NAMED, event, run))
    yield "message without a record", _message(end_message(_NAMED, event, None))


_IN_JSON = ("rule", "rule_text", "reason", "next_hint")


def _head_and_next(text: str) -> str:
    """Return how the run ended, and the first commands to run next."""
    lines = text.splitlines()
    begin = next(place for place, line in enumerate(lines) if "Next" in line)
    return "\n".join((*lines[:2], *lines[begin : begin + 3]))


def _last(event: RunEnded) -> IterationRow:
    """Return the last iteration of the run: it failed if the run was aborted."""
    if event.status is not Status.ABORTED:
        return iteration(2, signal=event.promise_signal, verdict="success")
    return failed(2, "exit", "exit code 1", verify=None)


# -- waits ---------------------------------------------------------------------------------------


def _wait(kind: WaitKind, **more: Any) -> WaitStarted:
    what = {WaitKind.BACKOFF: "startup", WaitKind.DISK: "the work tree"}.get(kind, "claude")
    usual: dict[str, Any] = {
        "iteration": 2,
        "kind": kind,
        "what": what,
        "reason": "why the run waits",
        "until": datetime(2026, 3, 2, 3, 0, tzinfo=UTC),
        "seconds": 14400.0,
        "tries": 1,
        "known": kind is WaitKind.BACKOFF,
        "outage": "offline" if kind is WaitKind.OUTAGE else "",
        "lasted": 75.0 if kind is WaitKind.OUTAGE else None,
    }
    return WaitStarted(**(usual | more))


def of_wait(kind: WaitKind, tree: Path) -> Views:
    """Yield what the views print while a run waits, and after it."""
    yield from _logs(_wait(kind), "text", "logfmt", "json")
    yield from _logs(_wait(kind, known=True, capped=True))
    yield from _logs(StillWaiting(2, kind, 600.0))
    yield "live line", _live(_wait(kind))
    yield "message", _message(waiting_message(_NAMED, _wait(kind), 0))
    event = _wait(kind)
    wait = RecordedWait(
        iteration=2,
        kind=str(kind),
        what=event.what,
        reason=event.reason,
        until=at(1000),
        seconds=300.0,
        outage=event.outage,
        lasted=event.lasted,
        started_at=at(700),
    )
    rows = [iteration(1), iteration(2, started_at=at(1000), ended_at=at(1560))]
    waiting = night(status="running", rule=None, ended_at=None, waits=(wait,))
    run = summarize(waiting, rows, _NOW)
    yield (
        "show, waiting",
        _parts("".join(run_text(waiting, run, _PAINTED)), "The run", "{quiet}Waited"),
    )
    yield "why, waiting", why.of_run(waiting, None, None)
    yield "history, waiting", _history(waiting)
    later = replace(wait, waited=300.0)
    row = night(waits=(later, replace(later, lasted=event.lasted and 400.0)), ended_at=at(2000))
    run = summarize(row, rows, _NOW)
    yield "show", _parts("".join(run_text(row, run, _PAINTED)), "{quiet}Time", "{quiet}Waited")
    yield "why", _parts(why.of_run(row, None, None), "Waited")
    yield "report", _html(run, tree)
    lines = "".join(markdown(run)).splitlines()
    yield "markdown", "\n".join(one for one in lines if "wait" in one)
    yield "json", f"{[to_builtins(one) for one in run.spans]} {to_builtins(run.times)}"


def _live(event: WaitStarted) -> str:
    return f"{event.kind.row.until} {event.target()}"


# -- failures ------------------------------------------------------------------------------------

_VERDICTS = {
    Reaction.LIMIT: (Verdict.LIMITED, IterationStatus.INTERRUPTED),
    Reaction.OUTAGE: (Verdict.LIMITED, IterationStatus.INTERRUPTED),
    Reaction.ABORT: (Verdict.ABORT, IterationStatus.FAILED),
    Reaction.NEVER_RAN: (Verdict.ABORT, IterationStatus.FAILED),
}


def failed_iteration(kind: FailureKind) -> IterationEnded:
    """Return the end of an iteration that failed in this way."""
    usual = (Verdict.FAILURE, IterationStatus.FAILED)
    verdict, status = _VERDICTS.get(kind.row.reaction, usual)
    captured = Captured(b"the output", b"the output", 10)
    result = ProcessResult(Exited(1), captured, Captured(b"", b"", 0), 5.0)
    outcome = Outcome(verdict, kind, "why it failed")
    word = "FAILURE" if kind is FailureKind.SIGNAL else None
    context = failure.context("agent --flag", outcome, result, word)
    return ended(
        *(2, 40, 5.0, verdict),
        failure=None if verdict is Verdict.LIMITED else context,
        status=str(status),
        kind=str(kind),
        reason=outcome.reason,
        evidence="what decided",
        agent="claude",
        failures_after=1,
        signal=word,
    )


def of_failure(kind: FailureKind, _: Path) -> Views:
    """Yield what the views print when an iteration fails, and of its record."""
    event = failed_iteration(kind)
    yield from _logs(event)
    yield "session log", _session(event).partition("-" * 80)[0]
    yield "message", _message(failure_message(_NAMED, event, 0))
    yield "message, blocked", _message(blocked_message(_NAMED, event, 0))
    last = iteration(
        2,
        status=str(event.facts.status),
        verdict=str(event.verdict),
        kind=str(kind),
        reason=event.facts.reason,
        evidence=event.facts.evidence,
        signal=event.facts.signal,
        failure=event.facts.failure,
        failures_before=0,
        failures_after=1,
        threshold=3,
        commit=None,
        verify=None,
    )
    row = night(status="aborted", rule="failure-threshold", ended_at=at(2 * STEP), settings=())
    rows = [iteration(1), last]
    run = summarize(row, rows, _NOW)
    yield "show", _parts("".join(run_text(row, run, _PAINTED)), "2", " 2", "{bad}2", "Agent says")
    one = "".join(iteration_text(last, run.iterations[-1], run, AgentWords(), _PAINTED))
    yield "show N", _parts(one, "{bad}", "{warning}", "Reason", "Evidence", "Signal", "Exit")
    yield "why N", why.of_iteration(row, last, None)
    yield "hint", run.next_hint
    yield "report", f"{title_of(run.iterations[-1])}: {what_failed(run.iterations[-1])}"
    yield "markdown", "".join(markdown(run)).partition("### ")[2].partition("## ")[0]
