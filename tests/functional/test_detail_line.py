"""The detail line below the line of each iteration, through the installed command."""

import json
import re
from collections.abc import Iterator

import pytest

from support.gitwork import GitWork, git_work
from support.workspace import Workspace

pytestmark = pytest.mark.real


@pytest.fixture
def work(workspace: Workspace) -> Iterator[GitWork]:
    with git_work(workspace) as found:
        yield found


def below(err: str, number: int) -> list[str]:
    """Return the indented lines below the line that ends an iteration."""
    lines = err.splitlines()
    start = next(n for n, line in enumerate(lines) if f"Iteration {number}/3 completed" in line)
    end = next(n for n in range(start + 1, len(lines)) if not lines[n].startswith("  "))
    return lines[start + 1 : end]


@pytest.mark.long
def test_iteration_ends_with_its_line_and_one_detail_line(work: GitWork) -> None:
    """The first iteration is committed by rooda, the second by the agent; the third fails."""
    work.settings(verify="cat results; ! test -e bad", git={"commit": True})
    work.write("results", "")
    work.commit()
    passed = "echo '==== {0} passed in 0.10s ====' > results"
    agent = work.agents(
        f"{passed.format(4)}; printf '## Summary\\n\\nAdded \\033[2Jfour tests.\\n'",
        f"{passed.format(7)}; git commit -qam own; echo Added three more.",
        "touch bad; echo Broke it.",
    )
    done = work.work(agent, "-n", "3")
    assert done.code == 2
    assert not re.search("Verified|Committed", done.err), "the detail line has it"
    log = work.git("log", "--format=%h", "--abbrev=7", "-2").split()
    assert re.search(
        r"\] Iteration 1/3 completed in \S+ \(success\)\n"
        rf"  1 file \+1 -0 · tests 4/4 · {log[1]} · Added four tests\n\[",
        done.err,
    )
    assert below(done.err, 2) == [f"  1 file +1 -1 · tests 7/7 (+3) · {log[0]} · Added three more"]
    assert below(done.err, 3)[0] == "  1 file · tests 7/7 · Broke it"
    logged = work.work(work.agent("echo hello"), "-n", "1", "--log-format", "json").err
    (ended,) = [
        event for event in map(json.loads, logged.splitlines())
        if event["event"] == "iteration_ended"
    ]  # fmt: skip
    assert {"commit", "tests_gained", "headline", "lines"} <= set(ended)
    agent = work.agent("rm bad; echo more > more; echo Repaired it all.")
    logged = work.work(agent, "-n", "1", "--git-dirty", "commit", "--log-format", "logfmt").err
    assert " INFO Verified command=" in logged
    assert " INFO Committed commit=" in logged
    (line,) = [line for line in logged.splitlines() if "Completed iteration" in line]
    commit = work.git("rev-parse", "HEAD")[:12]
    # The run committed what the failed iteration had left.
    fields = rf" files=2 added=1 deleted=0 tests=7/7 commit={commit} headline=\"Repaired it all\""
    assert re.search(rf" status=success{fields}$", line), line


def test_failed_hook_is_told_once_with_its_output(work: GitWork) -> None:
    work.settings(hooks={"post_iteration": {"command": "echo oops; exit 4", "on_error": "fail"}})
    done = work.work(work.agent("echo hello"), "-n", "3", "-q", "--failure-threshold", "1")
    warning, output, oops, ended, detail, advice, *_ = done.err.splitlines()
    assert re.search(r"WARN: The post_iteration hook failed: exit code 4 after \S+ \(", warning)
    assert (output, oops) == ("  Last output:", "    | oops")
    assert "(failure, consecutive: 1/1)" in ended
    assert (detail, advice) == ("  hello", "  Try: Run the hook's command by hand")


def test_failed_agent_has_no_headline_beside_its_output(work: GitWork) -> None:
    done = work.work(work.agent("echo x > new; echo I did it.; exit 3"), "-n", "3", "-q")
    first, reason, *_ = below(done.err + "\n", 1)
    assert first == "  1 file +1 -0"
    assert reason.startswith("  Reason: exit code 3 after ")
    assert done.err.count("I did it.") == done.err.count("    | I did it.")
