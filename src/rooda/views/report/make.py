"""Make the report of a recorded run."""

import contextlib
import errno
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import IO, Final

from rooda.base.secrets.masking import MASK_NOTHING, Masker
from rooda.loop.events.agent import StillWaiting, WaitStarted
from rooda.loop.events.emitter import Stamped
from rooda.loop.events.iteration import IterationEnded, IterationStarted
from rooda.loop.events.run import RunEnded
from rooda.record.reader import RecordReader
from rooda.record.rows import RunRow, StoreError
from rooda.views.model.brief import run_json
from rooda.views.model.build import summarize
from rooda.views.model.summary import RunSummary
from rooda.views.report.details import DetailReader
from rooda.views.report.markdown_report import markdown
from rooda.world.git.work_tree import leads_out
from rooda.world.state.folder import StateFolder, make_folders, new_file
from rooda.world.state.record_place import RecordPlace
from rooda.world.tools import Tools

# Write a report: whole or not at all, and never through a link that an agent has planted.


# Writing there is the user's wish, and nothing there may be replaced: `/dev/stdout`.
_DEVICES = ("/dev/", "/proc/")


class LinkedAwayError(OSError):
    """A link leads from the work tree to a place outside of it."""


def default_path(state: StateFolder, run: str) -> Path:
    """Return where the page of a run is without another wish; it goes when the run is pruned."""
    return state / "runs" / run / "report.html"


def write_default(place: RecordPlace, run: str, pieces: Iterable[str]) -> Path:
    """Write the page of a run into the folder of the run. Raises OSError."""
    make_folders(place.state, f"runs/{run}")
    path = default_path(place.state, run)
    write_whole(path, pieces, place)
    return path


def write_whole(
    path: Path, pieces: Iterable[str], place: RecordPlace, trees: Sequence[Path] = ()
) -> None:
    """Write the file in one step, so that a reader sees the old one or the new one.

    What is in its place is replaced, also a link. `trees` are other folders than the work tree in
    which agents may have made links. Raises OSError, and then nothing has changed.
    """
    if str(path).startswith(_DEVICES):
        with path.open("wb", buffering=0) as device:
            for piece in pieces:
                _write(device, piece.encode("utf-8", "replace"))
        return
    if leads_out(path.parent, place.tree, *trees):
        message = "a link in the work tree leads out of it"
        raise LinkedAwayError(errno.ELOOP, message, str(path.parent))
    if not path.parent.exists():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path.parent))
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    try:
        _write_draft(path, pieces, place.state)
    except OSError as error:  # the user knows nothing of the draft that it may name
        raise OSError(error.errno, error.strerror or str(error), str(path)) from None


def _write_draft(path: Path, pieces: Iterable[str], state: StateFolder) -> None:
    """Write a draft, and put it in the place of the file."""
    draft, file = _open_draft(path, state)
    try:
        with file:
            for piece in pieces:
                _write(file, piece.encode("utf-8", "replace"))
        draft.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            draft.unlink()
        raise


def _open_draft(path: Path, state: StateFolder) -> tuple[Path, IO[bytes]]:
    """Return a new file on the same disk: in the state folder, which no agent sees, if it can.

    Otherwise it is beside the file that it will replace.
    """
    with contextlib.suppress(OSError):
        name = f"report.{os.getpid()}.draft"
        file = new_file(state, name)
        if os.fstat(file.fileno()).st_dev == path.parent.stat().st_dev:
            return state / name, file
        file.close()
        (state / name).unlink()
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with contextlib.suppress(FileNotFoundError):
        draft.unlink()
    return draft, os.fdopen(os.open(draft, flags, 0o600), "r+b", buffering=0)


def _write(file: IO[bytes], content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[file.write(rest) :]


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


# Write the report of a run while the run is at work: `loop.report`.


_PAUSE = 60.0  # seconds between two reports
_MOMENTS = (IterationStarted, IterationEnded, WaitStarted, StillWaiting)


class ReportWriter:
    """A listener that writes the report after an iteration, once a minute at most, and at the end.

    Listeners before this one have recorded the event. A report that can't be written is no failure
    of the run: `tell` gets the reason, each reason once.
    """

    def __init__(
        self,
        path: Path,
        place: RecordPlace,
        run: str,
        tools: Tools,
        tell: Callable[[str], None],
        trees: Sequence[Path] = (),
        masker: Masker = MASK_NOTHING,
    ) -> None:
        """`trees` are the folders in which agents may have made links."""
        self._path = path
        self._place = place
        self._trees = trees
        self._run = run
        self._tell = tell
        self._told: set[str] = set()
        self._masker = masker
        self._details = DetailReader(place, tools, masker)
        self._due = False
        self._written: float | None = None

    def __call__(self, stamped: Stamped) -> None:
        """Write the report if it is time."""
        event = stamped.event
        self._due = self._due or isinstance(event, IterationEnded)
        is_time = isinstance(event, _MOMENTS) and self._due and self._is_time(stamped.elapsed)
        if is_time or isinstance(event, RunEnded):
            self._write(stamped.elapsed)

    def _is_time(self, now: float) -> bool:
        return self._written is None or now - self._written >= _PAUSE

    def _write(self, now: float) -> None:
        self._due, self._written = False, now
        try:
            reader = RecordReader.for_view(self._place.state, self._masker.tree)
            summary = summary_of(reader, reader.run(self._run))
            if not leads_out(self._path.parent, *self._trees):
                self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            form = format_of(self._path)
            pieces = text_of(summary, form, self._place, self._details)
            write_whole(self._path, pieces, self._place, self._trees)
        except (OSError, StoreError) as error:
            reason = (isinstance(error, OSError) and error.strerror) or str(error)
            if reason not in self._told:
                self._told.add(reason)
                self._tell(reason)
