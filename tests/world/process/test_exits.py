"""The exits of a program: description, exit code and success."""

import signal

import pytest

from rooda.world.process.exits import (
    Canceled,
    Exit,
    Exited,
    HungAfterResult,
    Interrupted,
    Lost,
    NotStarted,
    Signalled,
    TimedOut,
    describe,
    exit_code,
    from_returncode,
    signal_name,
    succeeded,
)


@pytest.mark.parametrize(
    "end,words,code,good",
    [
        (Exited(0), "exit code 0", 0, True),
        (Exited(7), "exit code 7", 7, False),
        (Signalled(signal.SIGSEGV), "killed by SIGSEGV", 139, False),
        (TimedOut("timeout", 90), "timed out after 90s", None, False),
        (
            TimedOut("max_duration", 3600),
            "stopped, because the run reached max_duration (3600s)",
            None,
            False,
        ),
        (
            HungAfterResult("result_grace", 30),
            "stopped, because it did not exit within 30s of its result",
            None,
            True,
        ),
        (Canceled("max_cost", "$2 spent"), "$2 spent", None, False),
        (Interrupted(signal.SIGINT), "interrupted", None, False),
        (Lost("the warden is gone"), "the warden is gone", None, False),
        (NotStarted("agent: not found"), "agent: not found", None, False),
    ],
)
def test_description_exit_code_and_success_of_each_exit(
    end: Exit, words: str, code: int | None, *, good: bool
) -> None:
    assert (describe(end), exit_code(end), succeeded(end)) == (words, code, good)


@pytest.mark.parametrize("returncode,end", [(3, Exited(3)), (-9, Signalled(9))])
def test_negative_return_code_is_a_signal(returncode: int, end: Exit) -> None:
    assert from_returncode(returncode) == end


def test_signal_without_a_name_is_described_by_number() -> None:
    assert (signal_name(15), signal_name(250)) == ("SIGTERM", "signal 250")
