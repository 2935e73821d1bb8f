"""`--record`, `--run-id`, `--lifeline` and `--only-run`, for programs that start rooda."""

import contextlib
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rooda.record.reader import RecordReader
from rooda.world.state.folder import StateFolder
from rooda.world.state.user_notes import waiting_notes
from support.children import Nursery, until
from support.for_programs import WORKS, agent, work
from support.recorded import HANGS, git, refused, versioned
from support.sandboxes import require_bwrap
from support.states import state_of
from support.workspace import PROCEDURE, ROODA, Workspace, alive, wait_for


@pytest.fixture
def tree(workspace: Workspace) -> Workspace:
    """A git repository with a small procedure."""
    workspace.config(PROCEDURE)
    return versioned(workspace)


@pytest.fixture
def apart(tmp_path: Path) -> Path:
    """A folder for records, beside the work tree."""
    return tmp_path / "records" / "api"


@contextlib.contextmanager
def closing_both(*descriptors: int) -> Iterator[None]:
    yield
    for fd in descriptors:
        os.close(fd)


# -- a record that is apart from the work tree -----------------------------------------------


@pytest.mark.git
def test_a_dry_run_makes_no_folder_for_the_record(tree: Workspace, apart: Path) -> None:
    done = work(tree, "true", "--dry-run", "--record", str(apart))
    assert done.code == 0, done.out
    assert not apart.exists()


@pytest.mark.real
def test_the_record_of_a_run_can_be_apart_from_its_work_tree(
    tree: Workspace, apart: Path, tmp_path: Path
) -> None:
    done = work(tree, agent(tmp_path, WORKS), "-n", "1", "--commit", "--record", str(apart))
    assert done.code == 2, done.err
    assert not (state_of(tree.path)).exists()
    assert git(tree, "status", "--porcelain") == ""
    (row,) = RecordReader(StateFolder(apart)).runs()
    assert row.workspace == str(tree.path)
    (one,) = RecordReader(StateFolder(apart)).iterations(row.run)
    assert one.commit is not None
    assert one.lines is not None
    assert one.lines.files == 1
    assert "--record" not in str(row.given)
    for words in (
        ("history",),
        ("show",),
        ("why",),
        ("report", "--format", "markdown"),
        ("record", "export", row.run),
    ):
        read = tree.inside(*words, "--record", str(apart))
        assert (read.code, row.run in read.out) == (0, True), (words, read)
    assert "+more" in tree.inside("diff", "--record", str(apart)).out
    refused(tree.inside("show", "--record", str(tmp_path)), f"there is no record in {tmp_path}")
    refused(tree.inside("history", "--all", "--record", str(apart)), "--all", "one of them alone")
    link = tmp_path / "link"
    link.symlink_to(apart)
    assert str(apart / "runs" / row.run) in tree.inside("report", "--record", str(link)).out


@pytest.mark.long
def test_a_run_goes_on_in_another_work_tree_with_its_record(
    tree: Workspace, apart: Path, tmp_path: Path
) -> None:
    command = agent(tmp_path, WORKS)
    flags = ("-n", "1", "--commit", "--record", str(apart))
    assert work(tree, command, *flags).code == 2
    clone = Workspace(tmp_path / "elsewhere" / "clone", tree.home, tree.env)
    shutil.copytree(tree.path, clone.path)
    shutil.rmtree(tree.path)
    moved = tmp_path / "moved"
    shutil.move(apart, moved)

    done = clone.rooda("resume", "last", "-n", "2", "--record", str(moved))
    assert done.code == 2, done.err
    assert (clone.path / "work.txt").read_text() == "more\nmore\n"
    assert len(git(clone, "log", "--oneline").splitlines()) == 3
    (row,) = RecordReader(StateFolder(moved)).runs()
    assert row.workspace == str(clone.path)
    assert [one.number for one in RecordReader(StateFolder(moved)).iterations(row.run)] == [1, 2]


