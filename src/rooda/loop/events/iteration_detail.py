"""The detail line of an ended iteration: files, tests, commit, cost, and what the agent did. Pure.

It has only the parts that there is something to tell about, and stands below the line of the
iteration in a text log.
"""

from msgspec import Struct

from rooda.base.controls import one_line
from rooda.base.numbers import count, money
from rooda.base.widths import cut
from rooda.loop.publish.commit_message import named_iterations
from rooda.loop.result import IterationResult
from rooda.world.git.snapshots.tree_changes import LineCounts
from rooda.world.testresults.results import TestResults

LONGEST = 200  # columns
SHORT_COMMIT = 7  # characters of the name of a commit
LOGGED_COMMIT = 12  # the same in a log for programs
_LEAST_HEADLINE = 20  # columns; a shorter beginning of a headline says nothing
_NEARLY_FULL = 80  # percent of the context
_INDENT = "  "
_BETWEEN = " · "


class IterationDetail(Struct, frozen=True):
    """What the line can tell; None, 0 and an empty text stand for unknown or nothing."""

    result: IterationResult | None = None
    lines: LineCounts | None = None
    tests_gained: int | None = None
    commit: str | None = None
    cost: float | None = None
    context_percent: int | None = None
    headline: str = ""
    tests_lost: str = ""
    commit_holds: tuple[int, ...] = ()

    def line(self) -> str:
        """Return the line with its indent; "" if there is nothing to tell."""
        tests = None if self.result is None else self.result.test_results
        facts = [
            self._files(),
            _tests(tests, self.tests_gained),
            self.tests_lost,
            self._commit(),
            money(self.cost) if self.cost else "",
            self._context(),
        ]
        known = _BETWEEN.join(filter(None, facts))
        headline = self._headline(LONGEST - len(_INDENT) - len(known) - len(_BETWEEN))
        words = _BETWEEN.join(filter(None, (known, headline)))
        return f"{_INDENT}{words}" if words else ""

    def _files(self) -> str:
        if self.lines is None:
            result = self.result
            if result is None or not result.files_changed:
                return ""
            names = (result.files_created, result.files_modified, result.files_deleted)
            return count(sum(map(len, names)), "file")
        if not self.lines.files:
            return ""
        changed = f" +{self.lines.added} -{self.lines.deleted}"
        has_lines = self.lines.added or self.lines.deleted
        return f"{count(self.lines.files, 'file')}{changed if has_lines else ''}"

    def _commit(self) -> str:
        short = (self.commit or "")[:SHORT_COMMIT]
        return (
            f"{short} (with {named_iterations(self.commit_holds)})" if self.commit_holds else short
        )

    def _context(self) -> str:
        full = self.context_percent
        return f"context {full}% full" if full is not None and full >= _NEARLY_FULL else ""

    def _headline(self, room: int) -> str:
        words = " ".join(one_line(self.headline).split())
        return cut(words, max(room, _LEAST_HEADLINE))


def _tests(tests: TestResults | None, gained: int | None) -> str:
    if tests is None:
        return ""
    change = f" ({gained:+d})" if gained else ""
    return f"tests {tests.passed}/{tests.total}{change}"
