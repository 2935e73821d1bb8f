"""The live line on a real terminal: the phases of an iteration."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.gitwork import GitWork, git_work
from support.screen import Screen
from support.workspace import Workspace

WIDE_NAME = "漢字" * 60


@pytest.fixture
def work(workspace: Workspace) -> Iterator[GitWork]:
    with git_work(workspace) as found:
        yield found


def waits_for(file: Path) -> str:
    return f"while ! test -e {file}; do sleep 0.02; done"


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("columns", [40, 100])
def test_live_line_names_each_phase_of_an_iteration(work: GitWork, columns: int) -> None:
    """A step waits until the line has named it. A line that wraps could not be removed."""
    go = {name: work.home / name for name in ("verify", "commit", "push", "hook")}
    work.settings(
        verify={"command": f"{waits_for(go['verify'])} # {WIDE_NAME}", "baseline": False},
        hooks={"post_iteration": waits_for(go["hook"])},
        git={"commit": True, "push": True},
    )
    work.commit()
    work.git_hook("pre-commit", waits_for(go["commit"]))
    work.git_hook("pre-push", waits_for(go["push"]))
    agent = work.agents("echo 1 > one", "echo 2 > two; echo '<promise>SUCCESS</promise>'")
    screen = Screen(columns=columns)
    try:
        screen.start(work, "work", "--ai-cmd", agent)
        for name, shown in zip(go, ("verifying", "committing", "pushing", "hook"), strict=True):
            screen.wait_for(f"Iteration 1/5 · {shown}")
            go[name].touch()
        assert screen.finish() == 0
        assert not re.search("· (verifying|committing|pushing|hook)", "\n".join(screen.lines))
    finally:
        screen.close()
