"""Run one iteration with a session, and find out what it did."""

import time

from msgspec.structs import replace

from rooda.loop.progress import read_tests, result_of, with_tests
from rooda.loop.result import Iteration, IterationResult, IterationStatus
from rooda.loop.session import IterationConfig, Session
from rooda.loop.tracker import FileChangeTracker
from rooda.world.git.snapshots.tree_changes import TreeScan
from rooda.world.testresults.results import TestResults


class IterationExecutor:
    """Executes iterations one after the other, and compares each with the one before."""

    def __init__(
        self,
        config: IterationConfig,
        tracker: FileChangeTracker | None = None,
        tests_before: TestResults | None = None,
    ) -> None:
        self.config = config
        if tracker is None and config.track_file_changes:
            tracker = FileChangeTracker(config.working_dir)
        self._tracker = tracker if config.track_file_changes else None
        self._tests = tests_before

    def execute(self, iteration: Iteration, session: Session) -> IterationResult:
        """Send the prompt, wait, and return what changed; `iteration.status` says how it ended."""
        config, seen, tests = self.config, TreeScan(), None
        if self._tracker is not None:
            self._tracker.snapshot()
        iteration.status = IterationStatus.EXECUTING
        started, began = time.time(), time.monotonic()
        response = session.execute_prompt(iteration.prompt, config)
        duration_ms = round(1000 * (time.monotonic() - began))
        if self._tracker is not None:
            seen = self._tracker.scan(str(iteration.number))
        if config.parse_tests:
            outputs = (response.printed.stdout, response.printed.stderr)
            tests = read_tests(outputs, config.test_reports, config.working_dir, started)
        result = result_of(response, seen, duration_ms, session.get_context_usage())
        printed = response.printed
        result = replace(result, stdout=_text(printed.stdout), stderr=_text(printed.stderr))
        result = with_tests(result, tests, self._tests, seen.commits)
        self._tests = tests or self._tests
        iteration.end(response.status, result, response.error)
        return result


def _text(output: bytes) -> str:
    return output.decode("utf-8", "replace")
