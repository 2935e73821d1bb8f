"""One iteration and its result."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

from msgspec import Struct, convert, field, to_builtins
from msgspec.structs import replace

from rooda.testresults.results import TestResults


class IterationStatus(StrEnum):
    """The stage of an iteration, or how it ended."""

    PENDING = "pending"
    PRE_HOOKS = "pre_hooks"
    EXECUTING = "executing"
    POST_HOOKS = "post_hooks"
    COMPLETED = "completed"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    SKIPPED = "skipped"
    INTERRUPTED = "interrupted"


class Printed(Struct, frozen=True):
    """What an agent printed, as far as it is kept in memory: the last bytes of each stream."""

    stdout: bytes = b""
    stderr: bytes = b""

    @classmethod
    def of(cls, stdout: str = "", stderr: str = "") -> "Printed":
        """The same from text."""
        return cls(stdout.encode("utf-8", "surrogateescape"), stderr.encode("utf-8", "replace"))


class IterationResult(Struct, frozen=True):
    """What an iteration did. What is unknown is None; paths are relative to the workspace."""

    exit_code: int | None
    printed: Printed = field(default_factory=Printed)
    files_modified: tuple[str, ...] = ()
    files_created: tuple[str, ...] = ()
    files_deleted: tuple[str, ...] = ()
    test_results: TestResults | None = None
    context_usage_percent: int | None = None
    progress_detected: bool = False
    summary: str | None = None
    duration_ms: int = 0

    @property
    def stdout(self) -> str:
        """The end of the agent's standard output; decoded on demand."""
        return self.printed.stdout.decode("utf-8", "replace")

    @property
    def stderr(self) -> str:
        """The end of its standard error."""
        return self.printed.stderr.decode("utf-8", "replace")

    @property
    def tests_run(self) -> bool:
        """Whether test results were found."""
        return self.test_results is not None

    @property
    def files_changed(self) -> bool:
        """Whether any file was created, modified or deleted."""
        return bool(self.files_created or self.files_modified or self.files_deleted)

    def to_json(self) -> dict[str, Any]:
        """Every field except what was printed, which may be millions of bytes."""
        body: dict[str, Any] = to_builtins(replace(self, printed=_NOTHING))
        del body["printed"]
        return body | {"tests_run": self.tests_run}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "IterationResult":
        """The result that was written; with `stdout` and `stderr`, where these are there.

        Raises ValueError for data that no result can have.
        """
        printed = Printed.of(data.get("stdout") or "", data.get("stderr") or "")
        known = {name: value for name, value in data.items() if name != "printed"}
        return replace(convert(known, cls), printed=printed)


_NOTHING = Printed()


class Iteration(Struct):
    """A single iteration of the loop, from `pending` to its end."""

    number: int
    prompt: str = ""
    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    ended_at: datetime | None = None
    status: IterationStatus = IterationStatus.PENDING
    result: IterationResult | None = None
    metadata: dict[str, str] = field(default_factory=dict)

    @property
    def duration(self) -> timedelta | None:
        """How long it took, once it has ended."""
        return None if self.ended_at is None else self.ended_at - self.started_at

    def complete(self, result: IterationResult) -> None:
        """End the iteration as completed."""
        self.end(IterationStatus.COMPLETED, result)

    def fail(self, error: str, result: IterationResult | None = None) -> None:
        """End the iteration as failed, with the reason."""
        self.end(IterationStatus.FAILED, result, error)

    def timeout(self, result: IterationResult | None = None) -> None:
        """End the iteration as timed out."""
        self.end(IterationStatus.TIMED_OUT, result)

    def end(
        self, status: IterationStatus, result: IterationResult | None = None, error: str = ""
    ) -> None:
        """End the iteration with this status. Without a new result, the earlier one stays."""
        self.ended_at = datetime.now(UTC)
        self.status = status
        self.result = result or self.result
        if error:
            self.metadata["error"] = error

    def to_json(self) -> dict[str, Any]:
        """Every field except the prompt and what was printed."""
        return {
            "number": self.number,
            "started_at": self.started_at.isoformat(),
            "ended_at": self.ended_at and self.ended_at.isoformat(),
            "status": str(self.status),
            "metadata": dict(self.metadata),
            "result": self.result and self.result.to_json(),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Iteration":
        """The iteration that was written. Raises ValueError for data that no iteration can have."""
        if missing := {"started_at", "ended_at", "status", "result"} - set(data):
            raise ValueError(f"an iteration lacks {', '.join(sorted(missing))}")
        result = data["result"]
        found = convert({**data, "prompt": data.get("prompt") or "", "result": None}, cls)
        if result is not None:
            found.result = IterationResult.from_json(convert(result, dict[str, Any]))
        return found
