"""What `rooda show --output` makes of a transcript."""

import tracemalloc
from collections.abc import Iterator

import pytest

from rooda.views.wording.transcript import readable
from rooda.world.agents.registry import TEXT
from support.tables import each_row
from support.voices import VOICES, Voice, line

RUDE = b"\x1b]0;owned\x07plain \x1b[31mred\x1b[0m \xff end\r\n  indented"


def cut_up(data: bytes, size: int) -> Iterator[tuple[str, bytes]]:
    return (("stdout", data[at : at + size]) for at in range(0, len(data), size))


@each_row("size", [1, 7, 100_000])
@each_row("voice", VOICES, ids=lambda voice: voice.name)
def test_words_and_tools_of_every_known_agent_can_be_read(voice: Voice, size: int) -> None:
    events = [*voice.says("I look first."), *voice.uses("Bash", {"command": "make test"})]
    data = b"".join(map(line, events))
    found = "".join(readable(cut_up(data, size), voice.name)).splitlines()
    assert "I look first." in found
    assert any(one.startswith("[tool] ") for one in found)
    assert not any(one.startswith("{") for one in found)


def test_text_stays_as_it_is_except_for_control_codes() -> None:
    for adapter in (TEXT, "claude"):  # claude prints text without `--output-format`
        for size in (1, 100):
            found = "".join(readable(cut_up(RUDE, size), adapter))
            assert found == "plain red \ufffd end\n  indented\n"


def test_standard_error_stands_between_the_words() -> None:
    claude = VOICES[0]
    words = [("stdout", line(event)) for event in claude.says("One.")]
    more = [("stdout", line(event)) for event in claude.says("Two.")]
    found = "".join(readable([*words, ("stderr", b"half a line"), *more], "claude"))
    assert found == "One.\nhalf a line\nTwo.\n"


def test_a_line_that_is_no_event_has_a_mark() -> None:
    claude = VOICES[0]
    data = b"".join(map(line, claude.says("One."))) + b"{broken \x1b[2J\n"
    found = "".join(readable(cut_up(data, 50), "claude"))
    assert found == "One.\n[note] {broken\n"


@pytest.mark.parametrize("start", [b"{", b"x"])
def test_the_memory_is_bounded(start: bytes) -> None:
    piece = b"y" * 1024 * 1024
    pieces = [("stdout", start), *[("stdout", piece)] * 64]
    tracemalloc.start()
    try:
        for _ in readable(pieces, "claude"):
            pass
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 16 * 1024 * 1024
