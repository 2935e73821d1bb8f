"""Agents that corrupt the record or the repository: the run ends cleanly and reports the damage."""

import contextlib
import json
import re
import shutil
import sqlite3
import sys
from pathlib import Path

import pytest

from support.children import Nursery
from support.faults import powerless, small_disk
from support.finished import Finished, Rooda
from support.recorded import SUCCESS, asked, git, statuses, versioned
from support.workspace import Workspace

pytestmark = pytest.mark.real

DATABASE = "$STATE/rooda.db"
GARBAGE = "head -c 5000 /dev/urandom >"
REWRITTEN = r"`[^`]*/rooda\.db` .* during the run.*: rooda wrote it again"
DROP = """
import os, sqlite3
database = sqlite3.connect(os.environ['STATE'] + '/rooda.db')
database.execute('drop table runs')
database.execute('drop table iterations')
database.commit()
"""
FORGET = "git reflog expire --expire=now --all; git gc -q --prune=now"
COMMIT = "date +%N > kept.txt; git commit -qam"

# Each name is the id of a case. Its value is the command of the agent, and a pattern of the warning
# that rooda must log, if any.
ATTACKS_ON_THE_RECORD = {
    "deletes the folder": ("rm -rf $STATE", REWRITTEN),
    "deletes the database": (f"rm -f {DATABASE}*", REWRITTEN),
    "deletes the WAL of the database": (f"rm -f {DATABASE}-wal", REWRITTEN),
    "deletes the shared memory of the database": (f"rm -f {DATABASE}-shm", REWRITTEN),
    "deletes the transcripts": ("rm -rf $STATE/runs", ""),
    "deletes the shadow repository": ("rm -rf $STATE/git", ""),
    "writes garbage into the shadow's index": (f"{GARBAGE} $STATE/git/index", ""),
    "writes garbage into the shadow's head": (f"{GARBAGE} $STATE/git/HEAD", ""),
    "writes garbage into the shadow's config": (f"{GARBAGE} $STATE/git/config", ""),
    "writes garbage into run.json": (f"{GARBAGE} $STATE/run.json", ""),
    "makes the database a link": (f"rm {DATABASE}; ln -s $PWD/kept.txt {DATABASE}", REWRITTEN),
    "makes the database a pipe": (f"rm {DATABASE}; mkfifo {DATABASE}", REWRITTEN),
    "makes the database a folder": (f"rm {DATABASE}; mkdir {DATABASE}", REWRITTEN),
    "makes the WAL a pipe": (f"rm -f {DATABASE}-wal; mkfifo {DATABASE}-wal", REWRITTEN),
    "makes the shadow a link": ("mv $STATE/git $STATE.moved; ln -s $STATE.moved $STATE/git", ""),
    "makes the transcripts a pipe": ("rm -rf $STATE/runs; mkfifo $STATE/runs", ""),
    "makes the transcripts a link": (
        "mv $STATE/runs $STATE.moved; ln -s $STATE.moved $STATE/runs",
        "",
    ),
    "drops the tables": (
        f'{sys.executable} -S -c "{DROP}"',
        REWRITTEN,
    ),
}
ATTACKS_ON_THE_REPOSITORY = {
    "rewrites history": (
        f"git checkout -q --orphan other; git commit -qm new; git branch -qD main; {FORGET}",
        "",
    ),
    "leaves a rebase in progress": (
        f"git checkout -qb side; {COMMIT} a; git checkout -q main; {COMMIT} b; git rebase -q side",
        "",
    ),
    "leaves a detached head": ("git checkout -q --detach", ""),
    "leaves an index lock": (": > .git/index.lock", ""),
    "deletes the repository": ("rm -rf .git", r"WARN"),
    "deletes the objects": ("rm -rf .git/objects; mkdir .git/objects", ""),
    "writes garbage into the head": (f"{GARBAGE} .git/HEAD", r"WARN"),
    "makes the repository a pipe": ("rm -rf .git; mkfifo .git", r"WARN"),
}
FAST = {
    "deletes the folder",
    "deletes the database",
    "makes the database a pipe",
    "leaves an index lock",
    "deletes the repository",
}


