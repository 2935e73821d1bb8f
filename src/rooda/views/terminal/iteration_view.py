"""One iteration for people: outcome and reason, numbers, files, tests, words, what to do next."""

from collections.abc import Iterator, Sequence

from rooda.base.controls import clean, one_line
from rooda.base.numbers import count
from rooda.base.paths import first_names
from rooda.loop.next_steps import NextCommand
from rooda.loop.progress import without_signals
from rooda.loop.result import IterationResult
from rooda.record.rows import EarlierAttempt, IterationRow
from rooda.views.model.summary import FileSummary, IterationSummary, RunSummary
from rooda.views.terminal.run_view import Page, hook_table, status_color, unreadable
from rooda.views.terminal.table import paragraph
from rooda.views.wording import lines
from rooda.views.wording.labels import brief_number, date_and_time
from rooda.views.wording.sentences import short, what_failed
from rooda.views.wording.words import AgentWords
from rooda.world.agents.failure_kinds import known_kind
from rooda.world.state.folder import REPLACED
from rooda.world.testresults.results import TestResults

_FILES = 20  # names in a list of files or tests
_MOST_LINES = 20  # of what a check printed
_LONGEST_LINE = 500  # characters


def iteration_text(
    row: IterationRow,
    one: IterationSummary,
    run: RunSummary,
    words: AgentWords,
    page: Page,
    folder: str = "",
) -> Iterator[str]:
    """Yield the view of an iteration in pieces; `folder` has its files."""
    yield _head(one, page)
    parts = (_numbers, _checks, _commit, _work_tree, _agent)
    pairs = [pair for part in parts for pair in part(row, one)]
    if any(change.action == "restore" for change in row.protected):
        pairs.append(("Replaced", f"{folder}/{REPLACED} has what rooda replaced"))
    if folder:
        pairs.append(("Folder", folder))
    yield page.named(pairs)
    if one.told:
        yield page.title("Notes from the user in the prompt")
        yield "".join(map(printed, one.told))
    if row.result is not None:
        yield from _file_lists(row, row.result, one.changed, page)
        if row.result.test_results is not None:
            yield _failed_tests(row.result.test_results, page)
    if one.verify is not None and one.verify.error:
        yield page.title("What verify printed")
        yield printed(one.verify.output)
    if one.clean_check is not None and one.clean_check.error:
        yield page.title("What the check in a clean copy printed")
        yield printed(one.clean_check.output)
    yield from _closing(row, words, page)
    yield hook_table(row.hooks, page)
    yield page.next(list(_next(one, run)))


def _head(one: IterationSummary, page: Page) -> str:
    kind = f" ({one.kind})" if one.status == "failed" and one.kind else ""
    why = what_failed(one) if one.is_failed else "" if one.is_good else one.reason
    sentence = f"Iteration {one.number} {one.status}{kind}" + (f": {why}" if why else ".")
    text = paragraph(one_line(sentence), room=page.room).rstrip("\n")
    headline = paragraph(one_line(one.headline), room=page.room) if one.headline else ""
    return f"{page.paint(status_color(one.status), text)}\n{headline}\n"


def _numbers(row: IterationRow, one: IterationSummary) -> Iterator[tuple[str, str]]:
    attempt = f" (attempt {row.attempt})" if row.attempt > 1 else ""
    yield "Run", row.run
    yield "Iteration", f"{row.number}{attempt}"
    yield "Status", row.status
    yield "Started", date_and_time(one.started_at)
    yield "Ended", date_and_time(row.ended_at)
    yield "Time", lines.times_line(one)
    for name, earlier in named_attempts(row.earlier_attempts or ()):
        yield name, _attempt(earlier)
    if row.reason and not one.is_good:
        yield "Reason", one.reason
    if one.signal:
        yield "Signal", lines.signal_of(one)
    if row.result is not None:
        code = row.result.exit_code
        yield "Exit code", "-" if code is None else str(code)
        yield "Progress", "yes" if row.result.progress_detected else "no"
    if files := lines.files_of(one):
        yield "Files", files
    if tests := lines.tests_of(one):
        yield "Tests", tests
    if one.tasks:
        yield "Tasks", one.tasks.words


def _checks(_: IterationRow, one: IterationSummary) -> Iterator[tuple[str, str]]:
    """Yield what the user's checks found."""
    if (verify := one.verify) is not None:
        yield "Verify", lines.check_of(verify)
    elif one.is_unchecked:
        yield "Verify", "did not run"
    if one.tests_lost:
        yield "Tests lost", one.tests_lost
    if one.clean_check is not None:
        yield "Clean copy", lines.check_of(one.clean_check)


def _commit(row: IterationRow, one: IterationSummary) -> Iterator[tuple[str, str]]:
    """Yield what the loop did with the work."""
    if (commit := row.commit) is not None:
        first, _, _ = commit.message.partition("\n")
        yield "Commit", f"{short(commit.commit)} {first}"
    if holding := lines.holding_of(one):
        yield "Work", holding
    if one.commits_of_agent > 0:
        yield "Commits", f"{one.commits_of_agent} by the agent"
    if (secrets := row.secrets_left_out) is not None:
        shown = first_names(secrets.files, secrets.total)
        yield "Not committed", f"{shown} (new files that look like secrets)"
    if (push := row.push) is not None:
        yield "Push", f"{push.branch} to {push.remote}"
    for name, failed in (("Commit", row.commit_failed), ("Push", row.push_failed)):
        if failed is not None:
            yield name, f"failed: {failed.error}"
    if (publish := row.publish) is not None:
        yield "Publish", f"{publish.error or 'done'} ({publish.command})"


