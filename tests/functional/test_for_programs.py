"""The interfaces for programs that start rooda: `--record`, `--run-id`, `--result` and others."""

import contextlib
import json
import os
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from rooda.record.record_reader import RecordReader
from support.children import Nursery, until
from support.recorded import HANGS, SUCCESS, git, refused, versioned
from support.workspace import PROCEDURE, ROODA, Finished, Workspace, alive, wait_for

WORKS = "echo more >> work.txt"


@pytest.fixture
def tree(workspace: Workspace) -> Workspace:
    """A git repository with a small procedure."""
    workspace.config(PROCEDURE)
    return versioned(workspace)


@pytest.fixture
def apart(tmp_path: Path) -> Path:
    """A folder for records, beside the work tree."""
    return tmp_path / "records" / "api"


def agent(tmp_path: Path, body: str, name: str = "agent.sh") -> str:
    """A script outside of the work tree that plays the agent."""
    path = tmp_path / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)


@contextlib.contextmanager
def closing_both(*descriptors: int) -> Iterator[None]:
    yield
    for fd in descriptors:
        os.close(fd)


def work(tree: Workspace, command: str, *flags: str) -> Finished:
    return tree.rooda("work", "--ai-cmd", command, *flags)


# -- a record that is apart from the work tree -----------------------------------------------


def test_a_dry_run_makes_no_folder_for_the_record(tree: Workspace, apart: Path) -> None:
    done = work(tree, "true", "--dry-run", "--record", str(apart))
    assert done.code == 0, done.out
    assert not apart.exists()


def test_the_record_of_a_run_can_be_apart_from_its_work_tree(
    tree: Workspace, apart: Path, tmp_path: Path
) -> None:
    done = work(tree, agent(tmp_path, WORKS), "-n", "1", "--commit", "--record", str(apart))
    assert done.code == 2, done.err
    assert not (tree.path / ".rooda").exists()
    assert git(tree, "status", "--porcelain") == ""
    (row,) = RecordReader(apart).runs()
    assert row.workspace == str(tree.path)
    (one,) = RecordReader(apart).iterations(row.run)
    assert one.commit is not None
    assert one.lines is not None
    assert one.lines.files == 1
    assert "--record" not in str(row.given)


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
    (row,) = RecordReader(moved).runs()
    assert row.workspace == str(clone.path)
    assert [one.number for one in RecordReader(moved).iterations(row.run)] == [1, 2]


@pytest.mark.thorough
def test_two_runs_in_one_work_tree_exclude_each_other_wherever_their_records_are(
    tree: Workspace, nursery: Nursery, apart: Path, tmp_path: Path
) -> None:
    first = nursery.start(tree, "work", "--ai-cmd", agent(tmp_path, HANGS), "--record", str(apart))
    nursery.pid("agent")
    other = str(tmp_path / "other")
    for flags in ([], ["--record", other], ["--record", str(apart)]):
        second = work(tree, "true", *flags)
        refused(second, "another run is at work in")
    # Nor do two work trees share one record at the same time.
    refused(work(tree.sibling("two"), "true", "--record", str(apart)), "another run is at work in")
    assert work(tree.sibling("three"), "true", "-n", "1", "--record", other).code == 2
    assert tree.rooda("stop", "--now").code == 0
    assert first.finish().code == 130


def test_a_place_that_is_no_good_for_a_record_is_one_clear_error(
    tree: Workspace, tmp_path: Path
) -> None:
    file = tmp_path / "file"
    file.touch()
    for place, words in (
        (tree.path / "sub", "a part of the work tree"),
        (tmp_path / "x" / ".rooda" / "runs" / "y", "inside of the .rooda of a run"),
        (file, "which is not a folder"),
        (file / "below", "can't be created for the record"),
    ):
        done = work(tree, "true", "--record", str(place))
        refused(done, words, "--record")
    done = tree.rooda("resume", "--record", str(tmp_path / "nothing"))
    refused(done, "no run has been recorded")
    assert not (tmp_path / "nothing").exists()


