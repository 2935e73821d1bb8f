"""The trials of `rooda selftest`: verdicts from evidence, and trials against a broken rooda."""

import shlex
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from rooda.base.colors import Painter
from rooda.front.selftest import run_trials as running
from rooda.front.selftest import sandbox_trials
from rooda.front.selftest import scratch as scratches
from rooda.front.selftest.misbehaviour import MISBEHAVIOURS
from rooda.front.selftest.run_trials import all_trials, run_trials
from rooda.front.selftest.scratch import Scratch, TrialFailed
from rooda.front.selftest.trial import (
    NO_CRASH,
    NOTHING_LIVES,
    NOTHING_LOST,
    Evidence,
    Need,
    Results,
    Row,
    Trial,
    Verdict,
    ends_with,
    fact,
    judge,
    numbers,
    progress_line,
    results_text,
)
from rooda.world.process.interrupts import Interrupts
from support.children import until
from support.workspace import wait_for

TRIALS = {trial.name: trial for trial in all_trials()}
GOOD = Evidence(code=0, seconds=1.0)


def trial(*claims: object) -> Trial:
    return Trial("a trial", "does something", claims, lambda _: GOOD)  # type: ignore[arg-type]


# -- verdicts --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TRIALS)
def test_no_promise_holds_if_rooda_hangs_and_the_agent_lives_on(name: str) -> None:
    bad = Evidence(seconds=90.0, survivors=("daemon: pid 77",), missing=3, log="Traceback")
    row = judge(TRIALS[name], bad)
    assert row.verdict is Verdict.BROKEN
    assert row.found
    assert row.promise


@pytest.mark.parametrize(
    "claim,evidence,found",
    [
        (NOTHING_LIVES, replace(GOOD, survivors=("daemon: pid 77",)), "daemon: pid 77"),
        (NOTHING_LOST, replace(GOOD, missing=12), "12 bytes"),
        (NO_CRASH, replace(GOOD, log="Traceback (most recent\nKeyError: 1"), "KeyError: 1"),
        (ends_with(130), GOOD, "exit code 0"),
        (ends_with(0), replace(GOOD, code=None, seconds=90.0), "had not ended after 90 s"),
        (ends_with(0), replace(GOOD, code=1, log="what happened\n"), "exit code 1 (what happened)"),
        (fact("work", "kept", "the work stays"), GOOD, "work: None"),
        (numbers("it counts", good=1), GOOD, "no outcome"),
    ],
)
def test_each_claim_is_broken_by_what_contradicts_it(
    claim: object, evidence: Evidence, found: str
) -> None:
    row = judge(trial(claim), evidence)
    assert row.verdict is Verdict.BROKEN
    assert found in row.found


def test_held_row_says_what_was_found() -> None:
    row = judge(trial(ends_with(0), NOTHING_LIVES, NOTHING_LOST, NO_CRASH), GOOD)
    assert row.verdict is Verdict.HELD
    assert row.found == "exit code 0; no process left; all output kept; no internal error"


def test_each_misbehaviour_of_the_kill_matrix_is_tried() -> None:
    assert {one.name for one in MISBEHAVIOURS} <= set(TRIALS)
    assert len(TRIALS) == len(all_trials()), "each name once"


# -- the report ------------------------------------------------------------------------------


def row(verdict: Verdict, name: str = "daemon") -> Row:
    return Row(name, "does this", "that holds", verdict, "found it", 1.0)


def test_report_shows_what_is_broken_and_what_cannot_be_promised() -> None:
    rows = (row(Verdict.HELD), row(Verdict.BROKEN, "comet"), row(Verdict.NOT_HERE, "deletes .git"))
    results = Results(rows, ("git is not installed",), 61.5)
    text = results_text(results, None, Painter())
    assert not results.ok
    assert "broken: comet\n  the agent:  does this\n  promised:   that holds\n" in text
    assert "Cannot be promised here:\n  git is not installed\n" in text
    assert text.endswith("1 promise held, 1 broken, 1 cannot be promised here, in 62 s.\n")
    assert progress_line(rows[2], Painter()) == "  not here  deletes .git (1.0 s)"


