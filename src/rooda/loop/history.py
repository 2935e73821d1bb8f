"""The iterations of a run: the last ones in memory, and a summary of all of them."""

import json
import math
import os
from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from msgspec import Struct, convert
from msgspec.structs import replace

from rooda.loop.result import Iteration, IterationStatus

# Statistics of iteration times in constant memory (Welford's method).


class Stats(Struct, frozen=True):
    """Count, extremes, mean and spread of the durations so far, in seconds."""

    count: int = 0
    total: float = 0.0
    minimum: float = 0.0
    maximum: float = 0.0
    mean: float = 0.0
    m2: float = 0.0

    def add(self, seconds: float) -> "Stats":
        """The statistics with one more duration."""
        count = self.count + 1
        before = seconds - self.mean
        mean = self.mean + before / count
        return Stats(
            count,
            self.total + seconds,
            min(self.minimum, seconds) if self.count else seconds,
            max(self.maximum, seconds),
            mean,
            # The old mean on one side and the new mean on the other: that is the method.
            self.m2 + before * (seconds - mean),
        )

    def summary(self) -> dict[str, float | None]:
        """What others may see of it; `m2` is the method's own."""
        names = ("count", "total", "minimum", "maximum", "mean", "stddev")
        return {name: getattr(self, name) for name in names}

    @property
    def stddev(self) -> float | None:
        """The population standard deviation; unknown before the second duration."""
        return math.sqrt(self.m2 / self.count) if self.count > 1 else None


class HistoryConfig(Struct, frozen=True):
    """How many iterations stay in memory, and the file that `persist` and `load` use, if any."""

    max_in_memory: int = 100
    persist: bool = True
    persist_path: Path | None = None


class HistorySummary(Struct, frozen=True):
    """The sum of all iterations. Totals count every iteration that has a result.

    `failed_iterations` includes iterations that a hook skipped.
    """

    total_iterations: int = 0
    successful_iterations: int = 0
    failed_iterations: int = 0
    timed_out_iterations: int = 0
    total_duration_ms: int = 0
    total_files_modified: int = 0
    total_files_created: int = 0
    total_tests_run: int = 0
    total_tests_passed: int = 0
    total_tests_failed: int = 0

    def add(self, iteration: Iteration) -> "HistorySummary":
        """The summary with one more iteration."""
        status, result = iteration.status, iteration.result
        counted = replace(
            self,
            total_iterations=self.total_iterations + 1,
            successful_iterations=self.successful_iterations
            + (status is IterationStatus.COMPLETED),
            failed_iterations=self.failed_iterations
            + (status in (IterationStatus.FAILED, IterationStatus.SKIPPED)),
            timed_out_iterations=self.timed_out_iterations + (status is IterationStatus.TIMED_OUT),
        )
        if result is None:
            return counted
        tests = result.test_results
        return replace(
            counted,
            total_duration_ms=self.total_duration_ms + result.duration_ms,
            total_files_modified=self.total_files_modified + len(result.files_modified),
            total_files_created=self.total_files_created + len(result.files_created),
            total_tests_run=self.total_tests_run + (tests.total if tests else 0),
            total_tests_passed=self.total_tests_passed + (tests.passed if tests else 0),
            total_tests_failed=self.total_tests_failed + (tests.failed if tests else 0),
        )


class IterationHistory:
    """Keeps the last iterations, and a summary of all of them."""

    def __init__(
        self, config: HistoryConfig | None = None, iterations: Iterable[Iteration] = ()
    ) -> None:
        self.config = config or HistoryConfig()
        self._iterations: deque[Iteration] = deque(maxlen=self.config.max_in_memory)
        self._summary = HistorySummary()
        for iteration in iterations:
            self.add(iteration)

    def add(self, iteration: Iteration) -> None:
        """Add an iteration that has ended."""
        self._summary = self._summary.add(iteration)
        self._iterations.append(iteration)

    def get_last(self, count: int) -> list[Iteration]:
        """The last ones, the newest first."""
        return list(reversed(self._iterations))[:count]

    def get(self, number: int) -> Iteration | None:
        """The iteration with this number, if it is still in memory; its last attempt."""
        return next((one for one in reversed(self._iterations) if one.number == number), None)

    def get_summary(self) -> HistorySummary:
        """The summary of all iterations, also of those that are no longer in memory."""
        return self._summary

    def filter(self, predicate: Callable[[Iteration], bool]) -> list[Iteration]:
        """Those that match, the oldest first."""
        return [iteration for iteration in self._iterations if predicate(iteration)]

    def get_failure_streak(self) -> int:
        """How many failed since the last one that ended well."""
        streak = 0
        for iteration in reversed(self._iterations):
            if iteration.status is IterationStatus.COMPLETED:
                break
            streak += iteration.status in _FAILURES
        return streak

    def persist(self) -> None:
        """Write the iterations that are in memory to the file: all of them, or none."""
        path = self._path
        if path is None:
            return
        draft = path.with_name(f"{path.name}.new")
        draft.unlink(missing_ok=True)
        fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "w", encoding="utf-8", errors="backslashreplace") as file:
            json.dump([one.to_json() for one in self._iterations], file, ensure_ascii=False)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)

    def load(self) -> None:
        """Replace the iterations by those in the file, if there is one. Raises ValueError."""
        path = self._path
        if path is None or not path.exists():
            return
        try:
            found = convert(json.loads(path.read_bytes()), list[dict[str, Any]])
            iterations = list(map(Iteration.from_json, found))
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{path} has no history: {error}") from None
        self._summary = HistorySummary()
        self._iterations.clear()
        for iteration in iterations:
            self.add(iteration)

    @property
    def _path(self) -> Path | None:
        return self.config.persist_path if self.config.persist else None


_FAILURES = (IterationStatus.FAILED, IterationStatus.TIMED_OUT, IterationStatus.SKIPPED)
