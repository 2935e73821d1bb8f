"""Hostile output: nothing that is printed breaks the reader, fills the memory or is believed."""

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

from rooda.agents.adapter import Adapter
from rooda.agents.output_reader import OutputReader
from rooda.agents.registry import ADAPTERS, KNOWN
from rooda.agents.report import AgentReport, Form, Said
from rooda.loop.outcome import Verdict, judge
from rooda.loop.promises import Promises
from rooda.process.exits import Exited
from support.transcripts import (
    Piece,
    Transcript,
    cut_at_random,
    heard,
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

each_adapter = pytest.mark.parametrize("adapter", ADAPTERS.values(), ids=ADAPTERS)
each_voice = pytest.mark.parametrize("voice", VOICES, ids=[voice.name for voice in VOICES])


# -- what must hold of everything ------------------------------------------------------------


def check_lines(said: list[Said]) -> None:
    for one in said:
        assert "\n" not in one.text
        odd = {c for c in one.text if unicodedata.category(c) == "Cc" and c != "\t"}
        assert not odd, one


def check(report: AgentReport) -> None:
    """Whatever was printed, the report makes sense."""
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


# -- events with anything in any of their fields ---------------------------------------------


@cache
def samples(name: str) -> tuple[Object, ...]:
    """One event of each kind that the CLI prints, or that we know of."""
    found: list[Object] = []
    for voice in VOICES:
        if voice.name == name:
            found += [*voice.begins(), *voice.says("hello"), *voice.tool_prints("hello")]
            found += voice.uses("bash", {"command": "ls", "path": "a"})
            found += [*voice.is_told("hello"), *voice.ends("hello"), *voice.fails("hello")]
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
    """Where in an event there is anything."""
    yield before
    items: Any = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value[:2])
    for key, inner in items:
        yield from paths(inner, (*before, key))


def spoilt(event: Object, path: tuple[Any, ...], wrong: object) -> object:
    """The event with something else at one place."""
    if not path:
        return wrong
    whole: Any = copy.deepcopy(event)
    place = whole
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = wrong
    return whole


def every_spoilt(name: str) -> Iterator[object]:
    for event in samples(name):
        for path in paths(event):
            for wrong in WRONG:
                yield spoilt(event, path, wrong)


def try_events(adapter: Adapter, events: list[object]) -> list[Said]:
    """Each by itself as a document, and all of them in one stream; the lines for people."""
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


@pytest.mark.parametrize("name", KNOWN)
def test_events_with_anything_in_their_fields_break_nothing(name: str) -> None:
    chance = random.Random(name)
    events = list(every_spoilt(name)) or list(WRONG)
    try_events(KNOWN[name], chance.sample(events, min(150, len(events))))


@pytest.mark.slow
@pytest.mark.parametrize("name", KNOWN)
def test_every_field_of_every_event_may_be_anything(name: str) -> None:
    try_events(KNOWN[name], list(every_spoilt(name)))


@pytest.mark.slow
def test_whatever_the_fields_are_the_lines_are_fit_to_be_shown() -> None:
    for name, adapter in KNOWN.items():
        check_lines(try_events(adapter, list(every_spoilt(name))))


@each_voice
def test_no_line_for_people_has_control_codes_or_two_lines(voice: Voice) -> None:
    events = [
        *voice.begins(),
        *voice.says(CONTROLS),
        *voice.uses("bash", {"path": CONTROLS}),
        *voice.uses("bash", {"command": CONTROLS}),
        *voice.tool_prints(CONTROLS),
        *voice.is_told(CONTROLS),
        *voice.fails(CONTROLS),
    ]
    reader = reader_of(voice.command)
    said = read_all(reader, [("stdout", line(event)) for event in events])
    assert said
    check_lines(said)


def test_the_name_of_a_tool_is_fit_to_be_shown() -> None:
    for voice in VOICES:
        events = [*voice.begins(), *voice.uses(CONTROLS + "x" * 100_000, {"path": "a"})]
        said = read_all(reader_of(voice.command), [("stdout", line(event)) for event in events])
        check_lines(said)
        assert all(len(one.text) <= 1000 for one in said)


def test_the_names_of_model_and_session_are_fit_to_be_shown() -> None:
    name = f"{CONTROLS}\ud800{'x' * 100_000}"
    reader = reader_of("claude -p --output-format stream-json")
    reader.feed("stdout", line({"type": "system", "subtype": "init", "model": name}))
    reader.feed("stdout", line({"type": "user", "session_id": name}))
    usage = reader.report(0).usage
    for shown in (usage.model, usage.session_id):
        assert shown is not None
        assert len(shown) <= 1000
        assert not {c for c in shown if unicodedata.category(c) in ("Cc", "Cs")}


