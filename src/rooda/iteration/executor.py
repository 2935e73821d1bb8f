"""Run one iteration, and find out what it did."""

import time

from rooda.iteration.config import IterationConfig
from rooda.iteration.results import read_tests, result_of, with_tests
from rooda.iteration.session import Session
from rooda.iteration.tracker import FileChangeTracker
from rooda.iteration.types import Iteration, IterationResult, IterationStatus
from rooda.testresults.results import TestResults
from rooda.workspace.tree_changes import TreeScan


class IterationExecutor:
    """Executes iterations one after the other; each is compared with the one before."""

    def __init__(
        self,
        config: IterationConfig,
        tracker: FileChangeTracker | None = None,
        tests_before: TestResults | None = None,
    ) -> None:
        self.config = config
        self.seen = TreeScan()  # what the last look at the files has found
        if tracker is None and config.track_file_changes:
            tracker = FileChangeTracker(config.working_dir)
        self._tracker = tracker if config.track_file_changes else None
        self._tests = tests_before

    def execute(self, iteration: Iteration, session: Session) -> IterationResult:
        """Send the iteration's prompt, wait, and see what changed. Its status says how it went."""
        if self._tracker is not None:
            self._tracker.snapshot()
        iteration.status = IterationStatus.EXECUTING
        started, began = time.time(), time.monotonic()
        response = session.execute_prompt(iteration.prompt, self.config)
        duration_ms = round(1000 * (time.monotonic() - began))
        if self._tracker is not None:
            self.seen = self._tracker.detect_changes(str(iteration.number))
        result = result_of(response, self.seen, duration_ms, session.get_context_usage())
        before = self._tests
        if self.config.parse_tests:
            outputs = (response.printed.stdout, response.printed.stderr)
            folder = self.config.working_dir
            tests = read_tests(outputs, self.config.test_reports, folder, started)
            self._tests = tests or before
            result = with_tests(result, tests, before, self.seen.commits)
        else:
            result = with_tests(result, None, before, self.seen.commits)
        iteration.end(response.status, result, response.error)
        return result
