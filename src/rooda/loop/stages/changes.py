"""The stage that finds what the agent changed: files, commits, tests, progress."""

import contextlib
from pathlib import Path

from msgspec.structs import replace

from rooda.loop.context import IterationContext
from rooda.loop.events.work import (
    ChangesUnknown,
    FilesLeftOut,
    SnapshotStarted,
    SnapshotTaken,
    SnapshotTrouble,
)
from rooda.loop.headline import headline_of
from rooda.loop.progress import read_tests, result_of, with_tests
from rooda.loop.services import Services
from rooda.loop.waiting import note_user_changes
from rooda.plan.settings.settings import PARSE_TESTS, TEST_REPORTS
from rooda.world.files.beneath import Beneath
from rooda.world.git.snapshots.tree_changes import LineCounts, TreeScan

_LAST_WORDS = 16 * 1024  # bytes of an agent's text that can contain its closing words


def find_changes(context: IterationContext) -> None:
    """Compare the work tree with the one before the agent, and put the result together."""
    response = context.response
    if response is None:
        return
    services, report = context.services, context.report
    if services.tracker is not None:
        services.emit(SnapshotStarted(context.number))
        context.seen = services.tracker.scan(str(context.number))
        if services.halts:
            _leave_to_the_user(context, services.tracker.root)
    usage = None if report is None else report.usage.context_percent
    seen = context.seen
    context.learn(
        result=result_of(response, seen, context.agent_ms, usage),
        commits=seen.commits or None,
        lines=LineCounts.of(seen.changes, seen.lines),
    )
    context.learn(headline=_headline(context) or None)
    find_tests(context)
    report_tree(services, context.number, context.seen)
    context.task = context.plan.work.done(context.task)


def _leave_to_the_user(context: IterationContext, root: Path) -> None:
    """Take the files that were last changed while the agent was halted (Ctrl+Z) as the user's."""
    halts = context.services.halts
    note_user_changes(context.services, context.number)
    changes, door = context.seen.changes, Beneath(root)
    if changes is None:
        return
    names = set()
    for name in (*changes.created, *changes.modified):
        with contextlib.suppress(OSError):
            changed = door.status(name).st_ctime_ns
            names.update([name] if any(halt.contains(changed) for halt in halts) else [])
    context.seen = replace(context.seen, changes=changes.without(names))


def _headline(context: IterationContext) -> str:
    """Return the headline: from the agent's summary, else from its closing words."""
    response, report, result = context.response, context.report, context.facts.result
    if response is None or result is None:
        return ""
    mask = context.services.masker.text  # a headline is published, in the message of the commit
    summary = mask(result.summary or "")
    spoken = response.printed.stdout if response.spoken is None else response.spoken
    end = mask(spoken[-_LAST_WORDS:].decode("utf-8", "replace"))
    if report is not None and report.speaks_events:
        return headline_of(summary, mask(report.closing), end.rstrip().rpartition("\n\n")[2])
    # Output that is text is one message. Of a long output only the end is of interest.
    if len(spoken) > _LAST_WORDS:
        end = end.partition("\n\n")[2] or end.partition("\n")[2]
    return headline_of(summary, end)


def find_tests(context: IterationContext, verify: bytes = b"") -> None:
    """Read the tests that the agent ran, and those that `verify` ran, if it has run."""
    values, result, response = context.plan.values, context.facts.result, context.response
    if result is None or response is None:
        return
    tests = None
    if values[PARSE_TESTS]:
        outputs = (response.printed.stdout, response.printed.stderr, verify)
        folder = context.plan.working_dir
        tests = read_tests(outputs, values[TEST_REPORTS], folder, context.agent_started)
    context.tests = tests or context.tests
    context.learn(result=with_tests(result, tests, context.state.tests, context.seen.commits))


def report_tree(services: Services, number: int, seen: TreeScan) -> None:
    """Emit what a scan of the work tree has found; 0 is the scan before the first iteration."""
    reported = services.reported
    is_new = seen.trouble != reported.trouble
    if seen.trouble and seen.changes is None and number > 0:
        services.emit(ChangesUnknown(number, seen.trouble, is_new))
    elif seen.trouble and is_new:
        services.emit(SnapshotTrouble(number, seen.trouble))
    reported.trouble = seen.trouble
    if seen.tree is None:
        return
    new = [name for name in seen.left_out if name not in reported.left_out]
    reported.left_out.update(new)
    if new:
        services.emit(FilesLeftOut(number, tuple(new)))
    services.emit(SnapshotTaken(number, seen.tree, seen.commit, seen.head, seen.left_out))
