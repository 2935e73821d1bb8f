"""Hostile output: it cannot crash the reader, fill the memory or fake a result."""

import copy
import json
import math
import random
import subprocess
import sys
import time
import tracemalloc
import unicodedata
from collections.abc import Iterator
from functools import cache
from typing import Any, Self

import pytest
from msgspec.structs import astuple

from rooda.loop.outcome import Verdict, judge
from rooda.loop.stages.promises import Promises
from rooda.world.agents.adapter import Adapter
from rooda.world.agents.agent_report import AgentReport, Form, Said
from rooda.world.agents.output_reader import OutputReader
from rooda.world.agents.registry import ADAPTERS, KNOWN
from rooda.world.process.exits import Exited
from support.tables import each_row
from support.transcripts import (
    Piece,
    Transcript,
    cut_at_random,
    read_output,
    reader_of,
    transcript,
    transcripts,
)
from support.voices import VOICES, Object, Voice, line

MB = 1024 * 1024
CONTROLS = "a\x1b[31mb\rc\x00d\x85e\x9b2Jf\x07g\ttab\x1b]0;title\x07 \nnext\u2028h\x7f"
WRONG: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    10**30,
    1e308,
    "",
    "words",
    CONTROLS,
    "\ud800 half",
    "x" * 5000,
    [],
    [None, 1, "a", {}, []],
    {},
    {"type": "text", "text": "tagged"},
    {"message": {"content": [{"type": "text", "text": 1}]}},
)

each_adapter = each_row("adapter", ADAPTERS.values(), ids=ADAPTERS)
each_voice = each_row("voice", VOICES, ids=[voice.name for voice in VOICES])


# -- properties of every report --------------------------------------------------------------


def check_lines(said: list[Said]) -> None:
    for one in said:
        assert "\n" not in one.text
        odd = {c for c in one.text if unicodedata.category(c) == "Cc" and c != "\t"}
        assert not odd, one


def check(report: AgentReport) -> None:
    """Assert that the report is consistent, for any output."""
    usage = report.usage
    assert usage.cost is None or (math.isfinite(usage.cost) and usage.cost >= 0)
    assert usage.context_percent is None or 0 <= usage.context_percent <= 100
    assert usage.turns is None or usage.turns >= 0
    if usage.tokens is not None:
        assert all(type(n) is int and n >= 0 for n in astuple(usage.tokens))
    assert report.is_complete or report.ended_well is None
    assert "\n" not in report.complaint
    assert "\x1b" not in report.complaint
    assert len(report.complaint) <= 1000
    if report.fault is not None:
        assert report.fault.evidence
        assert "\n" not in report.fault.evidence
        assert "\x1b" not in report.fault.evidence


def read_all(reader: OutputReader, pieces: list[Piece]) -> list[Said]:
    said = [one for stream, data in pieces for one in reader.feed(stream, data)]
    said += reader.finish()
    for code in (0, 1):
        check(reader.report(code))
    return said


# -- events with wrong values in any field ---------------------------------------------------


@cache
def samples(name: str) -> tuple[Object, ...]:
    """Return one event of each kind that the CLI prints or that rooda knows."""
    found: list[Object] = []
    for voice in VOICES:
        if voice.name == name:
            found += [*voice.begins(), *voice.says("hello"), *voice.tool_prints("hello")]
            found += voice.uses("bash", {"command": "ls", "path": "a"})
            found += [*voice.echoes_prompt("hello"), *voice.ends("hello"), *voice.fails("hello")]
    for one in transcripts():
        if one.cli == name and one.form == "stream":
            found += [json.loads(text) for text in one.stdout.splitlines()]
    if name == "gemini":
        found.append(json.loads(transcript("gemini-tool-json").stdout))
    kinds = {(e.get("type"), e.get("subtype"), part_type(e)): e for e in reversed(found)}
    return tuple(kinds.values())


def part_type(event: Object) -> object:
    inner = event.get("item") or event.get("part") or {}
    content = event.get("message") or {}
    blocks = content.get("content") if isinstance(content, dict) else None
    return inner.get("type") or (blocks[0]["type"] if isinstance(blocks, list) else None)


