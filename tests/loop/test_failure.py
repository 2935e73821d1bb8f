"""The context of a failed iteration: command, reason, advice, and an excerpt of the output."""

import signal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rooda.loop.failure import FailureContext, context, excerpt, suggestion
from rooda.loop.outcome import Outcome, Verdict
from rooda.world.agents.failure_kinds import FailureKind
from rooda.world.process.capture.buffers import Captured, TailBuffer
from rooda.world.process.exits import Exit, Exited, NotStarted, Signalled, TimedOut
from rooda.world.process.request import ProcessResult
from support.tables import each_row

NOTHING = Captured(b"", b"", 0)
SEGV = Signalled(signal.SIGSEGV)


def captured(data: bytes, limit: int = 10 * 1024 * 1024) -> Captured:
    """Return what rooda keeps of a stream."""
    buffer = TailBuffer(limit)
    buffer.append(data)
    return buffer.captured()


def failed(
    end: Exit,
    kind: FailureKind,
    stdout: Captured = NOTHING,
    stderr: Captured = NOTHING,
    reason: str = "why",
) -> FailureContext:
    outcome = Outcome(Verdict.FAILURE, kind, reason)
    return context("agent --flag", outcome, ProcessResult(end, stdout, stderr, 1.5))


# -- first and last 500 characters -------------------------------------------------------------


@pytest.mark.parametrize("length", [1, 499, 500])
def test_short_output_is_shown_whole_and_once(length: int) -> None:
    assert excerpt(captured(b"x" * length), NOTHING) == ("x" * length, "")


def test_empty_output_gives_an_empty_excerpt() -> None:
    assert excerpt(NOTHING, NOTHING) == ("", "")
    assert excerpt(captured(b"\n\n"), captured(b" \n")) == ("", "")


@each_row("length", [501, 1200, 5000, 100_000])
def test_long_output_is_its_first_and_last_500_characters(length: int) -> None:
    text = "".join(f"{n} " for n in range(length))[:length].replace(" ", ".")
    assert excerpt(captured(text.encode()), NOTHING) == (text[:500], text[-500:])


@pytest.mark.parametrize("length", [600, 3000, 50_000])
def test_excerpt_counts_characters_and_not_bytes(length: int) -> None:
    wide = "\N{GRINNING FACE}" * length
    assert excerpt(captured(f"{wide}\n".encode()), NOTHING) == (wide[:500], wide[-500:])


def test_excerpt_of_two_streams_ends_with_standard_error() -> None:
    assert excerpt(captured(b"working\n"), captured(b"boom\n")) == ("working\nboom", "")


def test_standard_error_alone_is_shown() -> None:
    assert excerpt(NOTHING, captured(b"boom\n")) == ("boom", "")


def test_excerpt_of_two_long_streams_starts_with_stdout_and_ends_with_stderr() -> None:
    preview, suffix = excerpt(captured(b"a" * 20_000), captured(b"b" * 20_000))
    assert (preview, suffix) == ("a" * 500, "b" * 500)


@pytest.mark.parametrize("length", [3000, 20_000], ids=["short", "long"])
def test_short_standard_error_does_not_hide_the_end_of_standard_output(length: int) -> None:
    printed_text = b"." * length + b"\nblocked: the database is down\n"
    _, suffix = excerpt(captured(printed_text), captured(b"deprecated option\n"))
    assert "blocked: the database is down" in suffix
    assert suffix.endswith("deprecated option")
    assert len(suffix) <= 500


@pytest.mark.parametrize("length", [3000, 20_000], ids=["short", "long"])
def test_short_standard_output_does_not_hide_the_start_of_standard_error(length: int) -> None:
    printed_text = b"cannot open the config\n" + b"." * length
    preview, _ = excerpt(captured(b"hello\n"), captured(printed_text))
    assert preview.startswith("hello")
    assert "cannot open the config" in preview
    assert len(preview) <= 500


