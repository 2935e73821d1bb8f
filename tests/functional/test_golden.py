"""What the record and `--json` say about a run is as in the golden files: every name and value.

Together the runs show nearly every fact that rooda keeps: `test_golden_runs_show_nearly_all_facts`
names the others.
"""

import json
import os
import shlex
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rooda.record.rows import IterationRow, RunRow
from rooda.world.state.home import VARIABLE
from support.gitwork import GitWork, git_work
from support.golden import FOLDER, Golden
from support.voices import Claude
from support.workspace import Workspace

RECORD = Path(__file__).parents[1] / "corpus/record-0.1"
JSON = ("--format", "json")
PYTEST = "===== 2 passed, 1 failed in 0.10s ====="
MORE = "===== 4 passed in 0.10s ====="
LEFTOVER = "(setsid sleep 300 >/dev/null 2>&1 &)"
PROMISE = "<promise>SUCCESS</promise>"
BLOCKED = "The key is missing.\\n<promise>FAILURE</promise>"


@pytest.fixture
def work(workspace: Workspace) -> Iterator[GitWork]:
    with git_work(workspace) as found:
        yield found


def claude(work: GitWork, *bodies: str) -> str:
    """A command that plays claude: at its n-th start it runs the n-th body."""
    work.agents(*bodies)
    (work.tools / "agent.sh").rename(work.tools / "claude")
    return f"{shlex.quote(str(work.tools / 'claude'))} -p --output-format stream-json --verbose"


def says(answer: str, *, is_error: bool = False, **more: Any) -> str:
    """A shell command that prints what claude prints in one session."""
    voice = Claude()
    events = [*voice.begins(), *voice.says(answer)]
    events += voice.fails(answer) if is_error else voice.ends(answer)
    events[-1] = {**dict(events[-1]), **more}
    return "printf '%s\\n' " + " ".join(shlex.quote(json.dumps(event)) for event in events)


def rows_of(state: Path) -> dict[str, list[dict[str, Any]]]:
    """The columns and values in the database; the column `data` as an object."""
    found = {}
    with sqlite3.connect(state / "rooda.db") as connection:
        connection.row_factory = sqlite3.Row
        for table in ("runs", "iterations"):
            rows = map(dict, connection.execute(f"SELECT * FROM {table} ORDER BY rowid"))
            found[table] = [row | {"data": json.loads(row["data"])} for row in rows]
    connection.close()
    return found


def places(work: Workspace) -> tuple[Path, ...]:
    """The folders whose names differ from run to run, the inner ones first."""
    return work.path, work.home, work.path.parent, Path(os.environ[VARIABLE])


def check(name: str, work: Workspace, run: str, *logs: str, result: Path | None = None) -> None:
    """Compare everything that rooda says about a run."""
    golden = Golden(name, places(work))
    golden.add_printed("show", work.rooda("show", run, "--json"))
    golden.add_printed("show iteration", work.rooda("show", run, "1", "--json"))
    golden.add_printed("history", work.rooda("history", "--json"))
    golden.add_printed("why", work.rooda("why", run, "--json"))
    golden.add_printed("report", work.rooda("report", run, *JSON))
    golden.add_printed("exported", work.inside("record", "export", run))
    golden.add("shown", work.rooda("show", run).out)
    golden.add("rows", rows_of(work.state))
    if logs:
        events = [json.loads(line) for log in logs for line in log.splitlines() if line[:1] == "{"]
        golden.add("events", [one for one in events if one["event"] != "config_resolved"])
        session = work.state / "runs" / run / "session.log"
        golden.add("session log", session.read_text())
    if result is not None:
        golden.add("result", json.loads(result.read_text()))
    golden.check()


@pytest.mark.real
def test_run_that_proves_and_publishes_its_work_is_as_in_the_golden_file(work: GitWork) -> None:
    checks = work.marker("checks")
    work.settings(
        verify={"command": f"echo . >> {checks}; test $(wc -l < {checks}) != 2",
                "retries": 1, "clean": "test -e one.txt"},
        hooks={"pre_iteration": ["true"], "post_iteration": ["true"]},
        protect={"paths": ["README"]},
        signals={"confirm": 2},
        git={"commit": True, "push": True, "publish": "true"},
    )  # fmt: skip
    work.write("PLAN.md", "- [x] begin\n- [ ] write one\n- [ ] write two\n")
    work.commit("a plan")
    tick = "sed -i.old '0,/\\[ \\]/s//[x]/' PLAN.md; rm -f PLAN.md.old"
    command = claude(
        work,
        f"echo 1 > one.txt; echo more >> README; {tick}; {LEFTOVER}; echo '{PYTEST}'; "
        + says("Wrote one.txt.\n\nDetails."),
        f"{tick}; git commit -qam 'own work'; echo '{MORE}'; " + says(f"All is there. {PROMISE}"),
        says(f"Checked it. {PROMISE}"),
    )
    assert work.rooda("tell", "Mind the gap.").code == 0
    result = work.home / "result.json"
    flags = ("--tasks", "PLAN.md", "--run-id", "proof", "--result", str(result), "-n", "5")
    done = work.work(command, *flags, "--log-format", "json")
    assert done.code == 0, done.err
    check("proof", work, "proof", done.err, result=result)


