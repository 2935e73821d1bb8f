"""Several threads read records at once; msgspec crashes if they examine a type together."""

import subprocess
import sys

import pytest

READERS = """
import sys, threading
from msgspec import ValidationError, convert
from rooda.views.machine_runs import prepare_types
from rooda.record.rows import IterationRow, RunRow

sys.setswitchinterval(1e-6)
prepare_types()
gate = threading.Barrier(8)

def read(kind):
    gate.wait()
    for _ in range(20):
        try:
            convert({"run": "x", "tokens": {"input": 1}}, kind)
        except ValidationError:
            pass

readers = [threading.Thread(target=read, args=[(RunRow, IterationRow)[at % 2]]) for at in range(8)]
for one in readers:
    one.start()
for one in readers:
    one.join()
"""


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("start", range(3))
def test_threads_that_read_at_the_same_moment_do_not_crash(start: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", READERS], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, (start, done.stderr)
