"""Which tests are lost between two checks, and what the next check is compared with."""

from pathlib import Path

import pytest

from rooda.world.testresults.census import (
    LossKind,
    RunnerCount,
    TestCensus,
    compare,
    next_reference,
)
from rooda.world.testresults.junit_xml import count_reports
from rooda.world.testresults.read import count_tests
from support.tables import each_row


def counted(total: int, skipped: int = 0, runner: str = "pytest") -> TestCensus:
    return TestCensus((RunnerCount(runner, total, skipped),))


def named(ran: str, skipped: str = "") -> TestCensus:
    """Return a census of tests with names of one letter."""
    runners = (RunnerCount("test reports", len(ran) + len(skipped), len(skipped)),)
    return TestCensus(runners, tuple(ran), tuple(skipped))


@each_row(
    "before,now",
    [
        (None, counted(3)),
        (None, None),
        (TestCensus(), counted(1)),
        (counted(3), counted(3)),
        (counted(3, 1), counted(5, 0)),
        (named("abc"), named("abc")),
        (named("abc"), named("abc", "d")),
        (named("ab", "c"), named("abc")),
    ],
    ids=[
        "first-check",
        "no-tests-at-all",
        "empty-before",
        "same-count",
        "more-tests-fewer-skips",
        "same-names",
        "new-test-that-is-skipped-from-the-start",
        "skipped-test-runs-again",
    ],
)
def test_no_loss(before: TestCensus | None, now: TestCensus | None) -> None:
    assert compare(before, now) is None


@each_row(
    "before,now,kind,brief,words",
    [
        (
            *(counted(41), counted(38), LossKind.FEWER),
            *("3 tests fewer", "41 tests before, 38 now"),
        ),
        (
            *(counted(41), None, LossKind.FEWER),
            *("41 tests fewer", "41 tests before, 0 now"),
        ),
        (
            *(counted(4), counted(6, 2), LossKind.FEWER),
            *("2 more skipped", "0 skipped before, 2 now"),
        ),
        (
            *(counted(4), counted(3, 1), LossKind.FEWER),
            "1 test fewer, 1 more skipped",
            "4 tests before, 3 now, 0 skipped before, 1 now",
        ),
        (
            *(named("abc"), named("a"), LossKind.FEWER),
            *("2 tests fewer", "3 tests before, 1 now; gone: b, c"),
        ),
        (
            *(named("abc"), named("ab", "c"), LossKind.FEWER),
            *("1 more skipped", "0 skipped before, 1 now; skipped now: c"),
        ),
        (
            *(named("a", "b"), named("b", "a"), LossKind.FEWER),
            *("1 more skipped", "1 test newly skipped; skipped now: a"),
        ),
        (
            *(named("abc"), named("abd"), LossKind.REPLACED),
            *("1 test replaced", "1 test gone, as many new ones or more: c"),
        ),
        (
            *(counted(41), counted(50, runner="jest"), LossKind.OTHER_RUNNER),
            "another test runner",
            "read from jest now, and from pytest before: 50 and 41 tests can't be compared",
        ),
    ],
)
def test_loss_is_told_with_its_numbers_and_names(
    before: TestCensus, now: TestCensus | None, kind: LossKind, brief: str, words: str
) -> None:
    loss = compare(before, now)
    assert loss is not None
    assert (loss.kind, loss.brief, loss.words) == (kind, brief, words)


def test_each_runner_is_compared_with_itself() -> None:
    before = TestCensus((RunnerCount("jest", 10, 0), RunnerCount("pytest", 41, 0)))
    now = TestCensus((RunnerCount("jest", 30, 0), RunnerCount("pytest", 40, 0)))
    loss = compare(before, now)
    assert loss is not None
    assert loss.words == "41 tests before, 40 now", "new tests of jest do not hide the lost one"
    loss = compare(before, TestCensus((RunnerCount("pytest", 41, 0),)))
    assert loss is not None
    assert loss.brief == "10 tests fewer", "all tests of jest are gone"


@pytest.mark.parametrize("keeps", [False, True])
def test_reference_after_a_loss_stays_only_where_the_loss_is_a_failure(
    keeps: bool,  # noqa: FBT001 - a column
) -> None:
    before, less = counted(41), counted(38)
    after = next_reference(before, less, passed=True, keeps=keeps)
    assert after == (before if keeps else less)


def test_failed_check_raises_the_reference_and_never_lowers_it() -> None:
    before = counted(41)
    for less in (counted(3), counted(41, 2), None, counted(50, runner="jest")):
        assert next_reference(before, less, passed=False, keeps=False) == before
    more = counted(46)
    assert next_reference(before, more, passed=False, keeps=False) == more
    assert next_reference(None, more, passed=False, keeps=False) == more


def test_replaced_tests_become_the_reference() -> None:
    now = named("abd")
    assert next_reference(named("abc"), now, passed=True, keeps=True) == now


def test_pytest_counts_an_error_in_a_teardown_once() -> None:
    printed = (
        "============ ERRORS ====\n____ ERROR at teardown of test_a ____\n"
        "E   ValueError\n==== short test summary info ====\n"
        "ERROR test_a.py::test_a - ValueError\n==== 4 passed, 1 error in 0.12s ====\n"
    )
    assert count_tests(printed.encode()) == counted(4)


def test_output_without_tests_has_no_census() -> None:
    assert count_tests(b"all is well\n") is None
    assert count_tests(b"built the tests\n") is None


def test_reports_name_tests_that_ran_and_that_were_skipped(tmp_path: Path) -> None:
    report = (
        '<testsuite name="s"><testcase name="a"/><testcase name="b"><failure/></testcase>'
        '<testcase name="c"><skipped/></testcase></testsuite>'
    )
    (tmp_path / "r.xml").write_text(report)
    assert count_reports(["*.xml"], tmp_path, 0.0) == named("ab", "c")
    (tmp_path / "broken.xml").write_text('<testsuite name="t"><testcase')
    assert count_reports(["*.xml"], tmp_path, 0.0) is None, "a part of the tests is unknown"


def test_record_keeps_the_names_of_a_suite_only_up_to_a_limit() -> None:
    small, large = named("ab"), TestCensus((), tuple(str(number) for number in range(6000)))
    assert small.saved() == small
    assert large.saved() == TestCensus()
