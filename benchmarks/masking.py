"""10 MB of an agent's text with masked secrets, against nothing but removing control codes."""

import time
from pathlib import Path

from benchmarks.measure import alternate, report
from rooda.base.controls import StreamCleaner
from rooda.base.secrets.masking import Masker, SafeStream

LIMIT = 15.0  # masking a megabyte takes about 40 ms; a run masks one of each iteration at most
_PIECE = 64 * 1024
_ENV = {"ANTHROPIC_API_KEY": f"sk-ant-{'a1' * 20}", "DB_PASSWORD": "a password of the user"}
_LINES = (
    "I look at src/rooda/base/secrets/sensitive.py: it has 120 lines, and no tests for tokens.\n"
    "+    assert without_secret_values(text) == (text if shown is None else shown)\n"
    "tests/base/secrets/test_sensitive.py ............................................. [ 42%]\n"
)


def measure(folder: Path) -> bool:  # noqa: ARG001 - one form for all
    text = (_LINES * (10 * 1024 * 1024 // len(_LINES))).encode()
    ours, theirs = alternate(
        lambda: _read(text, Masker(_ENV).cleaner()),
        lambda: _read(text, StreamCleaner()),
        rounds=3,
    )
    return report("10 MB of text: cleaned and masked / cleaned", ours, theirs, "s", LIMIT)


def _read(text: bytes, stream: SafeStream | StreamCleaner) -> float:
    began = time.perf_counter()
    size = sum(len(stream.feed(text[at : at + _PIECE])) for at in range(0, len(text), _PIECE))
    if size + len(stream.finish()) != len(text):
        raise AssertionError("ordinary text was masked")
    return time.perf_counter() - began
