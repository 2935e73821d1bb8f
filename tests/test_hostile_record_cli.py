"""Agents that spoil the record or the repository: the run ends in order and says what it found."""

import contextlib
import re
import shutil
import sqlite3
import sys
from pathlib import Path

import pytest

from support.children import Nursery
from support.faults import powerless, small_disk
from support.recorded import SUCCESS, asked, git, statuses, versioned
from support.surface import Inside
from support.workspace import Finished, Workspace

pytestmark = pytest.mark.slow

DATABASE = ".rooda/rooda.db"
GARBAGE = "head -c 5000 /dev/urandom >"
WRITTEN_ANEW = r"`\.rooda/rooda\.db` .* while the run was at work.*: it was written anew"
DROP = f"""
import sqlite3
database = sqlite3.connect('{DATABASE}')
database.execute('drop table runs')
database.execute('drop table iterations')
database.commit()
"""
FORGET = "git reflog expire --expire=now --all; git gc -q --prune=now"
COMMIT = "date +%N > kept.txt; git commit -qam"

# What an agent does: the deed, and what is said of it, if that is worth a word.
TO_THE_RECORD = {
    "deletes the folder": ("rm -rf .rooda", WRITTEN_ANEW),
    "deletes the database": (f"rm -f {DATABASE}*", WRITTEN_ANEW),
    "deletes the log of the database": (f"rm -f {DATABASE}-wal", WRITTEN_ANEW),
    "deletes the index of that": (f"rm -f {DATABASE}-shm", WRITTEN_ANEW),
    "deletes the transcripts": ("rm -rf .rooda/runs", ""),
    "deletes the shadow of the repository": ("rm -rf .rooda/git", ""),
    "writes garbage into the database": (f"{GARBAGE} {DATABASE}", ""),
    "writes garbage into the log of it": (f"{GARBAGE} {DATABASE}-wal", ""),
    "writes garbage into the index of that": (f"{GARBAGE} {DATABASE}-shm", ""),
    "cuts the database": (f": > {DATABASE}", ""),
    "cuts the index of its log": (f": > {DATABASE}-shm", ""),
    "writes garbage into the shadow's index": (f"{GARBAGE} .rooda/git/index", ""),
    "writes garbage into the shadow's head": (f"{GARBAGE} .rooda/git/HEAD", ""),
    "writes garbage into the shadow's config": (f"{GARBAGE} .rooda/git/config", ""),
    "writes garbage into the note": (f"{GARBAGE} .rooda/run.json", ""),
    # Rooda may make the folder anew in between: its note is written while the agent starts.
    "makes the folder a link": (
        "mv .rooda ../moved; while ! ln -sT ../moved .rooda 2>/dev/null; do rm -rf .rooda; done",
        r"symbolic link",
    ),
    "makes the database a link": (f"rm {DATABASE}; ln -s ../kept.txt {DATABASE}", WRITTEN_ANEW),
    "makes the database a pipe": (f"rm {DATABASE}; mkfifo {DATABASE}", WRITTEN_ANEW),
    "makes the database a folder": (f"rm {DATABASE}; mkdir {DATABASE}", WRITTEN_ANEW),
    "makes the log a pipe": (f"rm -f {DATABASE}-wal; mkfifo {DATABASE}-wal", WRITTEN_ANEW),
    "makes the shadow a link": ("mv .rooda/git ../moved; ln -s ../../moved .rooda/git", ""),
    "makes the shadow a pipe": ("rm -rf .rooda/git; mkfifo .rooda/git", ""),
    "makes the shadow a file": ("rm -rf .rooda/git; echo x > .rooda/git", ""),
    "makes the transcripts a pipe": ("rm -rf .rooda/runs; mkfifo .rooda/runs", ""),
    "makes the transcripts a link": ("mv .rooda/runs ../moved; ln -s ../../moved .rooda/runs", ""),
    "drops the tables": (
        f'{sys.executable} -S -c "{DROP}"',
        WRITTEN_ANEW,
    ),
}
TO_THE_REPOSITORY = {
    "rewrites history": (
        f"git checkout -q --orphan other; git commit -qm anew; git branch -qD main; {FORGET}",
        "",
    ),
    "leaves a rebase in progress": (
        f"git checkout -qb side; {COMMIT} a; git checkout -q main; {COMMIT} b; git rebase -q side",
        "",
    ),
    "leaves a detached head": ("git checkout -q --detach", ""),
    "leaves a lock of the index": (": > .git/index.lock", ""),
    "deletes our refs": (
        "git for-each-ref --format='delete %(refname)' refs/rooda | git update-ref --stdin",
        r"refs of earlier snapshots had been deleted or changed",
    ),
    "deletes the repository": ("rm -rf .git", r"WARN"),
    "deletes the objects": ("rm -rf .git/objects; mkdir .git/objects", r"WARN"),
    "writes garbage into the head": (f"{GARBAGE} .git/HEAD", r"WARN"),
    "makes the repository a pipe": ("rm -rf .git; mkfifo .git", r"WARN"),
}
FAST = {
    "deletes the folder",
    "writes garbage into the database",
    "makes the database a pipe",
    "leaves a lock of the index",
    "deletes the repository",
}


