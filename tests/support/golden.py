"""Golden files: what rooda writes about a run, without what differs from run to run.

`ROODA_WRITE_GOLDEN=1 .venv/bin/pytest FILE` writes the files again.
"""

import json
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from support.finished import Finished

FOLDER = Path(__file__).parents[1] / "corpus/golden"
_IS_WRITTEN_AGAIN = "ROODA_WRITE_GOLDEN" in os.environ
# Values that differ from run to run, or from machine to machine.
_CHANGING = frozenset({
    *("pid", "pid_started", "pid_namespace", "host", "boot", "prompt_size", "duration_ms", "mean"),
    "total_duration_ms",
    *("minimum", "maximum", "stddev", "total_elapsed", "elapsed", "size", "snapshot"),
    *("worker", "where"),
})  # fmt: skip
# Long values that other tests look at.
_APART = frozenset({"settings", "state", "repository", "given", "flags"})
# What took less than a millisecond is left out, so these depend on the load of the machine.
_LOADED = frozenset({"segments", "spans", "times", "verify_seconds"})
_FORMS = (
    (re.compile(r"\b\d{8}-\d{6}-[0-9a-f]{4,6}\b"), "RUN"),
    (re.compile(r"\bwork-[0-9a-f]{16}\b"), "TREE"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[\d.:+Z-]*"), "TIME"),
    (re.compile(r"\b[0-9a-f]{40}\b"), "HASH"),
    (re.compile(r"\b[0-9a-f]{7,16}\b(?=$|[. '\"])"), "HASH"),
    (re.compile(r"\b\d{4}-\d\d-\d\d "), ""),
    (re.compile(r"\b\d\d:\d\d(:\d\d)?\b"), "CLOCK"),
    (re.compile(r"^Time  .*"), "Time"),
    (re.compile(r"\b\d+(\.\d+)?(ms|s|m|h)( \d+s)?\b"), "DURATION"),
    (re.compile(r"\(pid \d+\)|\bpid=\d+"), "PID"),
)


class Golden:
    """Compares values with one golden file, which holds an object with one name for each."""

    def __init__(self, name: str, paths: Iterable[Path]) -> None:
        self._file = FOLDER / f"{name}.json"
        self._paths = [str(path) for path in paths]
        self._found: dict[str, Any] = {}

    def add(self, name: str, value: object) -> None:
        """Take a value: of JSON, or text."""
        lines = value.splitlines() if isinstance(value, str) else value
        self._found[name] = self._plain(lines)

    def add_printed(self, name: str, done: Finished) -> None:
        """Take the JSON that a command printed."""
        self.add(name, json.loads(done.out))

    def check(self) -> None:
        """Fail if a value is not as in the file."""
        if _IS_WRITTEN_AGAIN:
            text = json.dumps(self._found, indent=1, sort_keys=True, ensure_ascii=False)
            self._file.write_text(f"{text}\n")
        expected = json.loads(self._file.read_text())
        wrong = list(_differences(self._found, expected))
        assert not wrong, "\n".join([*wrong, "ROODA_WRITE_GOLDEN=1 writes the file again"])

    def _plain(self, value: Any, name: str = "") -> Any:
        """Return the value without what changes; a key stays, with the type of its value."""
        if name in _APART and isinstance(value, dict | list):
            return "..."
        if name in _CHANGING and isinstance(value, str | int | float):
            return type(value).__name__.upper()
        if isinstance(value, dict):
            known = {key: one for key, one in value.items() if key not in _LOADED}
            return {key: self._plain(one, key) for key, one in known.items()}
        if isinstance(value, list | tuple):
            return [self._plain(one) for one in value]
        if isinstance(value, float) and name not in ("cost", "timeout"):
            return "SECONDS"
        return self._text(value) if isinstance(value, str) else value

    def _text(self, text: str) -> str:
        for number, path in enumerate(self._paths):
            text = text.replace(path, f"/PLACE-{number}")
        for form, word in _FORMS:
            text = form.sub(word, text)
        return text


def _differences(found: Any, expected: Any, place: str = "") -> Iterator[str]:
    """Yield each place where two values of JSON differ."""
    if isinstance(found, dict) and isinstance(expected, dict):
        for name in sorted({*found, *expected}):
            values = found.get(name, "(missing)"), expected.get(name, "(missing)")
            yield from _differences(*values, f"{place}/{name}")
    elif isinstance(found, list) and isinstance(expected, list) and len(found) == len(expected):
        for number, values in enumerate(zip(found, expected, strict=True)):
            yield from _differences(*values, f"{place}/{number}")
    elif found != expected:
        yield f"{place}: {found!r} instead of {expected!r}"
