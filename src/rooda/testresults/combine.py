"""Which of the suites in some outputs count, and their sum.

Different runners add up, and so do the parts of one run. A later run of the same runner replaces
an earlier one, unless one command ran both, each in an environment or package of its own (tox,
npm workspaces). A suite within the output of another runner's run is that run's own business.

So what makes two runs the same suite is the runner. It is the one thing that every runner tells
about itself: names of files, packages and tests come and go while an agent works on them, and
many runners print none of them when all is well.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice

from rooda.testresults.parser import MOST_DETAILS
from rooda.testresults.suites import XML_REPORT, Counts, Suite
from rooda.testresults.types import TestResults


def combine(*outputs: Iterable[Suite]) -> TestResults | None:
    """The results of all suites that count; None when there are none."""
    counting: list[Suite] = []
    for suites in outputs:
        later = _last_runs(_told_once(_outermost(suites)))
        run_again = {suite.runner for suite in later}
        counting = [suite for suite in counting if suite.runner not in run_again] + later
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


def _outermost(suites: Iterable[Suite]) -> list[Suite]:
    """The suites that no run of another runner encloses."""
    reach: dict[str, int] = {}
    outermost = []
    for suite in sorted(suites, key=lambda suite: (suite.first, -suite.last)):
        if not any(last >= suite.last for name, last in reach.items() if name != suite.runner):
            outermost.append(suite)
            reach[suite.runner] = max(suite.last, reach.get(suite.runner, 0))
    return outermost


def _told_once(suites: Iterable[Suite]) -> list[Suite]:
    """The suites without the reports of runs that had summed up on the console before."""
    seen: set[Counts] = set()
    told = []
    for suite in sorted(suites, key=lambda suite: suite.last):
        if suite.runner != XML_REPORT:
            seen.add(suite.counts)
        elif suite.counts in seen:
            continue
        told.append(suite)
    return told


def _last_runs(suites: Iterable[Suite]) -> list[Suite]:
    """The suites of each runner's last run."""
    runs: dict[str, _Run] = {}
    for suite in sorted(suites, key=lambda suite: suite.last):
        run = runs.get(suite.runner)
        if run is None or not run.takes(suite):
            run = runs[suite.runner] = _Run()
        run.add(suite)
    counting = (suite for run in runs.values() for suite in run.suites)
    return sorted(counting, key=lambda suite: suite.last)


@dataclass(slots=True)
class _Run:
    """The suites of one runner that add up."""

    suites: list[Suite] = field(default_factory=list)
    scopes: set[str] = field(default_factory=set)

    def takes(self, suite: Suite) -> bool:
        """Whether the suite belongs to this run, or replaces it."""
        before = self.suites[-1]
        if before.run == suite.run:
            return True
        scoped = suite.scope != "" and "" not in self.scopes
        return scoped and suite.scope not in self.scopes and before.command == suite.command

    def add(self, suite: Suite) -> None:
        self.suites.append(suite)
        self.scopes.add(suite.scope)