@pytest.mark.long
def test_two_runs_in_one_work_tree_exclude_each_other_wherever_their_records_are(
    tree: Workspace, nursery: Nursery, apart: Path, tmp_path: Path
) -> None:
    first = nursery.start(tree, "work", "--ai-cmd", agent(tmp_path, HANGS), "--record", str(apart))
    nursery.pid("agent")
    other = str(tmp_path / "other")
    for flags in ([], ["--record", other], ["--record", str(apart)]):
        second = work(tree, "true", *flags)
        refused(second, "another run is at work in", f"work, pid {first.process.pid} on ")
    # What the user says in the work tree comes to the run.
    assert tree.rooda("tell", "mind the gap").code == 0
    assert [note.text for note in waiting_notes(StateFolder(apart))] == ["mind the gap"]
    # Nor do two work trees share one record at the same time.
    other_tree = work(tree.sibling("two"), "true", "--record", str(apart))
    refused(other_tree, f"another run uses {apart}, the state folder", "ROODA_STATE_HOME")
    assert work(tree.sibling("three"), "true", "-n", "1", "--record", other).code == 2
    assert tree.rooda("stop", "--now").code == 0
    assert first.finish().code == 130


@pytest.mark.git
def test_a_place_that_is_no_good_for_a_record_is_one_clear_error(
    tree: Workspace, tmp_path: Path
) -> None:
    file = tmp_path / "file"
    file.touch()
    for place, words in (
        (tree.path, "a part of the work tree"),
        (tree.path / "sub", "a part of the work tree"),
        (tree.path / ".git/sub", "a part of the work tree"),
        (file, "which is not a folder"),
        (file / "below", "can't be created for the record"),
    ):
        done = work(tree, "true", "--record", str(place))
        refused(done, words, "--record")
    done = tree.rooda("resume", "--record", str(tmp_path / "nothing"))
    refused(done, "no run has been recorded")
    assert not (tmp_path / "nothing").exists()


@pytest.mark.real
def test_an_agent_can_not_put_an_option_for_programs_into_the_recorded_flags(
    tree: Workspace, apart: Path
) -> None:
    assert work(tree, "true", "-n", "1", "--record", str(apart)).code == 2
    database = StateFolder(apart) / "rooda.db"
    with sqlite3.connect(database) as connection:
        add = """replace(data, '"--ai-cmd",', '"--record","/x"],["--ai-cmd",')"""
        connection.execute(f"UPDATE runs SET data = {add}")
    connection.close()
    done = tree.rooda("resume", "-n", "2", "--record", str(apart))
    refused(done, "refuses the recorded flags")


# -- the name of a new run -------------------------------------------------------------------


@pytest.mark.long
def test_a_program_chooses_the_name_of_a_run(tree: Workspace) -> None:
    for name in ("api", "api-2"):
        assert work(tree, "true", "-n", "1", "--run-id", name).code == 2
    for words in (("show",), ("why",), ("show", "--json"), ("report", "-o", "-"), ("diff",)):
        done = tree.rooda(*words, "api")
        assert done.code == 0, done.err
    assert '"run": "api"' in tree.rooda("show", "api", "--json").out
    assert "api-2" in tree.rooda("show", "api-").out
    assert "api-2" in tree.rooda("history").out
    assert (state_of(tree.path) / "runs/api-2/1/prompt.md").exists()
    done = tree.rooda("resume", "api", "-n", "2")
    assert done.code == 2, done.err
    assert [one.number for one in RecordReader(state_of(tree.path)).iterations("api")] == [1, 2]
    refused(
        work(tree, "true", "--run-id", "api"), "has a run of the name api already", "resume api"
    )
    refused(tree.rooda("resume", "api", "--run-id", "x"), "--run-id is for new runs")


@pytest.mark.long
def test_a_killed_run_is_cleared_away_without_harm_to_one_of_the_same_name_elsewhere(
    tree: Workspace, nursery: Nursery, tmp_path: Path
) -> None:
    hangs = agent(tmp_path, "setsid sleep 60 & echo $! > left.pid; " + HANGS)
    other = tree.sibling("other")
    runs = [
        nursery.start(one, "work", "--ai-cmd", hangs, "--run-id", "api") for one in (tree, other)
    ]
    pids = [int(wait_for(one.path / "agent.pid")) for one in (tree, other)]
    runs[0].process.kill()
    runs[0].finish()
    until(lambda: not alive(pids[0]), "the warden stops the agent")
    assert tree.rooda("resume", "api", "--ai-cmd", "true", "-n", "1").code == 2
    assert alive(pids[1])
    assert other.rooda("stop", "--now").code == 0


