"""One iteration and its result."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

from msgspec import Struct, convert, field, to_builtins
from msgspec.structs import force_setattr

from rooda.world.testresults.results import TestResults


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
    """The last bytes of each stream of an agent, as far as rooda keeps them in memory."""

    stdout: bytes = b""
    stderr: bytes = b""

    @classmethod
    def of(cls, stdout: str = "", stderr: str = "") -> "Printed":
        """The same from text."""
        return cls(stdout.encode("utf-8", "surrogateescape"), stderr.encode("utf-8", "replace"))


class IterationResult(Struct, frozen=True):
    """What an iteration did. What is unknown is None; paths are relative to the workspace."""

    exit_code: int | None
    stdout: str = ""  # the end of the agent's standard output
    stderr: str = ""
    files_modified: tuple[str, ...] = ()
    files_created: tuple[str, ...] = ()
    files_deleted: tuple[str, ...] = ()
    tests_run: bool = False  # whether rooda found test results
    test_results: TestResults | None = None
    context_usage_percent: int | None = None
    progress_detected: bool = False
    summary: str | None = None
    duration_ms: int = 0

    def __post_init__(self) -> None:
        """Note that tests ran if there are results."""
        force_setattr(self, "tests_run", self.tests_run or self.test_results is not None)

    @property
    def files_changed(self) -> bool:
        """Whether any file was created, modified or deleted."""
        return bool(self.files_created or self.files_modified or self.files_deleted)

    def to_json(self, *, output: bool = True) -> dict[str, Any]:
        """Return every field; without `output`, all except `stdout` and `stderr`."""
        body: dict[str, Any] = to_builtins(self)
        if not output:
            del body["stdout"], body["stderr"]
        return body

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "IterationResult":
        """Return the result that `to_json` wrote. Raises ValueError for impossible data."""
        output = {name: data.get(name) or "" for name in ("stdout", "stderr")}
        return convert({**data, **output}, cls)


class Iteration(Struct):
    """A single iteration of the loop, from `pending` to its end."""

    number: int
    prompt: str = ""
    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    ended_at: datetime | None = None
    status: IterationStatus = IterationStatus.PENDING
    result: IterationResult | None = None
    metadata: dict[str, str] = field(default_factory=dict)

    def duration(self) -> timedelta | None:
        """Return how long the iteration took, once it has ended."""
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
        """Return every field, with the prompt and the output."""
        return {
            "number": self.number,
            "started_at": self.started_at.isoformat(),
            "ended_at": self.ended_at and self.ended_at.isoformat(),
            "status": str(self.status),
            "prompt": self.prompt,
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
