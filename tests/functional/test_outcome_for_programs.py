"""The outcome for programs, pauses, exported runs, and the command that publishes."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from rooda.record.reader import RecordReader
from rooda.world.state.folder import StateFolder
from support.for_programs import WORKS, agent, result_of, work
from support.recorded import SUCCESS, git, refused, versioned
from support.states import state_of
from support.workspace import PROCEDURE, Workspace


@pytest.fixture
def tree(workspace: Workspace) -> Workspace:
    """A git repository with a small procedure."""
    workspace.config(PROCEDURE)
    return versioned(workspace)


@pytest.fixture
def apart(tmp_path: Path) -> Path:
    """A folder for records, beside the work tree."""
    return tmp_path / "records" / "api"


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


@pytest.mark.long
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


@pytest.mark.git
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


@pytest.mark.real
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


@pytest.mark.real
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


@pytest.mark.real
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


@pytest.mark.long
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


@pytest.mark.long
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
    assert result_of(file)["retry_in"] == 60
    assert tree.rooda("resume", *flags).code == 0
    assert result_of(file)["retry_in"] == 180
    refused(work(tree, "true", "--pause-after", "0"), "--pause-after 0")


# -- export and import -----------------------------------------------------------------------


@pytest.mark.long
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
    assert [one.number for one in RecordReader(StateFolder(apart)).iterations("api")] == [1, 2]
    again = tree.rooda("record", "export", "api", "--record", str(apart))
    assert json.loads(again.out)["run"][0] == "api"
    refused(tree.rooda("record", "import", str(tree.path / "kept.txt")), "this is no exported run")
    refused(tree.rooda("record", "export", "nothing"), "no run 'nothing'")


# -- a command that publishes ----------------------------------------------------------------


@pytest.mark.real
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
    first, second = RecordReader(state_of(tree.path)).iterations("api")
    assert first.publish is not None
    assert (first.publish.error, first.publish.commit) == ("", commits[0])
    assert second.publish is not None
    assert second.publish.output == "first\nanother has it"