def _work_tree(row: IterationRow, one: IterationSummary) -> Iterator[tuple[str, str]]:
    """Yield what the agent left behind, and what is odd about it."""
    if one.stopped:
        shown = ", ".join(f"{process.name} (pid {process.pid})" for process in one.stopped)
        yield "Stopped", f"{shown}: left running by the agent"
    for change in row.protected:
        yield "Protected", f"{change.end}: {change.story}"
    if (snapshot := row.snapshot) is not None and snapshot.commit:
        yield "Snapshot", snapshot.commit[:12]
        if snapshot.left_out:
            yield "Left out", ", ".join(snapshot.left_out[:_FILES])
    for found in row.unsafe_tree:
        kept = f" (kept in {found.place})" if found.place else ""
        yield "Sandbox", f"{found.sentence}: {found.names or 'not all files'}{kept}"
    if row.returned_to is not None:
        yield "Tree", f"the same as after iteration {row.returned_to}"
    if row.changes_unknown:
        yield "Changes", f"unknown: {row.changes_unknown}"
    yield from unreadable(row.unreadable)


def _agent(row: IterationRow, one: IterationSummary) -> Iterator[tuple[str, str]]:
    """Yield what the agent's CLI reports about itself."""
    known = [lines.cost_of(one)] if one.cost is not None else []
    known += [f"{brief_number(one.tokens.total)} tokens"] if one.tokens and one.tokens.total else []
    known += [count(one.turns, "turn")] if one.turns else []
    if known:
        yield "Used" if one.cost is None else "Cost", ", ".join(known)
    if one.model:
        yield "Model", one.model
    full = row.result.context_usage_percent if row.result is not None else None
    if full is not None:
        yield "Context", f"{full}% full"
    if row.session_id:
        yield "Session", row.session_id
    if row.incomplete:
        yield "Output", "incomplete: it ends without the agent's result"


def named_attempts(attempts: Sequence[EarlierAttempt]) -> list[tuple[str, EarlierAttempt]]:
    """Return earlier attempts and their names; those of one outage become one, the last."""
    found: list[tuple[int, EarlierAttempt]] = []
    for one in attempts:
        kind = known_kind(one.kind)
        is_outage = kind is not None and kind.is_outage
        is_again = is_outage and bool(found) and one.kind == found[-1][1].kind
        first = found.pop()[0] if is_again else one.attempt
        found.append((first, one))
    return [(_called(first, last.attempt), last) for first, last in found]


def _called(first: int, last: int) -> str:
    return f"Attempt {first}" if first == last else f"Attempts {first} to {last}"


def _attempt(one: EarlierAttempt) -> str:
    kind = f" ({one.kind})" if one.kind else ""
    return f"{one.status}{kind}, begun {date_and_time(one.started_at)}"


def _file_lists(
    row: IterationRow, result: IterationResult, changed: Sequence[FileSummary], page: Page
) -> Iterator[str]:
    counted = {one.name: lines.lines(one.added, one.deleted) for one in changed}
    for change in row.protected:
        counted |= {
            name: f"{counted.get(name, '')} (protected: {change.end})" for name in change.files
        }
    for title, names in (
        ("Created", result.files_created),
        ("Modified", result.files_modified),
        ("Deleted", result.files_deleted),
    ):
        if names:
            yield page.title(title)
            for name in names[:_FILES]:
                yield f"  {one_line(name[:_LONGEST_LINE])}{counted.get(name, '')}\n"
            if len(names) > _FILES:
                yield f"  ... {len(names) - _FILES} more\n"


def _failed_tests(tests: TestResults, page: Page) -> str:
    bad = [one for one in tests.details if one.status.is_bad]
    if not bad:
        return ""
    shown = [
        f"  {one_line(one.name[:_LONGEST_LINE])}"
        + (f": {one_line(one.error[:_LONGEST_LINE])}" if one.error else "")
        for one in bad[:_FILES]
    ]
    more = [f"  ... {len(bad) - _FILES} more"] if len(bad) > _FILES else []
    return page.title("Failed tests") + "\n".join(shown + more) + "\n"


def _closing(row: IterationRow, words: AgentWords, page: Page) -> Iterator[str]:
    """Yield the closing words of the agent; where they are gone, the summary in the record."""
    text = without_signals(words.text)
    if not text and row.result is not None:
        text = without_signals(row.result.summary or "")
    if text:
        yield page.title("What the agent said last")
        yield printed(text)


def printed(text: str) -> str:
    """Return the end of what a program printed, indented and cleaned."""
    found = clean(text).strip("\n").splitlines()
    shown = [line[:_LONGEST_LINE] for line in found[-_MOST_LINES:]]
    more = ["[...]"] if len(found) > len(shown) else []
    return "".join(f"  {line}".rstrip() + "\n" for line in more + shown or ["(nothing)"])


def _next(one: IterationSummary, run: RunSummary) -> Iterator[NextCommand]:
    place = f"{run.run} {one.number}"
    if one.files and one.is_kept:
        yield NextCommand("See what it changed", f"rooda diff {place}")
    yield NextCommand("Read what the agent said and did", f"rooda show {place} --output")
    if one.is_failed:
        yield NextCommand("See what decided", f"rooda why {place}")
    if one.is_kept and run.iterations[-1].number != one.number and not run.is_running:
        yield NextCommand("Go back to the work tree after it", f"rooda restore {place}")
