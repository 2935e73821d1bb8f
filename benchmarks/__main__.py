"""`make bench`: every benchmark, each a ratio within one run; exit 1 if one is over its limit."""

import sys
import tempfile
from pathlib import Path

from benchmarks import (
    fleet,
    iteration,
    masking,
    readers,
    reading,
    recording,
    sandbox,
    silence,
    snapshots,
    startup,
    throughput,
    web_readers,
)

BENCHMARKS = (
    startup.measure,
    iteration.measure,
    recording.measure,
    readers.measure,
    web_readers.measure,
    throughput.measure,
    reading.measure,
    masking.measure,
    snapshots.measure,
    silence.measure,
    sandbox.measure,
    fleet.measure,
)


def main() -> int:
    results = []
    for measure in BENCHMARKS:
        with tempfile.TemporaryDirectory(prefix="rooda-bench-") as folder:
            results.append(measure(Path(folder)))
    return 0 if all(results) else 1


sys.exit(main())
