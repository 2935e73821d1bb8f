"""The corpora of test-runner outputs."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rooda.iteration.types import TestResults
from rooda.testresults import read_bytes, read_xml

_CORPUS = Path(__file__).parent.parent / "corpus"
GIVEN, MORE = _CORPUS / "test-outputs", _CORPUS / "more-test-outputs"

Counts = tuple[int, int, int, int]


@dataclass(frozen=True)
class Output:
    """What a test runner printed, or wrote into a file."""

    path: Path

    @property
    def data(self) -> bytes:
        return self.path.read_bytes()

    @property
    def text(self) -> str:
        return self.data.decode()

    def read(self) -> TestResults | None:
        return (read_xml if self.path.suffix == ".xml" else read_bytes)(self.data)


def given() -> list[tuple[Output, dict[str, Any]]]:
    """The outputs that came with the task, each with its line of the manifest."""
    manifest = json.loads((GIVEN / "manifest.json").read_text())
    return [(Output(GIVEN / case["file"]), case) for case in manifest]


def more() -> list[tuple[Output, Counts | None]]:
    """The outputs that were made for this project."""
    manifest = json.loads((MORE / "manifest.json").read_text())
    return [(Output(MORE / name), counts and tuple(counts)) for name, counts in manifest.items()]


def printed() -> list[Output]:
    """The given outputs that are no files of their own."""
    return [output for output, _ in given() if output.path.suffix == ".txt"]


def counts(results: TestResults | None) -> Counts | None:
    """What the tables in the tests are made of."""
    if results is None:
        return None
    return results.total, results.passed, results.failed, results.skipped