def test_an_agent_can_not_put_an_option_for_programs_into_the_recorded_flags(
    tree: Workspace, apart: Path
) -> None:
    assert work(tree, "true", "-n", "1", "--record", str(apart)).code == 2
    database = apart / ".rooda" / "rooda.db"
    with sqlite3.connect(database) as connection:
        add = """replace(data, '"--ai-cmd",', '"--record","/x"],["--ai-cmd",')"""
        connection.execute(f"UPDATE runs SET data = {add}")
    connection.close()
    done = tree.rooda("resume", "-n", "2", "--record", str(apart))
    refused(done, "refuses the recorded flags")


# -- the name of a new run -------------------------------------------------------------------


def test_a_program_chooses_the_name_of_a_run(tree: Workspace) -> None:
    for name in ("api", "api-2"):
        assert work(tree, "true", "-n", "1", "--run-id", name).code == 2
    for words in (("show",), ("why",), ("show", "--json"), ("report", "-o", "-"), ("diff",)):
        done = tree.rooda(*words, "api")
        assert done.code == 0, done.err
    assert '"run": "api"' in tree.rooda("show", "api", "--json").out
    assert "api-2" in tree.rooda("show", "api-").out
    assert "api-2" in tree.rooda("history").out
    assert (tree.path / ".rooda/runs/api-2/1/prompt.md").exists()
    done = tree.rooda("resume", "api", "-n", "2")
    assert done.code == 2, done.err
    assert [one.number for one in RecordReader(tree.path).iterations("api")] == [1, 2]
    refused(
        work(tree, "true", "--run-id", "api"), "has a run of the name api already", "resume api"
    )
    refused(tree.rooda("resume", "api", "--run-id", "x"), "--run-id is for new runs")


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


@pytest.mark.thorough
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
    row = RecordReader(tree.path).run()
    assert (row.status, row.rule) == ("interrupted", "interrupted")


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


# -- the result ------------------------------------------------------------------------------


def claude_says(words: str, status: int) -> str:
    """A shell command that prints what claude prints when its service refuses."""
    event = {"type": "result", "is_error": True, "api_error_status": status, "result": words}
    return f"printf '%s\\n' '{json.dumps(event)}'; exit 1"


STREAM = " -p --output-format stream-json"
CLAUDE_LIMIT = claude_says("usage limit reached, resets in 5 hours", 429)
CLAUDE_OVERLOADED = claude_says("API Error: 529 Overloaded", 529)


def hours_away(time: str) -> float:
    return (datetime.fromisoformat(time) - datetime.now(UTC)).total_seconds() / 3600