@pytest.mark.parametrize(
    "verdict,ok",
    [
        (Verdict.HELD, True),
        (Verdict.NOT_HERE, True),
        (Verdict.BROKEN, False),
        (Verdict.ERROR, False),
    ],
)
def test_only_a_broken_promise_or_a_failed_trial_is_not_ok(verdict: Verdict, ok: bool) -> None:  # noqa: FBT001
    results = Results((row(Verdict.HELD), row(verdict)), (), 1.0)
    assert results.ok is ok
    assert results.to_json()["ok"] is ok


def test_json_has_the_fields_of_the_table() -> None:
    found = Results((row(Verdict.NOT_HERE),), ("no git",), 1.0).to_json()
    assert found["schema_version"] == 1
    assert found["limits"] == ["no git"]
    assert found["trials"] == [
        {
            "name": "daemon",
            "does": "does this",
            "promise": "that holds",
            "verdict": "cannot be promised here",
            "found": "found it",
            "seconds": 1.0,
        }
    ]


# -- real trials -----------------------------------------------------------------------------

# A "rooda" that only runs the agent: it holds nothing, records nothing and checks nothing.
CARELESS = """
import shlex, subprocess, sys
words = sys.argv[1:]
command = words[words.index("--ai-cmd") + 1] if "--ai-cmd" in words else "true"
subprocess.run(shlex.split(command), input=b"", check=False)
"""
# A "rooda" that fails without starting the agent.
USELESS = "import sys; sys.exit('cannot start')"


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A folder for temporary files, in which nothing may be left."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield
    assert list(folder.iterdir()) == []


def replace_rooda(monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    def command(*words: str) -> list[str]:
        return [sys.executable, "-S", "-c", script, *words]

    monkeypatch.setattr(scratches, "own_command", command)


def rows_of(*trials: Trial, interrupts: Interrupts | None = None) -> dict[str, Row]:
    results = run_trials(trials, interrupts or Interrupts(), lambda _: None)
    assert results is not None
    return {one.name: one for one in results.rows}


@pytest.mark.real
def test_trials_find_out_that_a_careless_rooda_breaks_the_promises(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    replace_rooda(monkeypatch, CARELESS)
    names = (
        "daemon",
        "setsid",
        "false SUCCESS",
        "destroys work",
        "deletes its record",
        "prints 50 MB",
    )
    rows = rows_of(*(TRIALS[name] for name in names))
    assert {name: str(one.verdict) for name, one in rows.items()} == dict.fromkeys(names, "broken")
    assert "daemon: pid" in rows["daemon"].found
    assert "escaped: pid" in rows["setsid"].found
    assert "destroyed: good" in rows["destroys work"].found, "there was no second iteration"


@pytest.mark.long
def test_trials_of_the_sandbox_find_out_that_there_is_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sandbox_trials, "_SANDBOX", ())
    monkeypatch.setattr(running, "missing", lambda _: {})
    names = ["writes outside", "reads a secret", "reads variables", "kills outside", "sockets"]
    names.append("plants traps")
    rows = rows_of(*(TRIALS[f"sandbox: {name}"] for name in names))
    assert {str(one.verdict) for one in rows.values()} == {"broken"}
    assert ".profile" in rows["sandbox: writes outside"].found
    assert "post-commit" in rows["sandbox: writes outside"].found
    assert rows["sandbox: reads a secret"].found == "secret: read"
    assert "the key is in a prompt" in rows["sandbox: plants traps"].found
    assert "a program with your rights stays" in rows["sandbox: plants traps"].found
    assert rows["sandbox: reads variables"].found == "secret: read"
    assert rows["sandbox: kills outside"].found == "bystander: killed"
    assert rows["sandbox: sockets"].found == "socket: reached"


@pytest.mark.real
def test_promises_of_the_sandbox_cannot_be_made_without_bubblewrap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("git", "sh", "true"):
        (tmp_path / name).symlink_to(shutil.which(name) or name)
    monkeypatch.setenv("PATH", str(tmp_path))
    trials = [one for one in all_trials() if Need.BWRAP in one.needs]
    rows = rows_of(*trials)
    assert len(rows) >= 9
    assert {str(one.verdict) for one in rows.values()} == {"cannot be promised here"}
    assert all("needs bubblewrap, which is not installed" in one.found for one in rows.values())


@pytest.mark.real
def test_rooda_that_never_ends_is_a_broken_promise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scratches, "PATIENCE", 1.5)
    replace_rooda(monkeypatch, "import sys, time\n'version' in sys.argv or time.sleep(600)")
    one = rows_of(TRIALS["behaves"])["behaves"]
    assert one.verdict is Verdict.BROKEN
    assert "rooda had not ended after" in one.found


