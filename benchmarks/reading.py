"""100 MB of an agent's events through its adapter, against nothing but parsing the JSON."""

import json
import time
from pathlib import Path

from benchmarks.measure import alternate, report
from rooda.world.agents.agent_program import program_of
from rooda.world.agents.output_reader import OutputReader

LIMIT = 6.0  # it also makes a readable line of every line that is said
_PIECE = 1024 * 1024
_COMMAND = ("claude", "-p", "--output-format", "stream-json")
_TALK = {
    "type": "assistant",
    "message": {"content": [{"type": "text", "text": "I look at the next file.\n" * 40}]},
}
_TOOL = {
    "type": "user",
    "message": {"content": [{"type": "tool_result", "content": "a line of a source file\n" * 90}]},
}
_RESULT = {"type": "result", "is_error": False, "result": "<promise>SUCCESS</promise>"}


def measure(folder: Path) -> bool:  # noqa: ARG001 - one form for all
    pair = "".join(f"{json.dumps(event)}\n" for event in (_TALK, _TOOL)).encode()
    stream = pair * (100 * 1024 * 1024 // len(pair)) + json.dumps(_RESULT).encode() + b"\n"
    ours, theirs = alternate(lambda: _read(stream), lambda: _parse(stream), rounds=3)
    return report("100 MB of events: adapter / json.loads alone", ours, theirs, "s", LIMIT)


def _read(stream: bytes) -> float:
    began = time.perf_counter()
    program = program_of(_COMMAND)
    reader = OutputReader(program.adapter, program.form)
    for start in range(0, len(stream), _PIECE):
        reader.feed("stdout", stream[start : start + _PIECE])
    reader.finish()
    if not reader.report(0).ended_well:
        raise AssertionError("the result was not read")
    return time.perf_counter() - began


def _parse(stream: bytes) -> float:
    began = time.perf_counter()
    for line in stream.split(b"\n"):
        if line:
            json.loads(line)
    return time.perf_counter() - began
