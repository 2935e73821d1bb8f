"""Preset `v1` behaves like `rooda.sh` of version 1; a script plays `kiro-cli`."""

import os
import re
import signal
from collections.abc import Iterator

import pytest

from support.finished import Finished
from support.gitwork import GitWork, git_work
from support.workspace import Running, Workspace, alive, wait_for

pytestmark = pytest.mark.real

LOOP = "======================== LOOP {} ========================"
COMMIT = 'git commit -q --allow-empty -m "iteration $n"'
KIRO = """
n=$(($(cat "$0.starts" 2> /dev/null || echo 0) + 1)); echo $n > "$0.starts"
cat > "$0.prompt"; echo "$$ $*" >> "$0.calls"
{body}
"""


@pytest.fixture
def work(workspace: Workspace) -> Iterator[GitWork]:
    with git_work(workspace) as found:
        yield found


class V1:
    """A run of `rooda PROCEDURE` with preset `v1` and a fake `kiro-cli` on the PATH."""

    def __init__(self, work: GitWork, body: str, config: str = "") -> None:
        self.work = work
        work.script("bin/kiro-cli", KIRO.format(body=body))
        work.global_config(f"loop: {{preset: v1}}\n{config}")
        self.env = {"PATH": f"{work.tools / 'bin'}{os.pathsep}{work.environ()['PATH']}"}

    def run(self, *args: str) -> Finished:
        return self.work.rooda(*args, env=self.env)

    def start(self, *args: str) -> Running:
        return self.work.start(*args, env=self.env)

    @property
    def calls(self) -> list[list[str]]:
        """Return the pid and the arguments of each call."""
        lines = self.work.marker("bin/kiro-cli.calls").read_text().splitlines()
        return [line.split() for line in lines]

    @property
    def prompt(self) -> str:
        return self.work.marker("bin/kiro-cli.prompt").read_text()

    @property
    def pushed(self) -> list[str]:
        return self.work.subjects(self.work.remote)[1:]


def separators(done: Finished) -> list[int]:
    pattern = re.compile(f"^{LOOP.format('([0-9]+)')}$", re.MULTILINE)
    return [int(number) for number in pattern.findall(done.err)]


def ends_with_maximum(done: Finished, number: int) -> bool:
    """Whether the message follows the last separator and the exit code is 0."""
    end = done.err.partition(LOOP.format(number))[2]
    return done.code == 0 and f"Reached max iterations: {number}" in end


def test_example_1_limited_iterations(work: GitWork) -> None:
    """Each iteration has a separator, a new process and a push; the run ends at its maximum."""
    v1 = V1(work, COMMIT)
    done = v1.run("build", "--max-iterations", "3")
    assert ends_with_maximum(done, 3)
    assert separators(done) == [1, 2, 3]
    assert [call[1:] for call in v1.calls] == [
        ["chat", "--no-interactive", "--trust-all-tools"]
    ] * 3
    assert len({call[0] for call in v1.calls}) == 3, "a new process for each iteration"
    assert v1.prompt.startswith("# OODA Loop Iteration\n")
    assert v1.pushed == ["iteration 1", "iteration 2", "iteration 3"]
    assert [one["push"]["commit"] for one in work.record()] == work.git(
        "rev-list", "--reverse", "HEAD~3..HEAD"
    ).split()
    assert work.git("rev-parse", "--abbrev-ref", "main@{upstream}") == "origin/main"


@pytest.mark.real(rows=1)
@pytest.mark.parametrize(
    "procedure,args",
    [
        ("bootstrap", ["--max-iterations", "0"]),
        pytest.param("build", [], marks=pytest.mark.long),
    ],
    ids=["0", "no flag"],
)
def test_example_2_unlimited_iterations(work: GitWork, procedure: str, args: list[str]) -> None:
    """Without a maximum the run ends with Ctrl+C, and each finished iteration was pushed."""
    pid = work.marker("agent.pid")
    v1 = V1(work, f"{COMMIT}; test $n -lt 7 || {{ echo $$ > {pid}; exec sleep 60; }}")
    running = v1.start(procedure, *args)
    agent = int(wait_for(pid))
    running.signal(signal.SIGINT)
    done = running.finish()
    assert done.code == 130
    assert not alive(agent)
    assert separators(done)[:6] == [1, 2, 3, 4, 5, 6]
    assert v1.pushed == [f"iteration {n}" for n in range(1, 7)]


@pytest.mark.real(rows=1)
@pytest.mark.parametrize(
    "procedure,number",
    [("bootstrap", 1), ("build", 5)],
    ids=["example 4", "example 3"],
)
def test_config_sets_the_default_maximum(work: GitWork, procedure: str, number: int) -> None:
    v1 = V1(work, COMMIT, f"procedures: {{{procedure}: {{default_iterations: {number}}}}}")
    done = v1.run(procedure)
    assert ends_with_maximum(done, number)
    assert separators(done) == list(range(1, number + 1))
    assert len(v1.pushed) == number


def test_failing_agent_and_failing_push_do_not_end_the_loop(work: GitWork) -> None:
    """Preset v1 ignores exit codes and signals of the agent, and retries the push later."""
    away = f"{work.remote}.away"
    v1 = V1(
        work,
        f"{COMMIT}\n"
        f"case $n in 2) mv {work.remote} {away} ;; 4) mv {away} {work.remote} ;; esac\n"
        "echo '<promise>FAILURE</promise>'; echo '<promise>SUCCESS</promise>'; exit 7",
    )
    done = v1.run("build", "-n", "5")
    assert ends_with_maximum(done, 5)
    assert separators(done) == [1, 2, 3, 4, 5]
    assert [one["push"] is not None for one in work.record()] == [True, False, False, True, True]
    assert done.err.count("WARN: Push failed") == 2, "each failed push is reported"
    assert v1.pushed == [f"iteration {n}" for n in range(1, 6)]
