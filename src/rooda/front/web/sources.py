"""What the pages show, read from the records of all known work trees. Nothing here writes.

Every call reads the record anew, with a masker of its own: the functions run in several threads,
and a masker learns the secrets of the runs that it has seen.
"""

import re
from collections import deque
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from rooda.base.secrets.masking import Masker
from rooda.record.reader import RecordReader
from rooda.record.rows import RunRow, StoreError
from rooda.record.run_folders import iteration_folder
from rooda.record.transcript_files import named_streams, size_of
from rooda.views.machine_runs import learn
from rooda.views.model.summary import IterationSummary, RunSummary
from rooda.views.report.details import DetailReader, IterationDetails
from rooda.views.report.make import summary_of
from rooda.views.wording.transcript import readable
from rooda.world.state.folder import STDOUT, is_run
from rooda.world.state.record_place import RecordPlace, place_with_key

_KEY = re.compile(r"[0-9a-f]{16}")
_NUMBER = re.compile(r"[0-9]{1,6}")
_MOST_READ = 16 * 1024 * 1024  # bytes of a transcript
_MOST_SHOWN = 120_000  # characters of it
_MOST_DETAILS = 400_000  # bytes of the details of one iteration


class NotThere(Exception):  # noqa: N818 - it says what was found
    """The address names nothing that is in a record."""


class FoundRun(Struct, frozen=True):
    """A run of a known work tree."""

    place: RecordPlace
    key: str
    row: RunRow
    reader: RecordReader
    masker: Masker

    @property
    def tree(self) -> Path:
        """The work tree."""
        return self.place.tree

    def summary(self) -> RunSummary:
        """Return the run as it stands now. Raises NotThere."""
        try:
            return summary_of(self.reader, self.row)
        except StoreError as error:
            raise NotThere(f"The record of {self.tree} can't be read: {error}") from None


class FoundIteration(Struct, frozen=True):
    """An iteration with its details, and what the agent printed."""

    run: RunSummary
    one: IterationSummary
    details: IterationDetails
    transcript: str = ""  # the end of it
    is_too_long: bool = False  # the transcript is not read


class Sources(Struct, frozen=True):
    """Finds runs and iterations; `environ` has the place of the list of work trees."""

    environ: Mapping[str, str]

    def masker(self) -> Masker:
        """Return a masker that knows the secrets of the environment."""
        return Masker(self.environ)

    def find(self, key: str, run: str) -> FoundRun:
        """Return a run. Raises NotThere."""
        place = place_with_key(key, self.environ) if _KEY.fullmatch(key) else None
        if place is None:
            raise NotThere("No work tree with this address has a record.")
        if not is_run(run):
            raise NotThere("This is not the name of a run.")
        masker = self.masker()
        reader = RecordReader.for_view(place.state, masker.tree)
        try:
            row = reader.run(run)
        except StoreError as error:
            raise NotThere(f"{masker.text(str(error))}.") from None
        if row.run != run:
            raise NotThere(f"There is no run {run} in the record.")
        learn(masker, place.tree, self.environ, row)
        return FoundRun(place, key, masker.tree(row), reader, masker)

    def iteration(self, key: str, run: str, number: str) -> FoundIteration:
        """Return an iteration. Raises NotThere."""
        found = self.find(key, run)
        summary = found.summary()
        wanted = int(number) if _NUMBER.fullmatch(number) else None
        one = next((one for one in summary.iterations if one.number == wanted), None)
        if one is None:
            raise NotThere(f"Run {run} has no such iteration.")
        reader = DetailReader(found.place, masker=found.masker, most=_MOST_DETAILS)
        details = reader.read(summary, [one])[one.number]
        folder = iteration_folder(found.place.state, run, one.number, one.attempt)
        try:
            is_too_long = size_of(folder / STDOUT) > _MOST_READ
            transcript = "" if is_too_long else _end_of(folder, one, found)
        except OSError:
            return FoundIteration(summary, one, details)
        return FoundIteration(summary, one, details, transcript, is_too_long)


def _end_of(folder: Path, one: IterationSummary, found: FoundRun) -> str:
    """Return the end of what the agent printed, to read."""
    kept: deque[str] = deque()
    size = 0
    pieces = named_streams(folder)
    is_cut = False
    for text in readable(pieces, one.adapter, str(found.tree), found.masker):
        kept.append(text)
        size += len(text)
        while size - len(kept[0]) > _MOST_SHOWN:
            size -= len(kept.popleft())
            is_cut = True
    text = "".join(kept).strip("\n")
    is_cut = is_cut or len(text) > _MOST_SHOWN
    return f"[...]\n{text[-_MOST_SHOWN:]}" if is_cut else text
