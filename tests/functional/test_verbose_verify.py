"""`--verbose` shows the output of `verify` as that of the agent."""

import pytest

from support.screen import Screen
from support.workspace import PROCEDURE, Workspace

pytestmark = pytest.mark.real


def test_output_of_verify_is_shown_while_it_runs(workspace: Workspace, screen: Screen) -> None:
    workspace.config(PROCEDURE)
    verify = "printf 'one \\033[2Jcheck\\n'; while ! test -e go; do sleep 0.02; done; exit 3"
    flags = ("--verify", verify, "--no-verify-baseline", "-n", "1", "--verbose", "--color", "never")
    screen.start(workspace, "work", "--ai-cmd", workspace.agent("printf 'half a line'"), *flags)
    screen.wait_for(f"half a line\r\n[verify] {verify}\r\none check\r\n")
    workspace.write("go", "")
    assert screen.finish() == 2
    assert screen.sent.count(b"one check") == 1, "the warning does not quote what stands above"
    assert b"] WARN: Verify failed: exit code 3 after " in screen.sent


def test_output_of_verify_goes_where_that_of_the_agent_goes(workspace: Workspace) -> None:
    agent = workspace.agent("printf 'no newline'")
    flags = ("-n", "1", "--verify", "echo checked", "--no-verify-baseline")
    shown = workspace.work(agent, *flags, "--verbose")
    assert shown.out == "no newline\n[verify] echo checked\nchecked\n"
    assert "checked\n" not in shown.err
    quiet = workspace.work(agent, *flags)
    assert quiet.out == ""
    assert "checked\n" not in quiet.err


def test_words_of_the_agent_begin_a_new_line_after_verify(workspace: Workspace) -> None:
    flags = ("-n", "2", "--verify", "printf checked", "--verbose")
    done = workspace.work(workspace.agent("printf words"), *flags)
    check = "[verify] printf checked\nchecked\n"
    assert done.out == f"{check}words\n{check}words\n{check}"
