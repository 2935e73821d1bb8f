"""The stage that runs the user's check, and looks at whether it still has all of its tests."""

from rooda.base.secrets.sensitive import without_secret_values
from rooda.loop.context import IterationContext
from rooda.loop.events.verify import TestsLost
from rooda.loop.outcome import Outcome, Verdict
from rooda.loop.stages import verify
from rooda.loop.stages.changes import find_tests
from rooda.loop.stages.verify import Check
from rooda.plan.settings.settings import PARSE_TESTS, VERIFY_COMMAND, VERIFY_FEEDBACK, VERIFY_SHRINK
from rooda.world.agents.failure_kinds import FailureKind
from rooda.world.testresults.census import LossKind, TestLoss, compare, next_reference


def run_verify(context: IterationContext) -> None:
    """Run the user's check, read the tests that it prints, and compare them with the last ones."""
    outcome = context.decided
    if not verify.is_due(context.plan, outcome):
        return
    context.others_may_change_files()
    before = context.state.failed_before
    check, as_before = verify.run(
        context.plan, context.number, context.services, context.place, before
    )
    find_tests(context, check.finished.output)
    context.add_feedback(verify.feedback(context.plan, check.finished, as_before=as_before))
    command = context.plan.values[VERIFY_COMMAND] or ""
    context.outcome = verify.judge(outcome, check.finished, command, as_before=as_before)
    if context.plan.values[PARSE_TESTS]:
        _compare_tests(context, check)


def _compare_tests(context: IterationContext, check: Check) -> None:
    """Report tests that are gone or skipped since the last verify; where asked, fail for them.

    Only a check that passed is judged: one that failed may have stopped at its first failed test.
    """
    fails, passed = context.plan.values[VERIFY_SHRINK] == "fail", check.finished.passed
    before, now = context.census, verify.tests_of(context.plan, check)
    if now is None and not context.changed_anything:
        return  # a build tool that has nothing to do runs no tests
    context.census = next_reference(before, now, passed=passed, keeps=fails)
    loss = compare(before, now) if passed else None
    if loss is None:
        return
    is_failure = fails and loss.kind is LossKind.FEWER
    lost = TestsLost(context.number, loss, is_failure)
    context.learn(tests_lost=lost)
    context.services.emit(lost)
    if is_failure:
        reason = f"verify passed with fewer tests: {loss.brief}"
        context.outcome = Outcome(
            Verdict.FAILURE, FailureKind.FEWER_TESTS, reason, evidence=loss.words
        )
        if context.plan.values[VERIFY_FEEDBACK]:
            shown = without_secret_values(context.plan.values[VERIFY_COMMAND] or "")
            context.add_feedback(_words(loss, shown))


def _words(loss: TestLoss, command: str) -> str:
    """Return what the next prompt says about lost tests."""
    first = (
        f"After the last iteration the check `{command}` passed, but with fewer tests than before: "
        f"{loss.numbers}. That does not count as success. Bring the missing tests back, and make "
        "skipped ones run again. If a test has to change, keep as many tests as there were."
    )
    lines = [first]
    for title, found, total in (
        ("Tests that are gone", loss.gone, loss.gone_total),
        ("Tests that are skipped now", loss.newly_skipped, loss.newly_skipped_total),
    ):
        if found:
            more = [f"... {total - len(found)} more"] if total > len(found) else []
            lines.append(f"{title}:\n\n{verify.indented(chr(10).join([*found, *more]))}")
    return "\n\n".join(lines)
