"""Make the report of a recorded run."""

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Final

from rooda.record.reader import RecordReader
from rooda.record.rows import RunRow
from rooda.views.model.build import summarize
from rooda.views.model.measured import run_json
from rooda.views.model.summary import RunSummary
from rooda.views.report.details import DetailReader
from rooda.views.report.markdown_report import markdown
from rooda.world.state.record_place import RecordPlace

# The formats of a report, and how the name of a file ends.
FORMATS: Final[Mapping[str, str]] = {"html": ".html", "markdown": ".md", "json": ".json"}


def summary_of(reader: RecordReader, run: RunRow) -> RunSummary:
    """Return the summary of a run as it stands now. Raises StoreError."""
    now = datetime.now().astimezone()
    return summarize(run, reader.each_iteration(run.run), now, reader.kept_snapshots(run.run))


def html(
    summary: RunSummary, place: RecordPlace, details: DetailReader | None = None
) -> Iterator[str]:
    """Yield the page of a run in pieces."""
    from rooda.views.report.page import page  # noqa: PLC0415 - it imports Jinja2

    return page(summary, details or DetailReader(place))


def as_json(summary: RunSummary) -> Iterator[str]:
    """Yield the summary of a run for programs."""
    yield json.dumps(run_json(summary), indent=2)
    yield "\n"


def format_of(path: Path) -> str:
    """Return the format that the name of a file asks for; HTML for any other ending."""
    endings = {ending: form for form, ending in FORMATS.items()}
    return endings.get(path.suffix.lower(), "html")


def text_of(
    summary: RunSummary, form: str, place: RecordPlace, details: DetailReader | None = None
) -> Iterator[str]:
    """Yield the report in one of `FORMATS`, in pieces."""
    match form:
        case "json":
            return as_json(summary)
        case "markdown":
            return markdown(summary)
        case _:
            return html(summary, place, details)
