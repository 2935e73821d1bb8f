"""Run one iteration, and find out what it did."""

import time
from dataclasses import replace

from rooda.iteration.config import IterationConfig
from rooda.iteration.progress import detect_progress
from rooda.iteration.session import Session
from rooda.iteration.summary import extract_summary
from rooda.iteration.tracker import FileChangeTracker, Seen
from rooda.iteration.types import Iteration, IterationResult, IterationStatus, Printed
from rooda.testresults.quick import may_tell
from rooda.testresults.types import TestResults


class IterationExecutor:
    """Executes iterations one after the other; each is compared with the one before."""

    def __init__(
        self,
        config: IterationConfig,
        tracker: FileChangeTracker | None = None,
        tests_before: TestResults | None = None,
    ) -> None:
        self.config = config
        self.seen = Seen()  # what the last look at the files has found
        if tracker is None and config.track_file_changes:
            tracker = FileChangeTracker(config.working_dir)
        self._tracker = tracker if config.track_file_changes else None
        self._tests_before = tests_before
        self._tests_now = tests_before
        self._began = 0.0

    def execute(self, iteration: Iteration, session: Session) -> IterationResult:
        """Send the iteration's prompt, wait, and see what changed. Its status says how it went."""
        if self._tracker is not None:
            self._tracker.snapshot()
        iteration.status = IterationStatus.EXECUTING
        self._tests_before = self._tests_now
        self._began = time.time()
        began = time.monotonic()
        response = session.execute_prompt(iteration.prompt, self.config)
        duration_ms = round(1000 * (time.monotonic() - began))
        if self._tracker is not None:
            self.seen = self._tracker.detect_changes(str(iteration.number))
        changes = self.seen.changes
        result = IterationResult(
            exit_code=response.exit_code,
            printed=response.printed,
            files_modified=changes.modified if changes else (),
            files_created=changes.created if changes else (),
            files_deleted=changes.deleted if changes else (),
            context_usage_percent=session.get_context_usage(),
            summary=extract_summary(
                response.printed.stdout if response.spoken is None else response.spoken
            ),
            duration_ms=duration_ms,
        )
        result = self._measured(result)
        iteration.end(response.status, result, response.error)
        return result

    def verified(self, result: IterationResult, output: bytes) -> IterationResult:
        """The result once the loop's own tests have run, and printed this."""
        return self._measured(result, output)

    def _measured(self, result: IterationResult, verify: bytes = b"") -> IterationResult:
        """The result with its tests, and with whether they and the files are progress."""
        tests = self._tests(result.printed, verify) if self.config.parse_tests else None
        if tests is not None:
            self._tests_now = tests
        progress = detect_progress(
            files_changed=result.files_changed,
            commits_made=self.seen.commits,
            tests=tests,
            tests_before=self._tests_before,
        )
        return replace(result, test_results=tests, progress_detected=progress)

    def _tests(self, printed: Printed, verify: bytes) -> TestResults | None:
        # Whatever reads tests is loaded only by those who have any.
        patterns = self.config.test_reports
        if patterns:
            from rooda.testresults.report_files import read_reports  # noqa: PLC0415

            reports = read_reports(patterns, self.config.working_dir, self._began)
            if reports is not None:
                return reports
        outputs = (printed.stdout, printed.stderr, verify)
        if not any(map(may_tell, outputs)):
            return None
        from rooda.testresults.read import read_outputs  # noqa: PLC0415

        return read_outputs(*outputs)
