import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from rooda.record.rows import IterationRow, RunRow
from rooda.record.run_folders import iteration_folder
from rooda.views.model.build import summarize
from rooda.views.wording.words import AgentWords, ToolCall, readable, words_of
from rooda.world.agents.registry import TEXT
from rooda.world.state.folder import STDOUT
from support.nights import START, iteration, night
from support.states import record_at, state_of
from support.tables import each_row
from support.voices import VOICES, Voice, line

TEXT_RUN = night(command="./agent.sh")


def words(folder: Path, printed: bytes, row: IterationRow, run: RunRow | None = None) -> AgentWords:
    path = iteration_folder(state_of(folder), row.run, row.number, row.attempt)
    path.mkdir(parents=True)
    (path / STDOUT).write_bytes(printed)
    return read(folder, row, run or TEXT_RUN)


def read(folder: Path, row: IterationRow, run: RunRow) -> AgentWords:
    (one,) = summarize(run, [row], START).iterations
    return words_of(record_at(folder), run.run, one, longest=1000, steps=2)


@each_row("voice", VOICES, ids=lambda voice: voice.name)
def test_closing_words_and_tools_of_every_cli(tmp_path: Path, voice: Voice) -> None:
    events = [
        *voice.begins(),
        *voice.says("I will look first."),
        *voice.uses("read", {"path": "a.py"}),
        *voice.tool_prints("secret of a tool"),
        *voice.uses("bash", {"command": "make test"}),
        *voice.tool_prints("secret of a tool"),
        *voice.uses("bash", {"command": "make lint"}),
        *voice.tool_prints("secret of a tool"),
        *voice.says("All done.\nReally."),
        *voice.ends("All done.\nReally."),
    ]
    row = iteration(1, adapter=voice.name)
    found = words(tmp_path, b"".join(map(line, events)), row)
    assert found.text == "All done.\nReally."
    assert sum(found.tools.values()) >= 3
    assert len(found.steps) == 2
    assert any("make lint" in step.about for step in found.steps)


def test_text_of_an_unknown_agent_is_the_end_of_its_output(tmp_path: Path) -> None:
    printed = b"x\n" * 100_000 + b"\x1b[31mred\x1b[0m \xff\xfe last\nwords"
    found = words(tmp_path, printed, iteration(1, agent="agent.sh", adapter="text"))
    assert found.text.endswith("red \ufffd\ufffd last\nwords")
    assert found.is_cut
    assert len(found.text) <= 1010


def test_words_before_the_last_tool_call_count_where_none_follow(tmp_path: Path) -> None:
    claude = VOICES[0]
    events = [*claude.says("I will sort it."), *claude.uses("Bash", {"command": "sort"})]
    found = words(tmp_path, b"".join(map(line, events)), iteration(1, adapter="claude"))
    assert found.text == "I will sort it."
    assert found.steps == (ToolCall("Bash", "sort"),)


def test_a_missing_transcript_and_one_of_an_old_record(tmp_path: Path) -> None:
    row = iteration(1, adapter=None)
    assert read(tmp_path, row, night()) == AgentWords(is_gone=True)
    printed = line(VOICES[0].says("Read by the name of the command.")[0])
    assert words(tmp_path, printed, row, night()).text == "Read by the name of the command."
    link = iteration_folder(state_of(tmp_path), row.run, 2)
    link.mkdir(parents=True)
    (link / STDOUT).symlink_to("/etc/passwd")
    assert read(tmp_path, iteration(2), night()).is_gone


@pytest.mark.real
def test_a_huge_transcript_is_read_in_bounded_memory(tmp_path: Path) -> None:
    event = line(VOICES[0].uses("Bash", {"command": "y" * 1_000_000})[0])
    found = words(tmp_path, event * 60, iteration(1, adapter="claude"))
    assert found.is_cut
    assert sys.getsizeof(found.steps[-1].about) < 1000


# What `rooda show --output` makes of a transcript.


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