# -- what is no event at all -----------------------------------------------------------------

HOSTILE = {
    "nothing but a brace": b"{\n",
    "half an event": b'{"type":"assistant","message":{"content":[{"type":"text","te\n',
    "two on a line": b'{"type":"init"}{"type":"init"}\n',
    "a list of things": b'[1, "a", null, [], {}, {"type": 1}]\n',
    "a bare value": b'"type"\n42\nnull\ntrue\n',
    "no numbers": b'{"type":"result","total_cost_usd":NaN,"num_turns":Infinity,"cost":-Infinity}\n',
    "a number of 5000 digits": b'{"type":"result","num_turns":' + b"9" * 5000 + b"}\n",
    "a huge exponent": b'{"type":"result","total_cost_usd":1e999999,"is_error":false}\n',
    "nested": b'{"type":"assistant","message":' + b"[" * 20_000 + b"]" * 20_000 + b"}\n",
    "nested objects": b'{"a":' * 10_000 + b"1" + b"}" * 10_000 + b"\n",
    "open brackets": b"[" * 30_000 + b"\n",
    "half a surrogate": b'{"type":"assistant","message":{"content":[{"type":"text",'
    b'"text":"\\ud800\\udfff\\udc00"}]}}\n',
    "NUL": b'\x00\x00{"type":"result"}\x00\n{"type":"res\x00ult"}\n',
    "invalid UTF-8": b'{"type":"assistant","x":"\xff\xfe\xc3("}\n\xff\xfe\xfd\n\xed\xa0\x80\n',
    "UTF-16": '{"type":"result"}\n'.encode("utf-16"),
    "a byte order mark": b'\xef\xbb\xbf{"type":"result"}\n',
    "other ends of lines": b'{"type":"init"}\r\n{"type":"init"}\r{"type":"init"}\n\n\r\n  \n',
    "control codes": b"\x1b[2J\x1b]0;title\x07\x9b31m\x08\x08\n",
    "the same key twice": b'{"type":"result","type":"init","is_error":false,"is_error":true}\n',
    "keys of the language": b'{"__class__":1,"type":"__init__","session_id":{"__proto__":1}}\n',
    "tokens that are none": b"tokens used\n,,,\n",
}


@each_adapter
def test_what_is_no_event_breaks_nothing(adapter: Adapter) -> None:
    for name, data in HOSTILE.items():
        for form in (Form.EVENTS, Form.DOCUMENT):
            check_lines(read_all(OutputReader(adapter, form), [("stdout", data)]))
            check_lines(read_all(OutputReader(adapter, form), [("stdout", data.rstrip())]))
        if (adapter.name, name) != ("codex", "tokens that are none"):  # see below
            read_all(OutputReader(adapter, Form.TEXT), [("stderr", data), ("stdout", data)])


def test_a_count_of_tokens_that_is_none_breaks_nothing() -> None:
    report = heard("codex exec -", [("stderr", HOSTILE["tokens that are none"])]).report
    assert report.usage.tokens is None


@each_voice
def test_hostile_lines_between_good_ones_take_nothing_away(voice: Voice) -> None:
    events = [voice.begins(), voice.says("First."), voice.says("Second."), voice.ends("Second.")]
    for name, data in HOSTILE.items():
        if name in ("no numbers", "a huge exponent", "the same key twice"):
            continue  # results of a kind, as far as anybody can tell
        pieces: list[Piece] = []
        for several in events:
            pieces += [("stdout", data.rstrip(b"\n") + b"\n"), ("stderr", data)]
            pieces += [("stdout", line(event)) for event in several]
        report = heard(voice.command, pieces).report
        assert report.ended_well is True, name
        assert b"First." in report.spoken, name
        assert b"Second." in report.spoken, name
        assert report.fault is None, name


def a_tool_in_depth(voice: Voice, depth: int) -> bytes:
    """A tool that is about a thing in a thing in a thing."""
    about = '{"path":' * depth + '"a"' + "}" * depth
    events = [json.dumps(event) for event in voice.uses("bash", {"path": "DEEP"})]
    return "\n".join(events).replace('"DEEP"', about).encode() + b"\n"


@each_voice
def test_a_tool_may_be_about_a_thing_in_a_thing_in_a_thing(voice: Voice) -> None:
    for depth in (1, 10, 100, 400):
        read_all(reader_of(voice.command), [("stdout", a_tool_in_depth(voice, depth))])


