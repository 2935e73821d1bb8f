"""Make the report of a recorded run."""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from rooda.record.record_reader import RecordReader
from rooda.record.rows import RunRow
from rooda.report.details import DetailReader
from rooda.summary.build import summarize
from rooda.summary.model import RunSummary


def summary_of(reader: RecordReader, run: RunRow) -> RunSummary:
    """Return the summary of a run as it stands now. Raises StoreError."""
    return summarize(run, reader.each_iteration(run.run), datetime.now().astimezone())


def html(
    summary: RunSummary, workspace: Path, details: DetailReader | None = None
) -> Iterator[str]:
    """Yield the page of a run in pieces."""
    from rooda.report.page import page  # noqa: PLC0415 - it imports Jinja2

    return page(summary, details or DetailReader(workspace))
