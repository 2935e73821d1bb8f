"""One run as it goes on: its summary when the record changes, and its session log as it grows."""

import os
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from rooda.base.secrets.masking import Masker
from rooda.record.database import NAME, beside
from rooda.record.reader import RecordReader
from rooda.record.rows import RUNNING, StoreError
from rooda.record.run_folders import run_folder
from rooda.views.machine_runs import learn
from rooda.views.model.summary import RunSummary
from rooda.views.report.make import summary_of
from rooda.world.files.plain_files import open_plain_file
from rooda.world.state.folder import SESSION
from rooda.world.state.record_place import RecordPlace

_FIRST = 64 * 1024  # bytes of the session log before the first look
_MOST = 256 * 1024  # bytes of it in one look
_CUT = "[...]\n"
_Trace = tuple[tuple[int, int, int], ...]


class News(Struct, frozen=True):
    """What is new about a run.

    `summary` is None if the record has not changed. `trouble` says why it can't be read.
    """

    summary: RunSummary | None = None
    text: str = ""
    trouble: str = ""


class RunFeed:
    """Follows one run, at work or not. It only reads: the run never waits for it."""

    def __init__(
        self, place: RecordPlace, run: str, masker: Masker, environ: Mapping[str, str] = os.environ
    ) -> None:
        self._tree, self._run = place.tree, run
        self._masker, self._environ = masker, environ
        self._path = place.state / NAME
        self._reader = RecordReader.for_view(place.state, masker.tree)
        self._log = _GrowingLog(run_folder(place.state, run) / SESSION, masker)
        self._seen: tuple[_Trace, str] | None = None

    def look(self) -> News:
        """Return what is new since the last look."""
        try:
            summary = self._new_summary()
        except StoreError as error:
            return News(text=self._log.new_text(), trouble=str(error))
        is_over = self._seen is not None and self._seen[1] != RUNNING
        return News(summary, self._log.new_text(is_over=is_over))

    def close(self) -> None:
        """Close the session log."""
        self._log.close()

    def _new_summary(self) -> RunSummary | None:
        trace = record_trace(self._path)
        if self._seen is not None and self._seen[0] == trace and self._seen[1] != RUNNING:
            return None
        row = self._reader.run(self._run)  # a run that was killed changes no file
        if self._seen == (trace, row.status):
            return None
        if self._seen is None:
            learn(self._masker, self._tree, self._environ, row)
        self._seen = trace, row.status
        return summary_of(self._reader, self._masker.tree(row))


def record_trace(path: Path) -> _Trace:
    """Return the properties of the files of the record that a write changes."""
    return tuple(_properties(one) for one in (path, beside(path, "-wal")))


def _properties(path: Path) -> tuple[int, int, int]:
    try:
        found = path.stat()
    except OSError:
        return 0, 0, 0
    return found.st_ino, found.st_size, found.st_mtime_ns


class _GrowingLog:
    """The session log. An agent can replace or cut it: then it is read again from its start."""

    def __init__(self, path: Path, masker: Masker) -> None:
        self._path = path
        self._masker = masker
        self._cleaner = masker.cleaner()
        self._fd: int | None = None
        self._is_over = False

    def new_text(self, *, is_over: bool = False) -> str:
        """Return the text since the last call; all of the rest if the run is over."""
        text = self._start() + self._rest()
        if is_over and not self._is_over:
            text += self._cleaner.finish()
            self._cleaner = self._masker.cleaner()
        self._is_over = is_over
        return text

    def close(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _start(self) -> str:
        """Open the file if there is another one now; the last part of one that is open is kept."""
        is_first = self._fd is None
        try:
            found = self._path.lstat()
            if self._fd is not None:
                held = os.fstat(self._fd)
                is_cut = held.st_size < os.lseek(self._fd, 0, os.SEEK_CUR)
                if os.path.samestat(found, held) and not is_cut:
                    return ""
            fd = open_plain_file(self._path)
        except OSError:
            return ""
        self.close()
        self._fd = fd
        self._cleaner = self._masker.cleaner()
        return self._skip_to_last(fd, _FIRST) if is_first else ""

    def _rest(self) -> str:
        if self._fd is None:
            return ""
        cut = self._skip_to_last(self._fd, _MOST)
        return cut + self._cleaner.feed(os.read(self._fd, _MOST))

    def _skip_to_last(self, fd: int, most: int) -> str:
        """Go on at the last `most` bytes, at the start of a line, if there are more than these."""
        place, size = os.lseek(fd, 0, os.SEEK_CUR), os.fstat(fd).st_size
        if size - place <= most:
            return ""
        line = os.pread(fd, most, size - most).find(b"\n") + 1
        os.lseek(fd, size - most + line, os.SEEK_SET)
        self._cleaner = self._masker.cleaner()
        return _CUT