# -- the lifeline ----------------------------------------------------------------------------


@pytest.mark.real
def test_the_agent_and_its_tree_end_when_the_lifeline_closes(
    tree: Workspace, nursery: Nursery, tmp_path: Path
) -> None:
    listing = "ls -l /proc/self/fd > fds; setsid sleep 60 & echo $! > left.pid; "
    ours, its = os.pipe()
    line = [
        str(ROODA),
        "work",
        "--ai-cmd",
        agent(tmp_path, listing + HANGS),
        "--lifeline",
        str(ours),
    ]
    process = subprocess.Popen(
        line, cwd=tree.path, env=tree.environ(), stderr=subprocess.PIPE, text=True, pass_fds=(ours,)
    )
    nursery.started.append(process)
    pipe = f"pipe:[{os.fstat(ours).st_ino}]"
    os.close(ours)
    pids = [nursery.pid(name) for name in ("agent", "left")]
    os.write(its, b"words mean nothing")
    assert pipe not in (tree.path / "fds").read_text()
    assert all(map(alive, pids))
    os.close(its)
    assert process.wait(20) == 130
    assert not any(map(alive, pids))
    row = RecordReader(state_of(tree.path)).run()
    assert (row.status, row.rule) == ("interrupted", "interrupted")


@pytest.mark.real
def test_a_wrong_lifeline_is_one_clear_error_before_anything_starts(
    tree: Workspace, tmp_path: Path
) -> None:
    ours, its = os.pipe()
    with (tmp_path / "file").open("w+") as file, closing_both(ours, its):
        for name, words in (
            ("99", "it is not open"),
            ("x", "it is no descriptor's number"),
            (str(file.fileno()), "it is neither a pipe nor a socket"),
            (str(its), "it is the writing end"),
        ):
            done = subprocess.run(
                [str(ROODA), "work", "--ai-cmd", "touch started", "--lifeline", name],
                cwd=tree.path,
                env=tree.environ(),
                capture_output=True,
                text=True,
                pass_fds=(its, file.fileno()),
                check=False,
            )
            assert (done.returncode, done.stdout) == (1, "")
            assert f"--lifeline {name} can't be used: {words}" in done.stderr
    assert not (tree.path / "started").exists()


# -- a command in place of the agent ---------------------------------------------------------


@pytest.mark.real
def test_a_command_in_place_of_the_agent_tells_its_output_and_its_code(
    tree: Workspace, apart: Path
) -> None:
    words = ("--record", str(apart), "--verify", "./not-built-yet", "--env", "GREETING=hello")
    done = work(tree, "no-such-agent", *words, "--only-run", "echo $GREETING; pwd; exit 7")
    assert (done.code, done.out) == (7, f"hello\n{tree.path}\n"), done.err
    assert not (state_of(tree.path)).exists()
    assert not list(RecordReader(StateFolder(apart)).runs())


@pytest.mark.real
@pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap is for Linux")
def test_a_command_in_place_of_the_agent_is_in_its_sandbox_or_does_not_run(
    tree: Workspace, apart: Path
) -> None:
    require_bwrap()
    (tree.home / "secret").write_text("key")
    words = ("--record", str(apart), "--only-run", "cat ~/secret; touch ran; ln -s /etc .git/zz")
    done = work(tree, "agent", *words, "--sandbox", "bwrap")
    assert "key" not in done.out
    assert (tree.path / "ran").exists()
    assert not (tree.path / ".git/zz").is_symlink()
    (tree.path / "ran").unlink()
    done = work(tree, "agent", *words, "--sandbox", "command")
    assert done.code == 1
    assert "sandbox command needs a command" in done.err
    assert not (tree.path / "ran").exists()