def deeds(table: dict[str, tuple[str, str]]) -> list[object]:
    """Each as a case; to try all of them takes its time."""
    marks = {name: () if name in FAST else (pytest.mark.slow,) for name in table}
    return [pytest.param(*case, id=name, marks=marks[name]) for name, case in table.items()]


@pytest.fixture
def repo(workspace: Workspace) -> Workspace:
    return versioned(workspace)


@pytest.fixture
def look(
    repo: Workspace, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Inside:
    """`rooda ARGS` in this process, to see what is in the record."""
    return Inside(repo, monkeypatch, capfd)


def in_order(done: Finished, code: int = 0) -> None:
    assert "Traceback" not in done.err, done.err
    assert "Internal error" not in done.err, done.err
    assert done.code == code, done.err


def is_told(done: Finished, said: str) -> None:
    found = [line for line in done.log if re.search(said, line)]
    assert found, done.err
    assert len(set(found)) == len(found), found  # what was said once is not said again


def reads(look: Inside) -> None:
    """Whoever looks sees something, and no complaint about us."""
    for words in (("history",), ("show",), ("why",), ("show", "3"), ("why", "2")):
        done = look(*words)
        assert (done.code, done.err) == (0, ""), (words, done.err)


@pytest.mark.parametrize("deed,said", deeds(TO_THE_RECORD))
def test_who_spoils_the_record_is_told_of_and_stops_nothing(
    repo: Workspace, look: Inside, deed: str, said: str
) -> None:
    command = repo.agents("echo 1 > one.txt", f"{deed}; echo 2 > two.txt", SUCCESS)
    done = repo.rooda("work", "--ai-cmd", command)
    in_order(done)
    if said:
        is_told(done, said)
    moved = repo.path.parent / "moved"
    if (repo.path / ".rooda").is_symlink():
        (repo.path / ".rooda").unlink()
        shutil.copytree(moved, repo.path / ".rooda")
        assert statuses(asked(look, "show"))[0] == (1, "completed")
        return
    run = asked(look, "show")
    assert run["status"] == "success"
    assert statuses(run) == [(number, "completed") for number in (1, 2, 3)]
    assert run["iterations"][1]["result"]["files_created"] == ["two.txt"]
    reads(look)
    assert (repo.path / "kept.txt").read_text() == "of the user\n"


@pytest.mark.slow
@pytest.mark.parametrize("deed", [deed for deed, _ in TO_THE_RECORD.values() if "mv " not in deed])
def test_after_a_spoilt_end_the_next_run_starts(repo: Workspace, look: Inside, deed: str) -> None:
    """Nobody mends what the last agent did, but the next start does."""
    assert repo.rooda("work", "--ai-cmd", repo.agent(f"{deed}; {SUCCESS}")).code == 0
    in_order(repo.rooda("work", "--ai-cmd", "true", "-n", "2"), 2)
    assert statuses(asked(look, "show")) == [(1, "completed"), (2, "completed")]
    assert len(asked(look, "history")) == 2


@pytest.mark.parametrize("deed,said", deeds(TO_THE_REPOSITORY))
def test_who_spoils_the_repository_is_told_of_and_stops_nothing(
    repo: Workspace, look: Inside, deed: str, said: str
) -> None:
    command = repo.agents("echo 1 > one.txt", f"{deed}; echo 2 > two.txt", SUCCESS)
    done = repo.rooda("work", "--ai-cmd", command)
    in_order(done)
    if said:
        assert re.search(said, done.err), done.err
    run = asked(look, "show")
    assert run["status"] == "success"
    assert statuses(run) == [(number, "completed") for number in (1, 2, 3)]
    reads(look)
    assert (repo.path / "two.txt").read_text() == "2\n"
    if "rm -rf" in deed or GARBAGE in deed:
        unknown = run["iterations"][1]
        assert unknown["changes_unknown"] or unknown["result"]["files_created"] == ["two.txt"]
        return
    assert "two.txt" in run["iterations"][1]["result"]["files_created"]
    assert look("restore", "1").code == 0
    assert not (repo.path / "two.txt").exists()
    (repo.path / ".git/index.lock").unlink(missing_ok=True)
    assert git(repo, "fsck", "--no-dangling", "--no-progress") == ""


ROWS = {
    "a status of their own": "update iterations set status = 'great' where number = 1",
    "no result at all": "update iterations set data = '{}' where number = 1",
    "a result that is none": "update iterations set data = '{\"result\": 7}' where number = 1",
    "numbers that are none": (
        "update iterations set data = json_set(data, '$.result.duration_ms', 'x', "
        "'$.duration', 'long') where number = 1"
    ),
    "times that are none": "update iterations set started_at = 'long ago' where number = 1",
    "parts of other kinds": (
        "update iterations set data = json_set(data, '$.hooks', 7, '$.verify', 'x', "
        "'$.reason', 3, '$.cleaned_up', 'x', '$.snapshot', 5) where number = 1"
    ),
    "a run of other kinds": (
        "update runs set data = json_set(data, '$.reason', 3, '$.settings', 7, "
        "'$.hooks', 'x', '$.summary', 4, '$.rule', json('[1]'))"
    ),
    "an iteration far away": (
        "update iterations set number = 9223372036854775807, attempt = -1 where number = 1"
    ),
}


@pytest.fixture(scope="module")
def a_record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The state folder of a run with two iterations."""
    folder = tmp_path_factory.mktemp("once")
    workspace = Workspace(folder / "work", folder)
    workspace.path.mkdir()
    assert workspace.work("true", "-n", "2").code == 2
    return workspace.path / ".rooda"


def changed(workspace: Workspace, change: str, *values: str) -> None:
    """Let somebody write to the record who knows how."""
    with contextlib.closing(sqlite3.connect(workspace.path / DATABASE)) as connection:
        connection.execute(change, values)
        connection.commit()


@pytest.mark.parametrize("change", ROWS.values(), ids=ROWS)
def test_rows_that_make_no_sense_break_no_look(
    a_record: Path,
    workspace: Workspace,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    change: str,
) -> None:
    """After the run: while it is at work it writes over them."""
    shutil.copytree(a_record, workspace.path / ".rooda")
    changed(workspace, change)
    look = Inside(workspace, monkeypatch, capfd)
    for words in (("history",), ("show",), ("why",), ("show", "1"), ("why", "1"), ("show", "2")):
        for flags in ((), ("--json",)):
            done = look(*words, *flags)
            assert done.code in (0, 1), (words, done.err)
            assert "Internal error" not in done.err, (words, done.err)
    # What somebody did to one iteration is no reason not to show another.
    assert look("show", "2").code == 0
    assert look("history").code == 0


def test_show_names_the_parts_that_it_can_not_read(
    a_record: Path,
    workspace: Workspace,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    shutil.copytree(a_record, workspace.path / ".rooda")
    changed(workspace, ROWS["parts of other kinds"])
    changed(workspace, ROWS["a run of other kinds"])
    look = Inside(workspace, monkeypatch, capfd)
    words = r"Unreadable +reason, cleaned_up, snapshot, verify, hooks \(something changed"
    assert re.search(words, look("show", "1").out)
    assert "Exit code" in look("show", "1").out
    words = r"Unreadable +reason, summary, rule, hooks, settings \(something changed"
    assert re.search(words, look("show").out)


def test_an_agent_can_not_slip_another_into_the_record(
    a_record: Path,
    workspace: Workspace,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """A row with a name that leads elsewhere is nobody's run."""
    shutil.copytree(a_record, workspace.path / ".rooda")
    changed(workspace, "update runs set run = '../../..'")
    changed(workspace, "update iterations set run = '../../..'")
    look = Inside(workspace, monkeypatch, capfd)
    assert asked(look, "history") == []
    assert look("show", "../../..", "1", "--output").code == 1


@pytest.mark.slow
def test_a_state_that_makes_no_sense_is_no_reason_to_crash(repo: Workspace) -> None:
    assert repo.rooda("work", "--ai-cmd", "true", "-n", "2").code == 2
    for state in ("7", '{"iteration": "x"}', '{"iteration": -5}', "[]"):
        changed(repo, "update runs set data = json_set(data, '$.state', json(?))", state)
        done = repo.rooda("work", "--resume", "--ai-cmd", "true", "-n", "3")
        assert "Internal error" not in done.err, (state, done.err)
        assert done.code in (1, 2), (state, done.err)


@pytest.mark.parametrize("what", [".rooda", DATABASE])
def test_who_takes_away_all_rights_is_told_of_at_most(
    repo: Workspace, look: Inside, nursery: Nursery, what: str
) -> None:
    command = repo.agents("exit 0", f"chmod 000 {what}", f"chmod 700 {what}; {SUCCESS}")
    done = nursery.start(repo, "work", "--ai-cmd", command, before=powerless()).finish()
    in_order(done)
    assert statuses(asked(look, "show")) == [(number, "completed") for number in (1, 2, 3)]


def test_a_disk_that_an_agent_fills_is_told_of_and_made_up_for(
    repo: Workspace, nursery: Nursery, look: Inside
) -> None:
    fill = "cat /dev/zero > filler 2>/dev/null; cat /dev/zero > filler2 2>/dev/null"
    starts = str(repo.home / "starts")  # there is no room for a count in the workspace
    cases = f"1) ;; 2) {fill} ;; 3) ;; *) rm filler*; {SUCCESS} ;;"
    count = f"n=$(($(cat {starts} 2>/dev/null || echo 0) + 1)); echo $n > {starts}"
    command = repo.agent(f"{count}; case $n in {cases} esac; true")
    before = small_disk(repo, "16m")
    keep = f'"$@"; code=$?; cp -a .rooda {repo.home}/record; exit $code'
    running = nursery.start(
        repo, "work", "--ai-cmd", command, before=(*before, "sh", "-c", keep, "sh")
    )
    done = running.finish(40)
    in_order(done)
    is_told(done, r"record can't be written .*(disk is full|No space left)")
    shutil.copytree(repo.home / "record", repo.path / ".rooda")
    run = asked(look, "show")
    assert run["status"] == "success"
    assert statuses(run) == [(number, "completed") for number in (1, 2, 3, 4)]
    reads(look)


@pytest.mark.slow
def test_an_agent_that_does_it_all_again_and_again_changes_no_outcome(
    repo: Workspace, look: Inside
) -> None:
    wrecks = ["rm -rf .rooda", *(deed for deed, _ in TO_THE_RECORD.values() if "ln -s" not in deed)]
    command = repo.agents(*(f"{{ {deed}; }} 2>/dev/null; exit 0" for deed in wrecks), SUCCESS)
    done = repo.rooda("work", "--ai-cmd", command, "-u", timeout=60)
    in_order(done)
    run = asked(look, "show")
    assert run["status"] == "success"
    assert [number for number, _ in statuses(run)] == list(range(1, len(wrecks) + 2))
    assert git(repo, "fsck", "--no-dangling", "--no-progress") == ""