def test_a_tool_may_be_about_a_thing_that_is_nested_without_end() -> None:
    for voice in VOICES:
        for depth in (600, 900, 2000):
            read_all(reader_of(voice.command), [("stdout", a_tool_in_depth(voice, depth))])


def test_blank_lines_on_standard_error_cost_no_time() -> None:
    error = b"Error when talking to Gemini API x Error: y\n"
    for command in ("gemini --yolo", "gemini --yolo -o stream-json"):
        reader = reader_of(command)
        reader.feed("stderr", error + b"\n" * 8000)
        reader.finish()
        began = time.process_time()
        reader.report(1)
        assert time.process_time() - began < 0.1


@each_adapter
def test_random_bytes_in_random_pieces_break_nothing(adapter: Adapter) -> None:
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
def test_the_output_of_every_other_cli_breaks_nothing(adapter: Adapter) -> None:
    for one in transcripts()[::2]:
        for form in (Form.EVENTS, Form.DOCUMENT):
            check_lines(read_all(OutputReader(adapter, form), one.pieces()))


# -- a stream that was cut -------------------------------------------------------------------


def ended_well(form: str) -> list[Transcript]:
    """Transcripts of this form in which all went well."""
    good = ("plain", "success", "tool", "toolecho")
    known = [one for one in transcripts() if one.cli in KNOWN and one.scenario in good]
    return [one for one in known if one.form == form]


def documents() -> list[Transcript]:
    """Those that are one JSON value, printed at the end."""
    return [one for one in ended_well("json") if one.cli in ("claude", "gemini", "qwen")]


def cuts(one: Transcript) -> list[int]:
    """Places in its output, those where lines end and some by chance; the whole is none."""
    whole = one.stdout.rstrip()
    ends = [at for at, byte in enumerate(whole) if byte == ord("\n")]
    chance = random.Random(one.name)
    inside = [chance.randrange(1, len(whole)) for _ in range(20)]
    found = {*ends, *(end + 1 for end in ends), *inside, 0, 1, len(whole) - 1}
    return sorted(at for at in found if at < len(whole))


def verdict_of(one: Transcript, size: int) -> tuple[AgentReport, Verdict]:
    report = heard(one.command, [("stdout", one.stdout[:size])]).report
    return report, judge(Exited(0), Promises(), report).verdict


@pytest.mark.parametrize("one", ended_well("stream"), ids=lambda one: one.name)
def test_a_stream_cut_anywhere_is_incomplete_and_no_success(one: Transcript) -> None:
    first = one.stdout.index(b"\n")
    for size in cuts(one):
        if 0 < size < first:
            continue  # see below
        report, verdict = verdict_of(one, size)
        assert report.ended_well is None
        assert not report.is_complete or not report.speaks_events
        assert verdict is Verdict.FAILURE
    assert verdict_of(one, len(one.stdout))[1] is Verdict.CONTINUE


