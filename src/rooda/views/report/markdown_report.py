"""The report as Markdown, for a pull request or a chat. Words of the agent stay text."""

import re
from collections.abc import Iterator, Sequence

from rooda.base.numbers import money
from rooda.base.times import format_duration
from rooda.views.model.open_tasks import tasks_line
from rooda.views.model.summary import IterationSummary, ProofState, RunSummary, TestCounts
from rooda.views.report.untrusted import plain_line, plain_text
from rooda.views.wording.labels import (
    KIND_NAMES,
    brief_duration,
    brief_number,
    changes_words,
    day,
    money_of,
    share,
    times_of,
)
from rooda.views.wording.lines import commit_of
from rooda.views.wording.sentences import MOST_NOTES, short, title_of, what_failed

_MARKUP = re.compile(r"([\\`*_\[\]<>|#~&@]|(?<=:)/(?=/)|(?<=www)\.)", re.IGNORECASE)
_MOST_FILES = 8
_MOST_FAILED = 20
_MOST_TOLD = 20
_LONGEST = 300


def markdown(run: RunSummary) -> Iterator[str]:
    """Yield the report, line by line."""
    for part in (_head, _notes, _iterations, _failures, _told, _times, _files, _next):
        for line in part(run):
            yield f"{line}\n"


def words(text: str, most: int = _LONGEST) -> str:
    """Return untrusted words on one line: no markup, no link, no mention, no cell of a table."""
    return _MARKUP.sub(r"\\\1", plain_line(text, most))


def _code(text: str) -> str:
    """Return a text as code; a backtick in it does not end it."""
    shown = plain_line(text, _LONGEST).replace("|", "\\|")
    ticks = "`" * (1 + max(map(len, re.findall("`+", shown)), default=0))
    space = " " if "`" in shown else ""
    return f"{ticks}{space}{shown}{space}{ticks}" if shown else ""


def _block(text: str) -> list[str]:
    """Return a text as a block of code."""
    shown = plain_text(text)
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", shown)), default=0))
    return [f"{fence}text", *shown.splitlines(), fence]


def _head(run: RunSummary) -> Iterator[str]:
    tasks = f", {run.tasks.words}" if run.is_doubtful and run.tasks else ""
    yield f"# {words(run.project)}: {words(run.status)}{tasks}"
    yield ""
    until = day(run.ended_at) if run.ended_at else f"now ({day(run.made_at)})"
    yield f"Run {_code(run.run)} of {words(run.procedure)}, {day(run.started_at)} to {until}."
    yield ""
    yield f"- **Rule**: {words(run.rule_text, 1000)}"
    yield f"- **Proof**: {_proof(run)}"
    if tasks := words(tasks_line(run), 1000):
        yield f"- **Tasks**: {'**Warning**: ' if run.is_doubtful else ''}{tasks}"
    if run.closing:
        said = words(run.closing, 1000)
        yield f"- **Agent says** (iteration {run.closing_iteration}, not checked by rooda): {said}"
    yield f"- **Duration**: {brief_duration(run.seconds)}{_waited(run)}"
    other = f", {run.other} other" if run.other else ""
    done = f"{run.good} good, {run.failed} failed{other}"
    yield f"- **Iterations**: {len(run.iterations)} ({done})"
    if run.tests_last is not None and run.tests_first is not None:
        bad = f", {run.tests_last.failed} failed" if run.tests_last.failed else ""
        yield f"- **Tests**: {_counts(run.tests_last)}{bad}; {run.tests_first.passed} at the start"
    commits = f"{run.commits} commit" + ("" if run.commits == 1 else "s")
    yield f"- **Changes**: {changes_words(run.files, run.added, run.deleted)}, {commits}"
    if run.cost is not None:
        yield f"- **Cost**: {money_of(run)}"
    if run.tokens is not None:
        yield f"- **Tokens**: {brief_number(run.tokens.total)}"
    yield ""


def _waited(run: RunSummary) -> str:
    return f", {brief_duration(run.waited)} of it waiting" if run.waited else ""


def _proof(run: RunSummary) -> str:
    proof = run.proof
    if proof.state is ProofState.NOT_CHECKED:
        return f"not checked. {proof.after}"
    tests = f", {_counts(proof.tests)} tests" if proof.tests else ""
    last_commit = proof.commit or proof.head
    commit = f", commit {_code(last_commit)}" if last_commit else ""
    if proof.state is ProofState.PASSED:
        where = f"after iteration {proof.iteration}{tests}{commit or ', not committed'}"
        return f"verify passed ({_code(proof.command)}) {where}"
    if proof.iteration is None:
        return f"not proven. {proof.after}"
    last = f"The last verify that passed was after iteration {proof.iteration}{tests}{commit}."
    return f"not proven. {last} {proof.after}"