def test_excerpt_of_truncated_output_has_its_first_words() -> None:
    printed_text = b"could not read the key\n" + b"." * 100_000 + b"\nthe end\n"
    preview, suffix = excerpt(captured(printed_text, limit=1024), NOTHING)
    assert preview.startswith("could not read the key")
    assert suffix.endswith("the end")
    assert len(preview) == len(suffix) == 500


# -- control codes ----------------------------------------------------------------------------


@each_row(
    "output,shown",
    [
        (b"\x1b[31mred\x1b[0m", "red"),
        (b"\x1b]0;a title\x07text", "text"),
        (b"a\x07b\x08c\x00d", "abcd"),
        (b"one\r\ntwo", "one\ntwo"),
        (b"50%\r100%", "50%\n100%"),
        (b"a\tb", "a\tb"),
        ("\x9b31mred".encode(), "red"),
    ],
)
def test_control_codes_are_removed(output: bytes, shown: str) -> None:
    assert excerpt(captured(output), NOTHING) == (shown, "")


def test_invalid_utf_8_is_replaced() -> None:
    assert excerpt(captured(b"caf\xe9 \xff ok"), NOTHING) == ("caf\ufffd \ufffd ok", "")


@given(st.binary(max_size=9000), st.binary(max_size=9000), st.integers(1024, 12_000))
def test_any_output_gives_clean_excerpts(out: bytes, err: bytes, limit: int) -> None:
    preview, suffix = excerpt(captured(out, limit), captured(err, limit))
    assert len(preview) <= 500
    assert len(suffix) <= 500
    for text in (preview, suffix):
        assert all(char in "\t\n" or char >= " " for char in text)
        assert not any("\x7f" <= char <= "\x9f" for char in text)


# -- the rest of the context -------------------------------------------------------------------


def test_command_reason_and_duration_are_kept() -> None:
    found = failed(Exited(3), FailureKind.EXIT, reason="exit code 3")
    assert (found.command, found.reason, found.duration) == ("agent --flag", "exit code 3", 1.5)


@each_row(
    "end,kind,expected",
    [
        (Exited(3), FailureKind.EXIT, (3, None, None)),
        (Exited(0), FailureKind.SIGNAL, (0, None, None)),
        (SEGV, FailureKind.CRASH, (139, "SIGSEGV", None)),
        (TimedOut("iteration_timeout", 60.0), FailureKind.TIMEOUT, (None, None, 60.0)),
    ],
    ids=["exit", "FAILURE", "crash", "timeout"],
)
def test_context_has_exit_code_signal_and_timeout(
    end: Exit, kind: FailureKind, expected: tuple[int | None, str | None, float | None]
) -> None:
    found = failed(end, kind)
    assert (found.exit_code, found.signal, found.timeout) == expected


def test_truncation_of_either_stream_is_noted() -> None:
    long = captured(b"x" * 5000, limit=1024)
    assert failed(Exited(1), FailureKind.EXIT, stdout=long).truncated
    assert failed(Exited(1), FailureKind.EXIT, stderr=long).truncated
    assert not failed(Exited(1), FailureKind.EXIT, stdout=captured(b"x" * 1024, 1024)).truncated


@each_row(
    "kind,end,printed,word",
    [
        (FailureKind.TIMEOUT, TimedOut("iteration_timeout", 5.0), 10, "iteration_timeout"),
        (FailureKind.SIGNAL, Exited(0), 10, "end of the output"),
        (FailureKind.CRASH, Signalled(signal.SIGKILL), 10, "out-of-memory"),
        (FailureKind.CRASH, SEGV, 10, "by hand"),
        (FailureKind.NOT_STARTED, NotStarted("gone"), 0, "installed"),
        (FailureKind.EXIT, Exited(1), 0, "printed nothing"),
        (FailureKind.EXIT, Exited(1), 10, "output"),
    ],
)
def test_each_failure_has_advice_that_fits_its_end(
    kind: FailureKind, end: Exit, printed: int, word: str
) -> None:
    assert word in suggestion(kind, end, printed)


@each_row("kind", FailureKind)
def test_each_kind_of_failure_has_advice(kind: FailureKind) -> None:
    assert suggestion(kind, Exited(1), 1)