@pytest.mark.real
def test_machine_that_is_too_busy_is_no_broken_promise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scratches, "PATIENCE", 0.5)
    monkeypatch.setattr(scratches, "_TOO_SLOW", 0.2)
    replace_rooda(monkeypatch, "import time; time.sleep(600)")
    one = rows_of(TRIALS["behaves"])["behaves"]
    assert one.verdict is Verdict.ERROR
    assert "this machine is too busy" in one.found


@pytest.mark.real
def test_trial_without_its_agent_is_an_error_with_what_rooda_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    replace_rooda(monkeypatch, USELESS)
    one = rows_of(TRIALS["Ctrl+C"])["Ctrl+C"]
    assert one.verdict is Verdict.ERROR
    assert "cannot start" in one.found


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("error", [ValueError("a bug"), TrialFailed("a bug"), OSError("a bug")])
def test_trial_that_crashes_is_a_row_and_the_others_go_on(error: Exception) -> None:
    def crash(_: Scratch) -> Evidence:
        raise error

    bad = replace(trial(NOTHING_LIVES), name="bad", perform=crash)
    rows = rows_of(bad, trial(NOTHING_LIVES))
    assert rows["bad"].verdict is Verdict.ERROR
    assert "a bug" in rows["bad"].found
    assert rows["a trial"].verdict is Verdict.HELD


def test_promise_that_needs_git_cannot_be_made_without_git(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    results = run_trials([TRIALS["destroys work"]], Interrupts(), lambda _: None)
    assert results is not None
    assert [str(one.verdict) for one in results.rows] == ["cannot be promised here"]
    assert "git is not installed" in results.rows[0].found
    assert any("git is not installed" in limit for limit in results.limits)
    assert results.ok


@pytest.mark.parametrize("need", [Need.SUBREAPER, Need.PROC])
def test_promise_that_the_system_cannot_support_is_not_tried(
    monkeypatch: pytest.MonkeyPatch, need: Need
) -> None:
    monkeypatch.setattr(running, "missing", lambda _: {need: "not on this system", Need.GIT: "-"})
    trials = [one for one in all_trials() if need in one.needs]
    assert trials
    rows = rows_of(*trials)
    assert {str(one.verdict) for one in rows.values()} == {"cannot be promised here"}
    assert all("not on this system" in one.found for one in rows.values())


@pytest.mark.real
def test_interrupt_ends_the_trials_and_leaves_nothing(tmp_path: Path) -> None:
    mark = tmp_path / "at-work"

    def work(scratch: Scratch) -> Evidence:
        agent = f"echo yes > {shlex.quote(str(mark))}; sleep 600"
        return scratch.finish(scratch.start(*scratch.shell_agent(agent)))

    interrupts = Interrupts()
    slow = replace(trial(NOTHING_LIVES), perform=work)
    ended: list[object] = []
    thread = threading.Thread(
        target=lambda: ended.append(run_trials([slow, slow, slow], interrupts, lambda _: None))
    )
    thread.start()
    wait_for(mark)
    interrupts.received.append(signal.SIGINT)
    thread.join(30)
    until(lambda: ended == [None], "the trials end")
