"""Write the report of a run while the run is at work: `loop.report`."""

from collections.abc import Callable, Sequence
from pathlib import Path

from rooda.base.secrets.masking import MASK_NOTHING, Masker
from rooda.loop.events.agent import StillWaiting, WaitStarted
from rooda.loop.events.emitter import Stamped
from rooda.loop.events.iteration import IterationEnded, IterationStarted
from rooda.loop.events.run import RunEnded
from rooda.record.reader import RecordReader
from rooda.record.rows import StoreError
from rooda.views.report import make
from rooda.views.report.details import DetailReader
from rooda.views.report.report_file import write_whole
from rooda.world.git.work_tree import leads_out
from rooda.world.state.record_place import RecordPlace
from rooda.world.tools import Tools

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
            summary = make.summary_of(reader, reader.run(self._run))
            if not leads_out(self._path.parent, *self._trees):
                self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            form = make.format_of(self._path)
            pieces = make.text_of(summary, form, self._place, self._details)
            write_whole(self._path, pieces, self._place, self._trees)
        except (OSError, StoreError) as error:
            reason = (isinstance(error, OSError) and error.strerror) or str(error)
            if reason not in self._told:
                self._told.add(reason)
                self._tell(reason)
