"""Colors of the log, on a real terminal and elsewhere, through the installed commands."""

import re
from collections.abc import Iterator

import pytest

from support.gitwork import GitWork, git_work
from support.ralphs import COMPLETE, Ralphs, ralph_work
from support.screen import Screen
from support.workspace import PROCEDURE, Workspace

pytestmark = pytest.mark.real

QUIET, GOOD, BAD, NAME = "\x1b[2m", "\x1b[32m", "\x1b[31m", "\x1b[36m"
END = "\x1b[0m"
SUCCESS = "echo '<promise>SUCCESS</promise>'"


@pytest.fixture
def work(workspace: Workspace) -> Iterator[GitWork]:
    with git_work(workspace) as found:
        yield found


def test_terminal_shows_colors_and_files_have_none(work: GitWork, screen: Screen) -> None:
    work.commit()
    agent = work.agents("exit 3", f"echo a > new; git add new; git commit -qm own; {SUCCESS}")
    screen.start(work, "work", "--ai-cmd", agent, "--log-file", str(work.home / "log"))
    assert screen.finish() == 0
    sent = screen.sent.decode()
    stamp = rf"{re.escape(QUIET)}\[\d\d:\d\d:\d\d\]{re.escape(END)} "
    bad, good, name, end = map(re.escape, (BAD, GOOD, NAME, END))
    assert re.search(rf"{stamp}Iteration 1/5 starting", sent)
    failed = r"Iteration 1/5 completed in \S+ \(failure, consecutive: 1/3\)"
    assert re.search(rf"{stamp}{bad}{failed}{end}\r\n", sent)
    assert re.search(rf"{stamp}{good}Iteration 2/5 completed in \S+ \(success\){end}\r\n", sent)
    commit = work.git("rev-parse", "HEAD")[:7]
    assert re.search(rf"\r\n  1 file \+1 -0 · {name}{commit}{end}\r\n", sent)
    assert re.search(rf"{stamp}{good}Completed: AI signaled SUCCESS .*{end}\r\n", sent)
    kept = [work.home / "log", *(work.state).glob("runs/*/session.log")]
    assert len(kept) == 2
    assert not any("\x1b" in file.read_text() for file in kept)


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("variable", [{"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=str)
def test_a_terminal_without_wish_for_colors_gets_none(
    work: GitWork, variable: dict[str, str | None]
) -> None:
    work.config(PROCEDURE)
    agent = work.agents(f"echo a > new; {SUCCESS}")
    for words in (("work", "--ai-cmd", agent, "-v"), ("show",), ("history",)):
        terminal = Screen(rows=100)  # no pager: what `show` prints fits
        try:
            terminal.start(work, *words, env=variable)
            assert terminal.finish() == 0, terminal.sent
            assert not re.search(rb"\x1b\[[0-9;]*m", terminal.sent), words
        finally:
            terminal.close()


@pytest.mark.long
def test_color_can_be_chosen(workspace: Workspace) -> None:
    agent = workspace.agent(SUCCESS)
    cases: list[tuple[tuple[str, ...], bool]] = [
        ((), False),
        (("--color", "always"), True),
        (("--color", "always", "--log-format", "json"), False),
        (("--color", "always", "--log-format", "logfmt"), False),
    ]
    for flags, is_colored in cases:
        done = workspace.work(agent, *flags)
        assert (done.code, "\x1b[" in done.err) == (0, is_colored), flags
    wrong = workspace.work(agent, "--color", "blue")
    assert wrong.code == 1
    assert "auto" in wrong.err


def test_ralph_has_colors_too(workspace: Workspace) -> None:
    with ralph_work(workspace) as ralph:
        colored(ralph)


def colored(work: Ralphs) -> None:
    work.agent_does(f"echo a > new; {COMPLETE}", TEST_COMMAND="true")
    work.plan()
    done = work.ralph("build", "--color", "always")
    assert done.code == 0
    assert f"{GOOD}Iteration 1/10 completed in " in done.err
    assert "\x1b" not in work.log()