def attacks(table: dict[str, tuple[str, str]]) -> list[object]:
    """Return each case as a parameter, with the slow ones marked."""
    marks = {name: () if name in FAST else (pytest.mark.long,) for name in table}
    return [pytest.param(*case, id=name, marks=marks[name]) for name, case in table.items()]


@pytest.fixture
def repo(workspace: Workspace) -> Workspace:
    return versioned(workspace)


@pytest.fixture
def rooda(repo: Workspace) -> Rooda:
    """Run `rooda ARGS` in this process, to read the record."""
    return repo.inside


def ended_cleanly(done: Finished, code: int = 0) -> None:
    assert "Traceback" not in done.err, done.err
    assert "Internal error" not in done.err, done.err
    assert done.code == code, done.err


def is_reported_once(done: Finished, pattern: str) -> None:
    found = [line for line in done.log if re.search(pattern, line)]
    assert found, done.err
    assert len(set(found)) == len(found), found  # the same warning is not repeated


def check_that_views_work(rooda: Rooda) -> None:
    """Check that `history`, `show` and `why` succeed without any error."""
    for words in (("history",), ("show",), ("why",), ("show", "3"), ("why", "2")):
        done = rooda(*words)
        assert (done.code, done.err) == (0, ""), (words, done.err)


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("attack,pattern", attacks(ATTACKS_ON_THE_RECORD))
def test_lost_record_is_reported_and_does_not_stop_the_run(
    repo: Workspace, rooda: Rooda, attack: str, pattern: str
) -> None:
    command = repo.agents("echo 1 > one.txt", f"{attack}; echo 2 > two.txt", SUCCESS)
    done = repo.rooda("work", "--ai-cmd", command)
    ended_cleanly(done)
    if pattern:
        is_reported_once(done, pattern)
    run = asked(rooda, "show")
    assert run["status"] == "success"
    assert statuses(run) == [(number, "completed") for number in (1, 2, 3)]
    assert run["iterations"][1]["result"]["files_created"] == ["two.txt"]
    check_that_views_work(rooda)
    assert (repo.path / "kept.txt").read_text() == "of the user\n"


@pytest.mark.real(rows=1)
@pytest.mark.parametrize(
    "attack", [attack for attack, _ in ATTACKS_ON_THE_RECORD.values() if "mv " not in attack]
)
def test_run_after_a_lost_record_starts_cleanly(repo: Workspace, rooda: Rooda, attack: str) -> None:
    """The agent deletes the record in the last iteration, so only the next start can repair it."""
    assert repo.rooda("work", "--ai-cmd", repo.agent(f"{attack}; {SUCCESS}")).code == 0
    ended_cleanly(repo.rooda("work", "--ai-cmd", "true", "-n", "2"), 2)
    assert statuses(asked(rooda, "show")) == [(1, "completed"), (2, "completed")]
    assert len(asked(rooda, "history")) == 2


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("attack,pattern", attacks(ATTACKS_ON_THE_REPOSITORY))
def test_corrupted_repository_is_reported_and_does_not_stop_the_run(
    repo: Workspace, rooda: Rooda, attack: str, pattern: str
) -> None:
    command = repo.agents("echo 1 > one.txt", f"{attack}; echo 2 > two.txt", SUCCESS)
    done = repo.rooda("work", "--ai-cmd", command)
    ended_cleanly(done)
    if pattern:
        assert re.search(pattern, done.err), done.err
    run = asked(rooda, "show")
    assert run["status"] == "success"
    assert statuses(run) == [(number, "completed") for number in (1, 2, 3)]
    check_that_views_work(rooda)
    assert (repo.path / "two.txt").read_text() == "2\n"
    if "rm -rf" in attack or GARBAGE in attack:
        unknown = run["iterations"][1]
        assert unknown["changes_unknown"] or unknown["result"]["files_created"] == ["two.txt"]
        return
    assert "two.txt" in run["iterations"][1]["result"]["files_created"]
    assert rooda("restore", "1").code == 0
    assert not (repo.path / "two.txt").exists()
    (repo.path / ".git/index.lock").unlink(missing_ok=True)
    assert git(repo, "fsck", "--no-dangling", "--no-progress") == ""