def result_of(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def test_the_result_says_what_came_of_all_starts_of_a_run(tree: Workspace, tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    command = tree.agents(WORKS, "exit 3", SUCCESS)
    flags = ("--commit", "--result", str(file))
    assert work(tree, command, "-n", "2", "--run-id", "api", *flags).code == 2
    first = result_of(file)
    assert (first["run"], first["status"], first["rule"]) == ("api", "max-iters", "max-iterations")
    assert (first["exit_code"], first["iteration"], first["attempts"]) == (2, 2, 2)
    assert (first["good"], first["failed"], first["consecutive_failures"]) == (1, 1, 1)
    assert (first["cost"], first["costs_unknown"], first["tokens"]) == (None, 2, None)
    assert (first["last"]["status"], first["last"]["kind"]) == ("failed", "exit")
    assert (first["limit"], first["problems"]) == (None, [])

    assert tree.rooda("resume", "api", "-n", "5", "--result", str(file)).code == 0
    second = result_of(file)
    assert (second["status"], second["exit_code"], second["iteration"]) == ("success", 0, 3)
    assert (second["attempts"], second["good"], second["failed"]) == (3, 2, 1)
    assert second["last"]["commit"] is None
    assert file.stat().st_mode & 0o777 == 0o600
    assert sorted(tmp_path.glob(".result*")) == []


def test_a_run_that_can_not_start_leaves_a_result_with_the_problems(
    tree: Workspace, tmp_path: Path
) -> None:
    file = tmp_path / "result.json"
    result = ("--result", str(file))
    for words, reason in (
        (("work", "--ai-cmd", "no-such-agent"), "no-such-agent"),
        (("nothing", "--ai-cmd", "true"), "nothing"),
        (("resume",), "no run has been recorded"),
        (("work", "--run-id", "a/b"), "can't be the name of a run"),
    ):
        file.write_text("of an earlier run")
        assert tree.rooda(*words, *result).code == 1
        found = result_of(file)
        assert (found["status"], found["exit_code"]) == ("not-started", 1)
        assert reason in found["reason"]
        assert found["reason"] in found["problems"]
    refused(work(tree, "true", "--result", str(tmp_path / "no" / "file")), "can't be written")
    file.write_text("kept")
    assert work(tree, "true", "--dry-run", *result).code == 0
    assert file.read_text() == "kept"


def test_a_usage_limit_without_a_wait_is_in_the_result_with_its_end_and_account(
    tree: Workspace, tmp_path: Path
) -> None:
    file = tmp_path / "result.json"
    limited = agent(tmp_path, CLAUDE_LIMIT, "claude") + STREAM
    result = ("--result", str(file))
    done = work(tree, limited, "--no-wait-for-limits", "--pause-after", "1", *result)
    found = result_of(file)
    assert (done.code, found["rule"]) == (1, "limit"), done.err
    hold = found["limit"]
    assert (hold["account"], hold["agent"], hold["kind"]) == ("claude", "claude", "limit")
    assert 4.9 < hours_away(hold["until"]) < 5.1
    assert "usage limit" in hold["evidence"]
    assert found["iteration"] == 0
    work(tree, limited, "--no-wait-for-limits", "--account", "team", *result)
    assert result_of(file)["limit"]["account"] == "team"


def test_an_outage_that_the_run_may_not_wait_for_ends_it_at_once_with_the_same_object(
    tree: Workspace, tmp_path: Path
) -> None:
    file = tmp_path / "result.json"
    overloaded = agent(tmp_path, CLAUDE_OVERLOADED, "claude") + STREAM
    flags = ("--max-outage-wait", "0", "--account", "team", "--pause-after", "1")
    done = work(tree, overloaded, *flags, "--result", str(file))
    found = result_of(file)
    assert (done.code, found["rule"]) == (1, "max-outage-wait"), done.err
    assert (found["limit"]["account"], found["limit"]["kind"]) == ("team", "overloaded")
    assert found["limit"]["until"] is not None


def test_the_events_of_a_wait_have_the_account_and_the_end_of_the_limit(
    tree: Workspace, tmp_path: Path
) -> None:
    limited = agent(tmp_path, CLAUDE_LIMIT, "claude") + STREAM
    flags = ("--max-limit-wait", "0.01", "--log-format", "json", "--account", "team")
    done = work(tree, limited, *flags)
    events = [json.loads(line) for line in done.err.splitlines()]
    waits = [one for one in events if one["event"] == "wait_started"]
    assert {one["account"] for one in waits} == {"team"}
    assert 4.9 < hours_away(waits[0]["ends"]) < 5.1
    assert hours_away(waits[0]["until"]) < 0.1
    assert events[-1]["limit"]["account"] == "team"


# -- a pause ---------------------------------------------------------------------------------


def test_a_paused_run_goes_on_as_if_it_had_not_stopped(tree: Workspace, tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    command = tree.agents("exit 0", "exit 3", SUCCESS)
    flags = ("--pause-after", "1", "--result", str(file))
    assert work(tree, command, "-n", "9", "--run-id", "api", *flags).code == 0
    first = result_of(file)
    assert (first["status"], first["rule"], first["exit_code"]) == ("interrupted", "paused", 0)
    assert "--pause-after" in tree.rooda("why", "api").out

    done = tree.rooda("resume", "api", *flags)
    assert done.code == 0
    assert "Iteration 2/9" in done.err
    assert "Paused (2 iterations completed" in done.err
    second = result_of(file)
    assert (second["rule"], second["iteration"]) == ("paused", 2)
    assert second["consecutive_failures"] == 1
    assert tree.rooda("resume", "api", *flags).code == 0
    assert (result_of(file)["rule"], tree.starts) == ("signal", 3)


def test_a_paused_run_does_not_wait_for_the_next_try_and_gives_way_to_other_rules(
    tree: Workspace, tmp_path: Path
) -> None:
    failing = agent(tmp_path, "exit 3")
    done = work(tree, failing, "-n", "1", "--pause-after", "1")
    assert done.code == 2
    done = work(tree, failing, "-n", "5", "--failure-threshold", "1", "--pause-after", "1")
    assert done.code == 1
    file = tmp_path / "result.json"
    flags = ("--pause-after", "1", "--result", str(file))
    broken = agent(tmp_path, "exit 1", "claude") + STREAM
    done = work(tree, broken, "-n", "5", "--backoff", "60", *flags)
    assert (done.code, done.seconds < 20) == (0, True), done.err
    assert 30 <= result_of(file)["retry_in"] <= 60
    assert tree.rooda("resume", *flags).code == 0
    assert 60 <= result_of(file)["retry_in"] <= 120
    refused(work(tree, "true", "--pause-after", "0"), "--pause-after 0")


# -- export and import -----------------------------------------------------------------------


def test_a_run_goes_on_from_an_exported_record(
    tree: Workspace, apart: Path, tmp_path: Path
) -> None:
    command = agent(tmp_path, 'echo "$KEY" >> keys; echo more >> work.txt')
    flags = ("-n", "2", "--pause-after", "1", "--run-id", "api", "--env", "KEY=s3cr3t-value")
    assert work(tree, command, *flags).code == 0
    file = str(tmp_path / "api.json")
    assert tree.rooda("record", "export", "api", file).code == 0
    assert "s3cr3t" not in Path(file).read_text()
    assert tree.rooda("record", "export", "api").out == Path(file).read_text()

    done = tree.rooda("record", "import", file, "--record", str(apart))
    assert done.code == 0, done.err
    resume = ("resume", "api", "--record", str(apart))
    refused(tree.rooda(*resume), "imported without the values of: --env KEY", "Give these flags")
    done = tree.rooda(*resume, "--env", "KEY=other")
    assert done.code == 2, done.err
    assert (tree.path / "keys").read_text() == "s3cr3t-value\nother\n"
    assert [one.number for one in RecordReader(apart).iterations("api")] == [1, 2]
    again = tree.rooda("record", "export", "api", "--record", str(apart))
    assert json.loads(again.out)["run"][0] == "api"
    refused(tree.rooda("record", "import", str(tree.path / "kept.txt")), "this is no exported run")
    refused(tree.rooda("record", "export", "nothing"), "no run 'nothing'")


# -- a command that publishes ----------------------------------------------------------------


def test_the_command_that_publishes_gets_each_iteration_and_its_refusal_ends_the_run(
    tree: Workspace, tmp_path: Path
) -> None:
    told = 'echo "$ROODA_RUN $ROODA_ITERATION $ROODA_COMMIT" >> ../published'
    refuses = 'if [ $ROODA_ITERATION = 2 ]; then echo first; echo "another has it"; exit 3; fi'
    command = agent(tmp_path, f"{told}; {refuses}", "publish.sh")
    file = tmp_path / "result.json"
    flags = ("-n", "5", "--commit", "--publish", command, "--exit-codes-git", "7")
    names = ("--run-id", "api", "--result", str(file))
    done = work(tree, agent(tmp_path, WORKS), *flags, *names)
    assert done.code == 7, done.err
    commits = git(tree, "log", "--format=%H", "--reverse").splitlines()[1:]
    published = (tmp_path / "published").read_text().splitlines()
    assert published == [f"api {number} {one}" for number, one in enumerate(commits, 1)]
    found = result_of(file)
    assert (found["status"], found["rule"], found["iteration"]) == ("aborted", "refused", 2)
    assert found["reason"] == f"not published: exit code 3 from {command}: another has it"
    why = tree.rooda("why", "api").out
    assert "refused" in why
    assert "another has it" in why
    assert f"exit code 3 ({command})" in " ".join(tree.rooda("show", "api", "2").out.split())
    first, second = RecordReader(tree.path).iterations("api")
    assert first.publish is not None
    assert (first.publish.error, first.publish.commit) == ("", commits[0])
    assert second.publish is not None
    assert second.publish.output == "first\nanother has it"
