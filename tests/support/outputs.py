"""Recorded outputs of test runners, for tests of the parsers."""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from rooda.world.testresults.junit_xml import read_xml
from rooda.world.testresults.read import read_bytes
from rooda.world.testresults.results import TestResults

CORPUS = Path(__file__).parent.parent / "corpus"
RECORDED = CORPUS / "test-outputs"

Counts = tuple[int, int, int, int]


@dataclass(frozen=True)
class Output:
    """The output of a test runner, or a file that it wrote."""

    path: Path

    @property
    def data(self) -> bytes:
        return self.path.read_bytes()

    @property
    def text(self) -> str:
        return self.data.decode()

    def read(self) -> TestResults | None:
        return _read(self)


@cache
def _read(output: Output) -> TestResults | None:
    return (read_xml if output.path.suffix == ".xml" else read_bytes)(output.data)


def recorded_outputs() -> list[tuple[Output, dict[str, Any]]]:
    """Return the recorded outputs of tests/corpus, each with its line of the manifest."""
    manifest = json.loads((RECORDED / "manifest.json").read_text())
    return [(Output(RECORDED / case["file"]), case) for case in manifest]


def other_recorded_outputs() -> list[tuple[Output, Counts | None]]:
    """Return further outputs of real runners, with their counts."""
    return _listed(CORPUS / "more-test-outputs")


def handwritten_outputs() -> list[tuple[Output, Counts | None]]:
    """Return handwritten outputs: decorations, other versions, and prose about tests."""
    return _listed(CORPUS / "written-outputs")


def _listed(folder: Path) -> list[tuple[Output, Counts | None]]:
    manifest = json.loads((folder / "manifest.json").read_text())
    return [(Output(folder / name), counts and tuple(counts)) for name, counts in manifest.items()]


def printed_outputs() -> list[Output]:
    """Return the recorded outputs that a runner printed, without report files."""
    return [output for output, _ in recorded_outputs() if output.path.suffix == ".txt"]


def counts(results: TestResults | None) -> Counts | None:
    """Return the four counts as a tuple, as in the tables of the tests."""
    if results is None:
        return None
    return results.total, results.passed, results.failed, results.skipped