@pytest.mark.real
def test_run_that_is_aborted_is_as_in_the_golden_file(work: GitWork) -> None:
    work.settings(
        verify={"command": "test -e right.txt"},
        iteration_timeout="1s",
        failure_threshold=4,
        hooks={"on_failure": ["true"], "loop_start": ["true"], "loop_end": ["false"]},
        git={"commit": True, "push": True},
    )
    work.git_hook("pre-commit", "echo 'not like this' >&2; exit 1")
    work.git("remote", "set-url", "origin", "/nowhere/remote.git")
    command = work.agents(
        "echo wrong > wrong.txt; echo done",
        f"trap '' TERM; echo {PROMISE!r}; sleep 300",
        "echo right > right.txt; echo done",
        "echo 'cannot go on' >&2; exit 3",
    )
    result = work.home / "result.json"
    flags = ("--run-id", "aborted", "--result", str(result), "--kill-grace", "1s")
    done = work.work(command, *flags, "--log-format", "json")
    assert done.code == 1, done.err
    check("aborted", work, "aborted", done.err, result=result)


@pytest.mark.real
def test_run_that_is_limited_and_resumed_until_it_is_blocked_is_as_in_the_golden_file(
    work: GitWork,
) -> None:
    refusal = says("usage limit reached, resets in 5 hours", is_error=True, api_error_status=429)
    command = claude(
        work,
        f"echo 1 > one.txt; {says('Wrote one.')}",
        f"{refusal}; exit 1",
        f"echo 2 > two.txt; {says('Wrote two.')}; exit 4",
        says(BLOCKED.replace("\\n", "\n")),
    )
    result = work.home / "result.json"
    flags = ("--run-id", "blocked", "--result", str(result), "--log-format", "json")
    first = work.work(command, *flags, "--no-wait-for-limits")
    assert first.code == 1, first.err
    second = work.rooda("resume", "blocked", "--no-wait-for-limits", *flags[2:])
    assert second.code == 1, second.err
    check("blocked", work, "blocked", first.err, second.err, result=result)


@pytest.mark.real
def test_paused_run_at_its_limit_of_iterations_is_as_in_the_golden_file(work: GitWork) -> None:
    command = work.agents("echo 1 > one.txt", f"echo {PROMISE!r}; exit 1", "true")
    work.settings(hooks={"pre_iteration": ["test $ROODA_ITERATION != 3"]})
    result = work.home / "result.json"
    flags = ("--run-id", "paused", "--result", str(result), "--log-format", "json")
    first = work.work(command, *flags, "--pause-after", "1", "-n", "3")
    second = work.rooda("resume", "paused", *flags[2:])
    check("paused", work, "paused", first.err, second.err, result=result)


@pytest.mark.real
@pytest.mark.usefixtures("unmeasured")  # coverage counts nothing of the fleet
def test_run_of_a_fleet_is_as_in_the_golden_file(work: GitWork) -> None:
    write = "echo line >> work.txt; cat > /dev/null"
    command = work.agents(f"{write}; echo Wrote the first line.", f"{write}; echo {PROMISE!r}")
    work.settings()
    task = work.home / "task.yml"
    task.write_text("- {name: one, context: Write it.}\n")
    done = work.rooda("fleet", "run", str(task), "--ai-cmd", command)
    assert done.code == 0, done.err
    golden = Golden("fleet", places(work))
    golden.add_printed("fleet", work.rooda("fleet", "--json"))
    for word in ("show", "why"):
        golden.add_printed(word, work.rooda("fleet", word, "one", "--json"))
    (fence,) = work.state.rglob("refs/rooda/fleet")
    top = str(fence.parents[2])
    found = work.git(f"--git-dir={top}", "show", "refs/rooda/fleet/one:result.json")
    golden.add("result.json", json.loads(found))
    golden.check()


def test_record_of_0_1_is_shown_as_in_the_golden_file(workspace: Workspace) -> None:
    shutil.copytree(RECORD / "dot-rooda", workspace.state)
    workspace.state.chmod(0o700)
    golden = Golden("record-0.1", (workspace.path,))
    golden.add_printed("history", workspace.rooda("history", "--json"))
    for run in json.loads(workspace.rooda("history", "--json").out):
        for command, flags in (("show", ("--json",)), ("why", ("--json",)), ("report", JSON)):
            done = workspace.rooda(command, run["run"], *flags)
            golden.add_printed(f"{command} {run['run']}", done)
    golden.add("rows", rows_of(workspace.state))
    golden.check()


def test_golden_runs_show_nearly_all_facts() -> None:
    kinds = {"runs": RunRow, "iterations": IterationRow}
    unseen = {
        name: set(kind.__struct_fields__) - {"unreadable", "earlier_attempts"}  # never stored
        for name, kind in kinds.items()
    }
    for file in FOLDER.glob("*.json"):
        for table, rows in json.loads(file.read_text()).get("rows", {}).items():
            for row in rows:
                unseen[table] -= {*row, *row["data"]}
    assert unseen == {
        "runs": {"agents_changed", "pruned", "tasks_left", "verify_seconds"},
        "iterations": {
            *("changes_unknown", "secrets_left_out", "slept", "tests_lost", "trimmed"),
            *("unsafe_tree", "unwritable", "segments"),
        },
    }
