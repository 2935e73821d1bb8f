"""The golden files of what every view prints for each stop rule, wait and failure kind.

`ROODA_WRITE_WORDINGS=1 .venv/bin/pytest tests/views/terminal/test_wordings.py` writes them again.
"""

import os
import time
from collections.abc import Callable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest

from rooda.loop.stops import StopRule
from rooda.loop.wait_kinds import WaitKind
from rooda.world.agents.failure_kinds import FailureKind
from support.outputs import CORPUS
from support.wordings import Views, golden, of_failure, of_rule, of_wait

FOLDER = CORPUS / "wordings"


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as context:
        context.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.parametrize(
    "name,rows,views",
    [
        ("stop-rules", StopRule, of_rule),
        ("waits", WaitKind, of_wait),
        ("failure-kinds", FailureKind, of_failure),
    ],
)
def test_views_print_the_words_of_each_row(
    name: str, rows: type[StrEnum], views: Callable[[Any, Path], Views], tmp_path: Path
) -> None:
    text = "\n".join(f"== {row}\n{golden(views(row, tmp_path))}" for row in rows)
    file = FOLDER / f"{name}.txt"
    if "ROODA_WRITE_WORDINGS" in os.environ:
        file.write_text(text, "utf-8")
    assert text.splitlines() == file.read_text("utf-8").splitlines()