def paths(value: object, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every value in an event."""
    yield before
    items: Any = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value[:2])
    for key, inner in items:
        yield from paths(inner, (*before, key))


def with_value(event: Object, path: tuple[Any, ...], wrong: object) -> object:
    """Return the event with another value at one path."""
    if not path:
        return wrong
    whole: Any = copy.deepcopy(event)
    place = whole
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = wrong
    return whole


def every_wrong_event(name: str) -> Iterator[object]:
    for event in samples(name):
        for path in paths(event):
            for wrong in WRONG:
                yield with_value(event, path, wrong)


def try_events(adapter: Adapter, events: list[object]) -> list[Said]:
    """Read each event as a document, and all in one stream; return the readable lines."""
    stream = OutputReader(adapter, Form.EVENTS)
    said = []
    for event in events:
        printed = json.dumps(event).encode() + b"\n"
        said += stream.feed("stdout", printed)
        check(stream.report(1))
        document = OutputReader(adapter, Form.DOCUMENT)
        said += document.feed("stdout", printed) + document.finish()
        check(document.report(0))
    return said + stream.finish()


@each_row("name", KNOWN)
def test_sample_of_events_with_wrong_values_raises_no_error(name: str) -> None:
    chance = random.Random(name)
    events = list(every_wrong_event(name)) or list(WRONG)
    try_events(KNOWN[name], chance.sample(events, min(150, len(events))))


@pytest.mark.long
@each_row("name", KNOWN)
def test_wrong_values_in_every_field_of_every_event_raise_no_error(name: str) -> None:
    try_events(KNOWN[name], list(every_wrong_event(name)))


@pytest.mark.long
def test_readable_lines_are_clean_with_wrong_values_in_every_field() -> None:
    for name, adapter in KNOWN.items():
        check_lines(try_events(adapter, list(every_wrong_event(name))))


@each_voice
def test_readable_lines_contain_no_control_codes_or_newlines(voice: Voice) -> None:
    events = [
        *voice.begins(),
        *voice.says(CONTROLS),
        *voice.uses("bash", {"path": CONTROLS}),
        *voice.uses("bash", {"command": CONTROLS}),
        *voice.tool_prints(CONTROLS),
        *voice.echoes_prompt(CONTROLS),
        *voice.fails(CONTROLS),
    ]
    reader = reader_of(voice.command)
    said = read_all(reader, [("stdout", line(event)) for event in events])
    assert said
    check_lines(said)


def test_tool_name_is_cleaned_and_shortened() -> None:
    for voice in VOICES:
        events = [*voice.begins(), *voice.uses(CONTROLS + "x" * 100_000, {"path": "a"})]
        said = read_all(reader_of(voice.command), [("stdout", line(event)) for event in events])
        check_lines(said)
        assert all(len(one.text) <= 1000 for one in said)


def test_model_and_session_names_are_cleaned_and_shortened() -> None:
    name = f"{CONTROLS}\ud800{'x' * 100_000}"
    reader = reader_of("claude -p --output-format stream-json")
    reader.feed("stdout", line({"type": "system", "subtype": "init", "model": name}))
    reader.feed("stdout", line({"type": "user", "session_id": name}))
    usage = reader.report(0).usage
    for shown in (usage.model, usage.session_id):
        assert shown is not None
        assert len(shown) <= 1000
        assert not {c for c in shown if unicodedata.category(c) in ("Cc", "Cs")}


# -- output that is not an event -------------------------------------------------------------

HOSTILE = {
    "single brace": b"{\n",
    "half an event": b'{"type":"assistant","message":{"content":[{"type":"text","te\n',
    "two events on a line": b'{"type":"init"}{"type":"init"}\n',
    "list of mixed values": b'[1, "a", null, [], {}, {"type": 1}]\n',
    "bare values": b'"type"\n42\nnull\ntrue\n',
    "non-finite numbers": b'{"type":"result","total_cost_usd":NaN,'
    b'"num_turns":Infinity,"cost":-Infinity}\n',
    "number of 5000 digits": b'{"type":"result","num_turns":' + b"9" * 5000 + b"}\n",
    "huge exponent": b'{"type":"result","total_cost_usd":1e999999,"is_error":false}\n',
    "nested": b'{"type":"assistant","message":' + b"[" * 20_000 + b"]" * 20_000 + b"}\n",
    "nested objects": b'{"a":' * 10_000 + b"1" + b"}" * 10_000 + b"\n",
    "open brackets": b"[" * 30_000 + b"\n",
    "half a surrogate": b'{"type":"assistant","message":{"content":[{"type":"text",'
    b'"text":"\\ud800\\udfff\\udc00"}]}}\n',
    "NUL": b'\x00\x00{"type":"result"}\x00\n{"type":"res\x00ult"}\n',
    "invalid UTF-8": b'{"type":"assistant","x":"\xff\xfe\xc3("}\n\xff\xfe\xfd\n\xed\xa0\x80\n',
    "UTF-16": '{"type":"result"}\n'.encode("utf-16"),
    "byte order mark": b'\xef\xbb\xbf{"type":"result"}\n',
    "mixed line endings": b'{"type":"init"}\r\n{"type":"init"}\r{"type":"init"}\n\n\r\n  \n',
    "control codes": b"\x1b[2J\x1b]0;title\x07\x9b31m\x08\x08\n",
    "duplicate keys": b'{"type":"result","type":"init","is_error":false,"is_error":true}\n',
    "special attribute names": b'{"__class__":1,"type":"__init__","session_id":{"__proto__":1}}\n',
    "token count without digits": b"tokens used\n,,,\n",
}


@each_adapter
def test_output_without_events_raises_no_error(adapter: Adapter) -> None:
    for name, data in HOSTILE.items():
        for form in (Form.EVENTS, Form.DOCUMENT):
            check_lines(read_all(OutputReader(adapter, form), [("stdout", data)]))
            check_lines(read_all(OutputReader(adapter, form), [("stdout", data.rstrip())]))
        if (adapter.name, name) != (
            "codex",
            "token count without digits",
        ):  # tested separately below
            read_all(OutputReader(adapter, Form.TEXT), [("stderr", data), ("stdout", data)])


def test_token_count_without_digits_is_ignored() -> None:
    report = read_output("codex exec -", [("stderr", HOSTILE["token count without digits"])]).report
    assert report.usage.tokens is None


@each_voice
def test_hostile_lines_between_events_do_not_change_the_report(voice: Voice) -> None:
    events = [voice.begins(), voice.says("First."), voice.says("Second."), voice.ends("Second.")]
    for name, data in HOSTILE.items():
        if name in ("non-finite numbers", "huge exponent", "duplicate keys"):
            continue  # these are valid results
        pieces: list[Piece] = []
        for several in events:
            pieces += [("stdout", data.rstrip(b"\n") + b"\n"), ("stderr", data)]
            pieces += [("stdout", line(event)) for event in several]
        report = read_output(voice.command, pieces).report
        assert report.ended_well is True, name
        assert b"First." in report.spoken, name
        assert b"Second." in report.spoken, name
        assert report.fault is None, name


def nested_tool_event(voice: Voice, depth: int) -> bytes:
    """Return a tool event with arguments nested to this depth."""
    about = '{"path":' * depth + '"a"' + "}" * depth
    events = [json.dumps(event) for event in voice.uses("bash", {"path": "DEEP"})]
    return "\n".join(events).replace('"DEEP"', about).encode() + b"\n"


@each_voice
def test_nested_tool_arguments_raise_no_error(voice: Voice) -> None:
    for depth in (1, 10, 100, 400):
        read_all(reader_of(voice.command), [("stdout", nested_tool_event(voice, depth))])


def test_tool_arguments_nested_beyond_the_recursion_limit_raise_no_error() -> None:
    for voice in VOICES:
        for depth in (600, 900, 2000):
            read_all(reader_of(voice.command), [("stdout", nested_tool_event(voice, depth))])


def test_thousands_of_blank_lines_on_stderr_are_read_fast() -> None:
    error = b"Error when talking to Gemini API x Error: y\n"
    for command in ("gemini --yolo", "gemini --yolo -o stream-json"):
        reader = reader_of(command)
        reader.feed("stderr", error + b"\n" * 8000)
        reader.finish()
        started = time.process_time()
        reader.report(1)
        assert time.process_time() - started < 0.1


@each_adapter
def test_random_bytes_in_random_pieces_raise_no_error(adapter: Adapter) -> None:
    chance = random.Random(adapter.name)
    words = [b'{"type":', b'"result"', b"}", b"\n", b"\r", b'"', b"\\", b"\\u", b"[", b",", b":"]
    words += [b'"text"', b'"content"', b"null", b"\x00", b"\xff", b"\x1b[", b"Error: ", b"429"]
    for _ in range(12):
        noise = b"".join(
            chance.choice(words) if chance.random() < 0.8 else chance.randbytes(3)
            for _ in range(chance.randrange(1, 200))
        )
        for form in Form:
            pieces = cut_at_random([("stdout", noise), ("stderr", noise[::-1])], chance)
            check_lines(read_all(OutputReader(adapter, form), pieces))


@each_adapter
def test_output_of_other_clis_raises_no_error(adapter: Adapter) -> None:
    for one in transcripts()[::2]:
        for form in (Form.EVENTS, Form.DOCUMENT):
            check_lines(read_all(OutputReader(adapter, form), one.pieces()))


# -- truncated streams -----------------------------------------------------------------------


def ended_well(form: str) -> list[Transcript]:
    """Return the successful transcripts of this form."""
    good = ("plain", "success", "tool", "toolecho")
    known = [one for one in transcripts() if one.cli in KNOWN and one.scenario in good]
    return [one for one in known if one.form == form]


def documents() -> list[Transcript]:
    """Return the successful transcripts that are one JSON value."""
    return [one for one in ended_well("json") if one.cli in ("claude", "gemini", "qwen")]


def cuts(one: Transcript) -> list[int]:
    """Return positions at which to truncate the output: line ends and random positions."""
    whole = one.stdout.rstrip()
    ends = [at for at, byte in enumerate(whole) if byte == ord("\n")]
    chance = random.Random(one.name)
    inside = [chance.randrange(1, len(whole)) for _ in range(20)]
    found = {*ends, *(end + 1 for end in ends), *inside, 0, 1, len(whole) - 1}
    return sorted(at for at in found if at < len(whole))


def verdict_of(one: Transcript, size: int) -> tuple[AgentReport, Verdict]:
    report = read_output(one.command, [("stdout", one.stdout[:size])]).report
    return report, judge(Exited(0), Promises(), report).verdict


@each_row("one", ended_well("stream"), ids=lambda one: one.name)
def test_truncated_stream_is_incomplete_and_a_failure(one: Transcript) -> None:
    first = one.stdout.index(b"\n")
    for size in cuts(one):
        if 0 < size < first:
            continue  # tested separately below
        report, verdict = verdict_of(one, size)
        assert report.ended_well is None
        assert not report.is_complete or not report.speaks_events
        assert verdict is Verdict.FAILURE
    assert verdict_of(one, len(one.stdout))[1] is Verdict.CONTINUE


def test_truncated_first_event_is_a_failure() -> None:
    for one in ended_well("stream"):
        first = one.stdout.index(b"\n")
        for size in (1, first // 2, first - 1):
            assert verdict_of(one, size)[1] is Verdict.FAILURE


def test_truncated_document_is_a_failure() -> None:
    for one in documents():
        for size in cuts(one)[1:]:
            assert verdict_of(one, size)[1] is Verdict.FAILURE


def test_document_is_read_as_soon_as_it_is_complete() -> None:
    for one in documents():
        reader = reader_of(one.command)
        whole = one.stdout.rstrip()
        for start in range(0, len(whole), 7):
            assert not reader.is_result_in
            reader.feed("stdout", whole[start : start + 7])
        assert reader.is_result_in


@each_voice
def test_last_event_needs_no_newline(voice: Voice) -> None:
    events = [*voice.begins(), *voice.says("Done."), *voice.ends("Done.")]
    printed = b"".join(map(line, events)).rstrip()
    report = read_output(voice.command, [("stdout", printed)]).report
    assert report.is_complete
    assert report.ended_well is True


@each_voice
def test_noise_after_the_result_does_not_withdraw_it(voice: Voice) -> None:
    reader = reader_of(voice.command)
    for event in [*voice.begins(), *voice.says("Done."), *voice.ends("Done.")]:
        reader.feed("stdout", line(event))
    for noise in (b"\n", b"Warning: a handle is still open\n", b'{"level":"warn"}\n', b"[1]\n{"):
        reader.feed("stdout", noise)
        reader.feed("stderr", noise)
        assert reader.is_result_in
    reader.finish()
    report = reader.report(0)
    assert (report.is_complete, report.ended_well) == (True, True)


# -- huge output -----------------------------------------------------------------------------


class Measured:
    """Measures the peak memory of a block."""

    def __enter__(self) -> Self:
        tracemalloc.start()
        self._before = tracemalloc.get_traced_memory()[0]
        return self

    def __exit__(self, *_: object) -> None:
        self.peak = tracemalloc.get_traced_memory()[1] - self._before
        tracemalloc.stop()


def test_line_with_a_million_parts_is_read_in_bounded_memory() -> None:
    for part in (b"1,", b'{"a":[1]},'):
        data = b'{"type":"assistant","message":[' + part * (MB // len(part) - 100) + b"1]}\n"
        reader = reader_of("claude -p --output-format stream-json")
        with Measured() as memory:
            reader.feed("stdout", data)
            read_all(reader, [])
        assert memory.peak < 40 * MB


def test_flood_of_small_events_is_read_in_bounded_memory() -> None:
    event = line({"type": "assistant", "message": {"content": [{"type": "text", "text": "hi\n"}]}})
    reader = OutputReader(ADAPTERS["claude"], Form.EVENTS, limit=64 * 1024)
    with Measured() as memory:
        for _ in range(60):
            reader.feed("stdout", event * 100)
    assert memory.peak < 2 * MB
    assert len(reader.report(0).spoken) <= 64 * 1024


def test_text_without_newlines_is_read_in_bounded_memory() -> None:
    piece = {"type": "message", "role": "assistant", "content": "x" * 8000, "delta": True}
    reader = OutputReader(ADAPTERS["gemini"], Form.EVENTS, limit=64 * 1024)
    with Measured() as memory:
        for _ in range(800):
            reader.feed("stdout", line(piece))
    assert memory.peak < 4 * MB


HUGE = """
import resource, sys
from rooda.world.agents.output_reader import OutputReader
from rooda.world.agents.registry import ADAPTERS
from rooda.world.agents.agent_report import Form

def used():
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024

name, form, size, piece = sys.argv[1], Form(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
reader, before = OutputReader(ADAPTERS[name], form), used()
head, tail = sys.argv[5].encode(), sys.argv[6].encode()
reader.feed("stdout", head)
part = (sys.argv[7].encode() * piece)[:piece]
for _ in range(size // piece):
    reader.feed("stdout", part)
    reader.feed("stderr", part)
reader.feed("stdout", tail)
reader.finish()
report = reader.report(0)
print(used() - before, report.ended_well, report.spoken.count(b"SUCCESS"), len(report.spoken))
"""
DOCUMENT = '{"type":"result","is_error":false,"result":"'


def measured(name: str, form: Form, size: int, piece: int, *words: str) -> tuple[int, str, int]:
    """Return memory, result and number of signals for one line of this size, in a new process."""
    command = [sys.executable, "-c", HUGE, name, form, str(size), str(piece), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=50)
    memory, well, promises, _ = done.stdout.split()
    return int(memory), well, int(promises)


FILLINGS = ("x", '\\"', "\\\\", "\\n", "\\u00e9", "é", "\\ud83d\\ude00")
END = '\\n<promise>SUCCESS</promise>"}\n'
PIECE = 60 * 1024  # a multiple of the length of each filling


@pytest.mark.long
def test_shortened_huge_event_is_valid_at_every_cut_position() -> None:
    for filling in FILLINGS:
        data = filling.encode() * (9 * MB // 8 // len(filling.encode()))
        for shift in range(6):
            for form in (Form.EVENTS, Form.DOCUMENT):
                reader = OutputReader(ADAPTERS["claude"], form)
                head = DOCUMENT.replace("{", "{" + " " * shift)
                reader.feed("stdout", head.encode())
                reader.feed("stdout", data)
                reader.feed("stdout", END.encode())
                reader.finish()
                report = reader.report(0)
                assert report.ended_well is True
                assert b"<promise>SUCCESS</promise>" in report.spoken


@pytest.mark.long
@each_row("form", [Form.EVENTS, Form.DOCUMENT, Form.UNKNOWN])
@each_row("filling", FILLINGS)
def test_event_line_of_200_mb_is_read_in_bounded_memory(form: Form, filling: str) -> None:
    memory, well, promises = measured("claude", form, 200 * MB, PIECE, DOCUMENT, END, filling)
    assert memory < 40 * MB
    assert (well, promises) == ("True", 1)


@pytest.mark.long
@each_row("filling", ["x", "[", "{", '"', "\\", ",", '{"type":', "\x1b"])
def test_200_mb_without_events_are_read_in_bounded_memory(filling: str) -> None:
    for form in (Form.EVENTS, Form.DOCUMENT):
        memory, well, promises = measured("gemini", form, 200 * MB, MB, "", "\n", filling)
        assert memory < 40 * MB
        assert (well, promises) == ("None", 0)


@pytest.mark.long
def test_line_in_millions_of_tiny_pieces_is_read_in_bounded_memory_and_time() -> None:
    started = time.process_time()
    memory, well, promises = measured("claude", Form.EVENTS, 6 * MB, 3, DOCUMENT, END, "x")
    assert memory < 60 * MB
    assert (well, promises) == ("True", 1)
    assert time.process_time() - started < 20


def test_reading_time_grows_linearly_with_the_number_of_lines() -> None:
    def seconds(lines: int) -> float:
        reader = OutputReader(ADAPTERS["claude"], Form.EVENTS)
        said = line({"type": "assistant", "message": {"content": [{"type": "text", "text": "hi"}]}})
        data = said * 50
        started = time.process_time()
        for _ in range(lines // 50):
            reader.feed("stdout", data)
        return time.process_time() - started

    seconds(500)
    assert seconds(8000) < 40 * max(seconds(800), 0.002)


# -- lines of any length ---------------------------------------------------------------------


@pytest.mark.long
@each_row("shift", range(8))
def test_huge_line_is_shortened_in_the_middle_and_stays_an_event(shift: int) -> None:
    # Escapes everywhere, so that each cut falls inside an escape.
    words = "x" * shift + 'a\\"\n' * 600_000 + "<promise>SUCCESS</promise>"
    result = {"type": "result", "is_error": False, "result": words, "num_turns": 3}
    reader = reader_of("claude -p --output-format stream-json")
    data = line(result)
    for start in range(0, len(data), 100_000):
        reader.feed("stdout", data[start : start + 100_000])
    report = reader.report(0)
    assert report.ended_well is True
    assert report.usage.turns == 3
    assert report.spoken.rstrip().endswith(b"<promise>SUCCESS</promise>")
    assert len(report.spoken) < 1_000_000


def test_huge_document_is_shortened_and_read() -> None:
    document = {"session_id": "s", "response": "y" * 3_000_000 + " the end", "stats": {}}
    reader = reader_of("gemini -o json")
    reader.feed("stdout", json.dumps(document, indent=2).encode())
    reader.finish()
    report = reader.report(0)
    assert report.ended_well is True
    assert report.spoken.rstrip().endswith(b"the end")