def _counts(tests: TestCounts) -> str:
    return f"{tests.passed:,}/{tests.total:,}"


def _notes(run: RunSummary) -> Iterator[str]:
    if not run.notes:
        return
    yield "## Worth a look"
    yield ""
    for note in run.notes[:MOST_NOTES]:
        yield f"- {note.iteration} **{words(note.title)}**: {words(note.text)}"
    if len(run.notes) > MOST_NOTES:
        yield f"- {len(run.notes) - MOST_NOTES} more; see the iterations"
    yield ""


def _iterations(run: RunSummary) -> Iterator[str]:
    if not run.iterations:
        return
    yield "## Iterations"
    yield ""
    yield "| # | outcome | headline | duration | changes | tests | commit | cost |"
    yield "|--:|---|---|--:|--:|--:|---|--:|"
    for one in run.iterations:
        yield f"| {' | '.join(_cells(one))} |"
    yield ""


def _cells(one: IterationSummary) -> Sequence[str]:
    waited = f" + {brief_duration(one.waited)} waiting" if one.waited else ""
    return (
        str(one.number),
        words(title_of(one)),
        words(one.headline) or "-",
        f"{format_duration(one.seconds)}{waited}",
        changes_words(one.files, one.added, one.deleted),
        _counts(one.tests) if one.tests else "not run",
        _commit(one),
        money(one.cost) if one.cost is not None else "-",
    )


def _commit(one: IterationSummary) -> str:
    name = short(one.commit) or short(one.held_in)
    return commit_of(one).replace(name, _code(name)) if name else commit_of(one) or "-"


def _failures(run: RunSummary) -> Iterator[str]:
    failed = [one for one in run.iterations if one.is_failed]
    for one in failed[-_MOST_FAILED:]:
        yield f"### Iteration {one.number}: {words(title_of(one))}"
        yield ""
        yield words(what_failed(one))
        if one.verify is not None and one.verify.error and one.verify.output.strip():
            yield ""
            yield f"The end of what {_code(one.verify.command)} printed:"
            yield ""
            yield from _block(one.verify.output)
        if one.clean_check is not None and one.clean_check.error:
            yield ""
            yield f"The end of what {_code(one.clean_check.command)} printed in a clean copy:"
            yield ""
            yield from _block(one.clean_check.output)
        yield ""


def _told(run: RunSummary) -> Iterator[str]:
    told: dict[str, list[int]] = {}
    for one in run.iterations:
        for note in one.told:
            told.setdefault(note, []).append(one.number)
    if not told:
        return
    yield "## Your notes to the agent"
    yield ""
    for note, numbers in list(told.items())[:_MOST_TOLD]:
        others = f" and {len(numbers) - 1} more" if len(numbers) > 1 else ""
        yield f"- Iteration {numbers[0]}{others}: {words(note)}"
    if len(told) > _MOST_TOLD:
        yield f"- {len(told) - _MOST_TOLD} more in `rooda show`"
    yield ""


def _times(run: RunSummary) -> Iterator[str]:
    parts = times_of(run)
    if not parts:
        return
    yield "## Where the time went"
    yield ""
    yield "| what | time | share |"
    yield "|---|--:|--:|"
    for kind, seconds in parts:
        yield f"| {KIND_NAMES[kind]} | {brief_duration(seconds)} | {share(seconds, run.seconds)} |"
    yield ""


def _files(run: RunSummary) -> Iterator[str]:
    if not run.changed:
        return
    yield "## Where the changes are"
    yield ""
    for file in run.changed[:_MOST_FILES]:
        lines = "" if file.added is None else f": +{file.added:,} \u2212{file.deleted or 0:,}"
        yield f"- {_code(file.name)}{lines}"
    if run.files > _MOST_FILES:
        more = run.files - _MOST_FILES
        yield f"- {more:,} more file{'' if more == 1 else 's'}"
    yield ""


def _next(run: RunSummary) -> Iterator[str]:
    yield "## Next"
    yield ""
    if run.next_hint:
        yield run.next_hint
        yield ""
    yield "```sh"
    for one in run.next_commands:
        yield f"{one.command}   # {one.why}"
    yield "```"
