"""Selects the suites that count and adds them up.

The suites of different runners add up, and so do the parts of one run. A later run of the same
runner replaces an earlier one, unless one command ran both in different environments or packages
(tox, npm workspaces). A suite inside the lines of another runner's run is ignored, because the
outer runner started that suite and already counts it.

Two runs are taken to cover the same tests if they have the same runner. The runner is the only
identity that every output shows: agents rename files, packages and tests while they work, and many
runners print no names when all tests pass.
"""

from collections.abc import Iterable
from itertools import islice

from msgspec import Struct, field

from rooda.world.testresults.census import RunnerCount, TestCensus
from rooda.world.testresults.results import TestResults, TestStatus
from rooda.world.testresults.suites import MOST_DETAILS, XML_REPORT, Counts, Suite


def combine(*outputs: Iterable[Suite]) -> TestResults | None:
    """Return the sum of all suites that count (later outputs come last), or None without suites."""
    counting = _counting(outputs)
    if not counting:
        return None
    counts = sum((suite.counts for suite in counting), Counts())
    details = (detail for suite in counting for detail in suite.details)
    return TestResults(
        counts.total,
        counts.passed,
        counts.failed,
        counts.skipped,
        tuple(islice(details, MOST_DETAILS)),
    )


def census_of(suites: Iterable[Suite]) -> TestCensus | None:
    """Return how many tests each runner had in one output, or None without suites."""
    found: dict[str, RunnerCount] = {}
    for suite in _counting([suites]):
        before = found.get(suite.runner, RunnerCount(suite.runner, 0, 0))
        total, skipped = before.total + suite.counts.total, before.skipped + suite.counts.skipped
        # pytest counts a test that passed and failed in its teardown twice.
        is_extra = suite.runner == "pytest"
        errors = sum(detail.status is TestStatus.ERROR for detail in suite.details if is_extra)
        found[suite.runner] = RunnerCount(suite.runner, max(0, total - errors), skipped)
    return TestCensus(tuple(found[name] for name in sorted(found))) if found else None


def _counting(outputs: Iterable[Iterable[Suite]]) -> list[Suite]:
    """Return the suites that count."""
    counting: list[Suite] = []
    for suites in outputs:
        later = _last_runs(_without_repeats(_outermost(suites)))
        run_again = {suite.runner for suite in later}
        counting = [suite for suite in counting if suite.runner not in run_again] + later
    return counting


def _outermost(suites: Iterable[Suite]) -> list[Suite]:
    """Return the suites that are not enclosed by a run of another runner."""
    reach: dict[str, int] = {}
    outermost = []
    for suite in sorted(suites, key=lambda suite: (suite.first, -suite.last)):
        if not any(last >= suite.last for name, last in reach.items() if name != suite.runner):
            outermost.append(suite)
            reach[suite.runner] = max(suite.last, reach.get(suite.runner, 0))
    return outermost


def _without_repeats(suites: Iterable[Suite]) -> list[Suite]:
    """Return the suites without XML reports that repeat an earlier summary on the console."""
    seen: set[Counts] = set()
    kept = []
    for suite in sorted(suites, key=lambda suite: suite.last):
        if suite.runner != XML_REPORT:
            seen.add(suite.counts)
        elif suite.counts in seen:
            continue
        kept.append(suite)
    return kept


def _last_runs(suites: Iterable[Suite]) -> list[Suite]:
    """Return the suites of the last run of each runner."""
    runs: dict[str, _Run] = {}
    for suite in sorted(suites, key=lambda suite: suite.last):
        run = runs.get(suite.runner)
        if run is None or not run.takes(suite):
            run = runs[suite.runner] = _Run()
        run.add(suite)
    counting = (suite for run in runs.values() for suite in run.suites)
    return sorted(counting, key=lambda suite: suite.last)


class _Run(Struct):
    """The suites of one run of a runner; they add up."""

    suites: list[Suite] = field(default_factory=list)
    scopes: set[str] = field(default_factory=set)

    def takes(self, suite: Suite) -> bool:
        """Return whether the suite belongs to this run; otherwise the suite replaces the run."""
        before = self.suites[-1]
        if before.run == suite.run:
            return True
        scoped = suite.scope != "" and "" not in self.scopes
        return scoped and suite.scope not in self.scopes and before.command == suite.command

    def add(self, suite: Suite) -> None:
        self.suites.append(suite)
        self.scopes.add(suite.scope)
