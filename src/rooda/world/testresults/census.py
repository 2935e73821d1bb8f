"""Which tests a check ran, and which of them are missing or skipped at the next check. Pure.

A census compares like with like: the tests of one runner with the tests of the same runner. Names
come from JUnit XML reports; what a runner prints on the console gives counts only.
"""

from collections.abc import Iterable
from enum import StrEnum

from msgspec import Struct

from rooda.base.controls import one_line
from rooda.base.numbers import count

REPORTS = "test reports"  # in place of a runner: JUnit XML files may be of several
MOST_NAMES = 100_000  # tests; of a larger suite only the counts are known
_MOST_SAVED = 5_000  # names in the record
_MOST_LISTED = 20  # names in an event
_SHOWN = 5  # names in words


class RunnerCount(Struct, frozen=True):
    """How many tests a runner had, and how many of them it skipped."""

    runner: str
    total: int
    skipped: int


class TestCensus(Struct, frozen=True):
    """The tests of one check; without names where the runner wrote no report."""

    __test__ = False  # pytest would collect the class because of its name

    runners: tuple[RunnerCount, ...] = ()
    ran: tuple[str, ...] = ()  # names
    skipped: tuple[str, ...] = ()  # names

    @property
    def total(self) -> int:
        """The number of all tests."""
        return sum(one.total for one in self.runners)

    @property
    def has_names(self) -> bool:
        """Whether the names of the tests are known."""
        return bool(self.ran or self.skipped)

    def saved(self) -> "TestCensus":
        """Return what the record keeps: the names of a very large suite would fill it."""
        if len(self.ran) + len(self.skipped) <= _MOST_SAVED:
            return self
        return TestCensus(self.runners)


class LossKind(StrEnum):
    """What happened to the tests since the last check."""

    FEWER = "fewer"  # there are fewer tests, or more of them are skipped
    REPLACED = "replaced"  # as many tests as before, but some under other names
    OTHER_RUNNER = "other-runner"  # another test runner: the counts can't be compared


class TestLoss(Struct, frozen=True):
    """The tests that are missing or newly skipped. Lists have the first names only."""

    __test__ = False

    kind: LossKind  # `fewer`, `replaced` (as many under other names) or `other-runner`
    before: int  # how many tests the last check had
    now: int  # how many tests there are
    skipped_before: int = 0  # how many tests the last check skipped
    skipped_now: int = 0  # how many tests are skipped
    gone: tuple[str, ...] = ()  # the first names of tests that are gone, if names are known
    gone_total: int = 0  # how many names are gone
    newly_skipped: tuple[str, ...] = ()  # the first names of skipped tests that ran before
    newly_skipped_total: int = 0  # how many skipped tests ran before
    runners: str = ""  # the test runners of the last check
    runners_now: str = ""  # the test runners of this check

    @property
    def brief(self) -> str:
        """The loss in two or three words, for a line that has other parts."""
        match self.kind:
            case LossKind.REPLACED:
                return f"{count(self.gone_total, 'test')} replaced"
            case LossKind.OTHER_RUNNER:
                return "another test runner"
        parts = []
        if self.now < self.before:
            parts.append(f"{count(self.before - self.now, 'test')} fewer")
        if more := max(self.newly_skipped_total, self.skipped_now - self.skipped_before):
            parts.append(f"{more} more skipped")
        return ", ".join(parts)

    @property
    def words(self) -> str:
        """The loss with its numbers and the first names."""
        match self.kind:
            case LossKind.REPLACED:
                return f"{count(self.gone_total, 'test')} gone, as many new ones or more: " + (
                    _listed(self.gone, self.gone_total)
                )
            case LossKind.OTHER_RUNNER:
                return (
                    f"read from {self.runners_now} now, and from {self.runners} before: "
                    f"{self.now} and {self.before} tests can't be compared"
                )
        gone = _listed(self.gone, self.gone_total)
        skipped = _listed(self.newly_skipped, self.newly_skipped_total)
        named = ((gone, "gone"), (skipped, "skipped now"))
        return "; ".join([self.numbers, *(f"{title}: {names}" for names, title in named if names)])

    @property
    def numbers(self) -> str:
        """The numbers of tests and of skipped tests, before and now."""
        parts = []
        if self.now < self.before:
            parts.append(f"{self.before} tests before, {self.now} now")
        if self.skipped_now > self.skipped_before:
            parts.append(f"{self.skipped_before} skipped before, {self.skipped_now} now")
        return ", ".join(parts) or f"{count(self.newly_skipped_total, 'test')} newly skipped"


def compare(before: TestCensus | None, now: TestCensus | None) -> TestLoss | None:
    """Return what is lost since the last check; None if nothing is, or there was none before."""
    if before is None or before.total == 0:
        return None
    now = now or TestCensus()
    earlier = {one.runner: one for one in before.runners}
    later = {one.runner: one for one in now.runners}
    if later and not earlier.keys() & later.keys():
        kind = LossKind.OTHER_RUNNER
        names = (", ".join(earlier), ", ".join(later))
        return TestLoss(kind, before.total, now.total, runners=names[0], runners_now=names[1])
    pairs = [(one, later.get(name, RunnerCount(name, 0, 0))) for name, one in earlier.items()]
    are_named = before.has_names and now.has_names
    gone = _names(before.ran, before.skipped) - _names(now.ran, now.skipped) if are_named else ()
    skipped = _names(now.skipped) & _names(before.ran) if are_named else frozenset()
    fewer = [pair for pair in pairs if pair[1].total < pair[0].total]
    more_skipped = [pair for pair in pairs if pair[1].skipped > pair[0].skipped]
    has_skips = bool(skipped) if are_named else bool(more_skipped)
    if not fewer and not has_skips and not gone:
        return None
    counted, skipping = fewer or pairs, more_skipped or pairs
    return TestLoss(
        LossKind.FEWER if fewer or has_skips else LossKind.REPLACED,
        sum(old.total for old, _ in counted),
        sum(new.total for _, new in counted),
        sum(old.skipped for old, _ in skipping),
        sum(new.skipped for _, new in skipping),
        tuple(sorted(gone)[:_MOST_LISTED]),
        len(gone),
        tuple(sorted(skipped)[:_MOST_LISTED]),
        len(skipped),
        ", ".join(earlier),
        ", ".join(later),
    )


def next_reference(
    reference: TestCensus | None, now: TestCensus | None, *, passed: bool, keeps: bool
) -> TestCensus | None:
    """Return what the next check is compared with.

    `keeps`: a loss is a failure, so the tests have to come back. A check that failed may have
    stopped early: it can raise the reference, and never lowers it.
    """
    loss = compare(reference, now)
    kind = None if loss is None else loss.kind
    if kind is LossKind.FEWER:
        return now if passed and not keeps else reference
    if kind is LossKind.OTHER_RUNNER or now is None:
        return now if passed else reference
    return now


def _names(*lists: Iterable[str]) -> frozenset[str]:
    return frozenset(name for names in lists for name in names)


def _listed(names: tuple[str, ...], total: int) -> str:
    shown = ", ".join(one_line(name) for name in names[:_SHOWN])
    more = total - min(len(names), _SHOWN)
    return f"{shown}, {more} more" if more > 0 else shown