def test_half_of_the_first_event_is_no_answer() -> None:
    for one in ended_well("stream"):
        first = one.stdout.index(b"\n")
        for size in (1, first // 2, first - 1):
            assert verdict_of(one, size)[1] is Verdict.FAILURE


def test_half_a_document_is_no_answer() -> None:
    for one in documents():
        for size in cuts(one)[1:]:
            assert verdict_of(one, size)[1] is Verdict.FAILURE


def test_a_document_is_read_as_soon_as_it_is_whole() -> None:
    for one in documents():
        reader = reader_of(one.command)
        whole = one.stdout.rstrip()
        for start in range(0, len(whole), 7):
            assert not reader.is_result_in
            reader.feed("stdout", whole[start : start + 7])
        assert reader.is_result_in


@each_voice
def test_the_last_line_needs_no_end(voice: Voice) -> None:
    events = [*voice.begins(), *voice.says("Done."), *voice.ends("Done.")]
    printed = b"".join(map(line, events)).rstrip()
    report = heard(voice.command, [("stdout", printed)]).report
    assert report.is_complete
    assert report.ended_well is True


@each_voice
def test_noise_after_the_result_takes_nothing_back(voice: Voice) -> None:
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


# -- more than anybody can hold --------------------------------------------------------------


class Measured:
    """How much memory was taken in a block."""

    def __enter__(self) -> Self:
        tracemalloc.start()
        self._before = tracemalloc.get_traced_memory()[0]
        return self

    def __exit__(self, *_: object) -> None:
        self.peak = tracemalloc.get_traced_memory()[1] - self._before
        tracemalloc.stop()


def test_a_line_with_a_million_parts_is_not_taken_apart() -> None:
    for part in (b"1,", b'{"a":[1]},'):
        data = b'{"type":"assistant","message":[' + part * (MB // len(part) - 100) + b"1]}\n"
        reader = reader_of("claude -p --output-format stream-json")
        with Measured() as memory:
            reader.feed("stdout", data)
            read_all(reader, [])
        assert memory.peak < 40 * MB


def test_a_flood_of_small_events_is_not_kept() -> None:
    event = line({"type": "assistant", "message": {"content": [{"type": "text", "text": "hi\n"}]}})
    reader = OutputReader(ADAPTERS["claude"], Form.EVENTS, limit=64 * 1024)
    with Measured() as memory:
        for _ in range(60):
            reader.feed("stdout", event * 100)
    assert memory.peak < 2 * MB
    assert len(reader.report(0).spoken) <= 64 * 1024


def test_a_text_without_an_end_of_line_is_not_kept_whole() -> None:
    piece = {"type": "message", "role": "assistant", "content": "x" * 8000, "delta": True}
    reader = OutputReader(ADAPTERS["gemini"], Form.EVENTS, limit=64 * 1024)
    with Measured() as memory:
        for _ in range(800):
            reader.feed("stdout", line(piece))
    assert memory.peak < 4 * MB


HUGE = """
import resource, sys
from rooda.agents.output_reader import OutputReader
from rooda.agents.registry import ADAPTERS
from rooda.agents.report import Form

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
    """Memory, end and promises of a reader that gets this much in one line, in its own process."""
    command = [sys.executable, "-c", HUGE, name, form, str(size), str(piece), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=50)
    memory, well, promises, _ = done.stdout.split()
    return int(memory), well, int(promises)


FILLINGS = ("x", '\\"', "\\\\", "\\n", "\\u00e9", "é", "\\ud83d\\ude00")
END = '\\n<promise>SUCCESS</promise>"}\n'
PIECE = 60 * 1024  # so that each filling fits into it without a rest


@pytest.mark.slow
def test_what_is_left_of_a_huge_event_is_still_one_wherever_it_is_cut() -> None:
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


@pytest.mark.slow
@pytest.mark.parametrize("form", [Form.EVENTS, Form.DOCUMENT, Form.UNKNOWN])
@pytest.mark.parametrize("filling", FILLINGS)
def test_a_line_of_200_mb_is_read_in_bounded_memory(form: Form, filling: str) -> None:
    memory, well, promises = measured("claude", form, 200 * MB, PIECE, DOCUMENT, END, filling)
    assert memory < 40 * MB
    assert (well, promises) == ("True", 1)


@pytest.mark.slow
@pytest.mark.parametrize("filling", ["x", "[", "{", '"', "\\", ",", '{"type":', "\x1b"])
def test_200_mb_that_are_no_event_are_read_in_bounded_memory(filling: str) -> None:
    for form in (Form.EVENTS, Form.DOCUMENT):
        memory, well, promises = measured("gemini", form, 200 * MB, MB, "", "\n", filling)
        assert memory < 40 * MB
        assert (well, promises) == ("None", 0)


@pytest.mark.slow
def test_a_line_in_millions_of_tiny_pieces_is_read_in_bounded_memory_and_time() -> None:
    began = time.process_time()
    memory, well, promises = measured("claude", Form.EVENTS, 6 * MB, 3, DOCUMENT, END, "x")
    assert memory < 60 * MB
    assert (well, promises) == ("True", 1)
    assert time.process_time() - began < 20


def test_many_lines_cost_no_more_for_each_than_few() -> None:
    def seconds(lines: int) -> float:
        reader = OutputReader(ADAPTERS["claude"], Form.EVENTS)
        said = line({"type": "assistant", "message": {"content": [{"type": "text", "text": "hi"}]}})
        data = said * 50
        began = time.process_time()
        for _ in range(lines // 50):
            reader.feed("stdout", data)
        return time.process_time() - began

    seconds(500)
    assert seconds(8000) < 40 * max(seconds(800), 0.002)


# -- lines of any length ---------------------------------------------------------------------


@pytest.mark.parametrize("shift", range(8))
def test_of_a_huge_line_the_middle_is_left_out_and_the_rest_is_still_an_event(shift: int) -> None:
    # Escapes everywhere, so that the cuts fall into the middle of them.
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


def test_a_huge_document_is_read_like_a_huge_line() -> None:
    document = {"session_id": "s", "response": "y" * 3_000_000 + " the end", "stats": {}}
    reader = reader_of("gemini -o json")
    reader.feed("stdout", json.dumps(document, indent=2).encode())
    reader.finish()
    report = reader.report(0)
    assert report.ended_well is True
    assert report.spoken.rstrip().endswith(b"the end")