ROWS = {
    "an unknown status": "update iterations set status = 'great' where number = 1",
    "no result": "update iterations set data = '{}' where number = 1",
    "a result of the wrong type": "update iterations set data = '{\"result\": 7}' where number = 1",
    "durations of the wrong type": (
        "update iterations set data = json_set(data, '$.result.duration_ms', 'x', "
        "'$.duration', 'long') where number = 1"
    ),
    "an invalid time": "update iterations set started_at = 'long ago' where number = 1",
    "keys of the wrong type": (
        "update iterations set data = json_set(data, '$.hooks', 7, '$.verify', 'x', "
        "'$.reason', 3, '$.cleaned_up', 'x', '$.snapshot', 5) where number = 1"
    ),
    "keys of the run of the wrong type": (
        "update runs set data = json_set(data, '$.reason', 3, '$.settings', 7, "
        "'$.hooks', 'x', '$.summary', 4, '$.rule', json('[1]'))"
    ),
    "a huge iteration number": (
        "update iterations set number = 9223372036854775807, attempt = -1 where number = 1"
    ),
}


@pytest.fixture(scope="module")
def a_record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the state folder of a run with two iterations."""
    folder = tmp_path_factory.mktemp("once")
    workspace = Workspace(folder / "work", folder)
    workspace.path.mkdir()
    assert workspace.work("true", "-n", "2").code == 2
    return workspace.state


def changed(workspace: Workspace, change: str, *values: str) -> None:
    """Run one SQL statement on the record, as a hostile process could."""
    with contextlib.closing(sqlite3.connect(workspace.state / "rooda.db")) as connection:
        connection.execute(change, values)
        connection.commit()


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("change", ROWS.values(), ids=ROWS)
def test_invalid_rows_do_not_break_the_views(
    a_record: Path,
    workspace: Workspace,
    change: str,
) -> None:
    """The rows are changed after the run, because a running run overwrites them."""
    shutil.copytree(a_record, workspace.state)
    changed(workspace, change)
    rooda = workspace.inside
    for words in (("history",), ("show",), ("why",), ("show", "1"), ("why", "1"), ("show", "2")):
        for flags in ((), ("--json",)):
            done = rooda(*words, *flags)
            assert done.code in (0, 1), (words, done.err)
            assert "Internal error" not in done.err, (words, done.err)
    # An invalid iteration must not prevent the views of another iteration.
    assert rooda("show", "2").code == 0
    assert rooda("history").code == 0


def test_show_names_the_keys_that_it_cannot_read(
    a_record: Path,
    workspace: Workspace,
) -> None:
    shutil.copytree(a_record, workspace.state)
    changed(workspace, ROWS["keys of the wrong type"])
    changed(workspace, ROWS["keys of the run of the wrong type"])
    rooda = workspace.inside
    words = r"Unreadable +reason, cleaned_up, snapshot, verify, hooks \(something changed"
    assert re.search(words, rooda("show", "1").out)
    assert "Exit code" in rooda("show", "1").out
    words = r"Unreadable +rule, reason, summary, settings, hooks \(something changed"
    assert re.search(words, rooda("show").out)


def test_run_name_with_a_path_in_the_record_is_ignored(
    a_record: Path,
    workspace: Workspace,
) -> None:
    """A hostile row cannot make rooda read outside of its state folder."""
    shutil.copytree(a_record, workspace.state)
    changed(workspace, "update runs set run = '../../..'")
    changed(workspace, "update iterations set run = '../../..'")
    rooda = workspace.inside
    assert asked(rooda, "history") == []
    assert rooda("show", "../../..", "1", "--output").code == 1


def test_invalid_saved_state_does_not_crash_a_resume(repo: Workspace) -> None:
    assert repo.rooda("work", "--ai-cmd", "true", "-n", "2").code == 2
    for state in ("7", '{"iteration": "x"}', '{"iteration": -5}', "[]"):
        changed(repo, "update runs set data = json_set(data, '$.state', json(?))", state)
        done = repo.rooda("work", "--resume", "--ai-cmd", "true", "-n", "3")
        assert "Internal error" not in done.err, (state, done.err)
        assert done.code in (1, 2), (state, done.err)


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("what", ["$STATE", DATABASE])
def test_removed_permissions_do_not_stop_the_run(
    repo: Workspace, rooda: Rooda, nursery: Nursery, what: str
) -> None:
    command = repo.agents("exit 0", f"chmod 000 {what}", f"chmod 700 {what}; {SUCCESS}")
    done = nursery.start(repo, "work", "--ai-cmd", command, before=powerless()).finish()
    ended_cleanly(done)
    assert statuses(asked(rooda, "show")) == [(number, "completed") for number in (1, 2, 3)]


def test_full_disk_is_reported_and_the_record_is_complete_once_there_is_space(
    repo: Workspace, nursery: Nursery, rooda: Rooda
) -> None:
    fill = "cat /dev/zero > filler 2>/dev/null; cat /dev/zero > filler2 2>/dev/null"
    starts = str(repo.home / "starts")  # the workspace has no space left for the count
    cases = f"1) ;; 2) {fill} ;; 3) ;; *) rm filler*; {SUCCESS} ;;"
    count = f"n=$(($(cat {starts} 2>/dev/null || echo 0) + 1)); echo $n > {starts}"
    command = repo.agent(f"{count}; case $n in {cases} esac; true")
    before = small_disk(repo, "16m")
    keep = f'"$@"; code=$?; cp -a $STATE {repo.home}/record; exit $code'
    running = nursery.start(
        repo, "work", "--ai-cmd", command, before=(*before, "sh", "-c", keep, "sh")
    )
    done = running.finish(40)
    ended_cleanly(done)
    is_reported_once(done, r"record can't be written .*(disk is full|No space left)")
    shutil.copytree(repo.home / "record", repo.state, dirs_exist_ok=True)
    run = asked(rooda, "show")
    assert run["status"] == "success"
    assert statuses(run) == [(number, "completed") for number in (1, 2, 3, 4)]
    check_that_views_work(rooda)


def test_agent_that_corrupts_the_record_in_each_iteration_changes_no_outcome(
    repo: Workspace, rooda: Rooda
) -> None:
    wrecks = [
        "rm -rf $STATE",
        *(attack for attack, _ in ATTACKS_ON_THE_RECORD.values() if "ln -s" not in attack),
    ]
    command = repo.agents(*(f"{{ {attack}; }} 2>/dev/null; exit 0" for attack in wrecks), SUCCESS)
    done = repo.rooda("work", "--ai-cmd", command, "-u", timeout=60)
    ended_cleanly(done)
    run = asked(rooda, "show")
    assert run["status"] == "success"
    assert [number for number, _ in statuses(run)] == list(range(1, len(wrecks) + 2))
    assert git(repo, "fsck", "--no-dangling", "--no-progress") == ""


COMMANDS = (
    *(("history",), ("history", "--all"), ("show",), ("show", "1"), ("why",), ("why", "1")),
    *(("follow",), ("report",), ("diff", "1"), ("restore", "1"), ("resume",)),
    *(("tell", "x"), ("stop",), ("show", "--output"), ("history", "--json"), ("show", "--json")),
    *(("report", "-o", "report.md"), ("record", "export", "copy.json"), ("list",), ("doctor",)),
)
ENDLESS_VIEW = """
drop table runs;
create view runs as with recursive n(x) as (select 1 union all select x + 1 from n)
select x as run, x as procedure, x as status, x as started_at, x as ended_at, x as pid,
x as pid_started, x as host, x as boot, x as workspace, x as data from n;
"""
CODES = "\x1b]0;PWNED\x07\x1b[2J\x9b2J\u202e\u2066"


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_record_with_an_endless_view_is_answered_with_an_error(
    a_record: Path, workspace: Workspace, words: tuple[str, ...]
) -> None:
    shutil.copytree(a_record, workspace.state)
    with contextlib.closing(sqlite3.connect(workspace.state / "rooda.db")) as connection:
        connection.executescript(ENDLESS_VIEW)
    done = workspace.rooda(*words, timeout=20)
    assert "Internal error" not in done.err
    if words[0] not in ("tell", "stop", "restore", "list", "doctor") and "--all" not in words:
        assert done.code == 1
        assert re.search(r"rooda\.db` can't be read \(its table `runs` is .*mv ", done.err), (
            done.err
        )


def test_run_puts_a_record_with_an_endless_view_aside(a_record: Path, workspace: Workspace) -> None:
    shutil.copytree(a_record, workspace.state)
    with contextlib.closing(sqlite3.connect(workspace.state / "rooda.db")) as connection:
        connection.executescript(ENDLESS_VIEW)
    done = workspace.work("true", "-n", "1")
    ended_cleanly(done, 2)
    assert "was broken (its table `runs` is missing, or is not the one" in done.err
    assert "put aside as `rooda.db.broken-1`" in done.err


def with_codes(value: object) -> object:
    """Return JSON with control codes at the end of each text."""
    if isinstance(value, dict):
        return {name: with_codes(one) for name, one in value.items()}
    if isinstance(value, list):
        return [with_codes(one) for one in value]
    return value + CODES if isinstance(value, str) else value


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_control_codes_of_a_forged_record_do_not_reach_the_terminal(
    a_record: Path, workspace: Workspace, words: tuple[str, ...]
) -> None:
    shutil.copytree(a_record, workspace.state)
    with contextlib.closing(sqlite3.connect(workspace.state / "rooda.db")) as connection:
        for table, columns in {
            "runs": "procedure status started_at ended_at host boot workspace",
            "iterations": "status started_at ended_at",
        }.items():
            for column in columns.split():
                connection.execute(f"update {table} set {column} = {column} || ?", [CODES])
            for place, data in connection.execute(f"select rowid, data from {table}").fetchall():
                forged = json.dumps(with_codes(json.loads(data)))
                connection.execute(f"update {table} set data = ? where rowid = ?", [forged, place])
        # One more run, with codes in its name.
        columns = "procedure, status, started_at, ended_at, pid, pid_started, host, boot, workspace"
        connection.execute(
            f"insert into runs select run || ?, {columns}, data from runs limit 1", [CODES]
        )
        connection.commit()
    done = workspace.rooda(*words, timeout=20)
    assert "Internal error" not in done.err
    for code in ("\x1b]", "\x1b[2J", "\x9b", "\x07", "\u202e", "\u2066"):
        assert code not in done.out + done.err


@pytest.mark.long
def test_history_of_a_forged_record_lists_its_newest_runs(
    a_record: Path,
    workspace: Workspace,
) -> None:
    """A million runs would take minutes; rooda reads each row that it lists."""
    shutil.copytree(a_record, workspace.state)
    changed(
        workspace,
        "insert into runs with recursive n(x) as (select 1 union all select x + 1 from n limit ?) "
        "select 'forged-' || x, procedure, 'running', started_at, null, pid, pid_started, host, "
        "boot, workspace, '{}' from n, runs",
        "3000",
    )
    rooda = workspace.inside
    done = rooda("history", "--json")
    assert len(json.loads(done.out)) == 1000
    assert done.err == "Without -n, rooda lists at most 1000 runs of a work tree.\n"
    assert len(asked(rooda, "history", "-n", "1500")) == 1500
