"""The files that a run changed, and how many lines of each, from the rows of its iterations.

The record can be changed by an agent: no list and no name of it may be as long as it likes.
"""

from rooda.record.rows import IterationRow
from rooda.views.model.summary import FileSummary
from rooda.world.git.snapshots.tree_changes import LineCount

_MOST_FILES = 50  # in a list
_MOST_COUNTED = 200  # of an iteration, with their changed lines
_MOST_DISTINCT = 100_000  # names of files that are told apart
_LONGEST_NAME = 300  # characters


def names_of(row: IterationRow) -> tuple[str, ...]:
    """Return the names of all files that an iteration changed."""
    result = row.result
    if result is None:
        return ()
    return (*result.files_created, *result.files_modified, *result.files_deleted)


def changed_files(row: IterationRow) -> tuple[FileSummary, ...]:
    """Return the changed files; a record of an earlier version has no counts of lines."""
    counts = _counted_files(row)
    known = {one.name for one in counts}
    rest = (name for name in names_of(row) if name not in known)
    others = (FileSummary(name[:_LONGEST_NAME], None, None, (row.number,)) for name in rest)
    return (*counts, *others)[:_MOST_FILES]


def _counted_files(row: IterationRow) -> tuple[FileSummary, ...]:
    """Return the files of an iteration with their changed lines."""
    largest = row.lines.largest[:_MOST_COUNTED] if row.lines else ()
    return tuple(_counted(one, row.number) for one in largest)


def _counted(one: LineCount, number: int) -> FileSummary:
    if one.added is None or one.deleted is None:
        return FileSummary(one.name, None, None, (number,))
    return FileSummary(one.name, max(0, one.added), max(0, one.deleted), (number,))


class RunFiles:
    """The distinct files of a run, with the sums of their changed lines."""

    def __init__(self) -> None:
        self._names: dict[str, list[int]] = {}
        self._lines: dict[str, list[int]] = {}
        self._more = 0
        self._added: int | None = None
        self._deleted: int | None = None

    def add(self, row: IterationRow) -> None:
        """Add the files of one iteration."""
        for name in names_of(row):
            if name in self._names or len(self._names) < _MOST_DISTINCT:
                self._names.setdefault(name, []).append(row.number)
            else:
                self._more += 1
        for one in _counted_files(row):
            if one.added is None or one.deleted is None:
                continue
            sums = self._lines.setdefault(one.name, [0, 0])
            sums[0] += one.added
            sums[1] += one.deleted
        if row.lines is not None:
            self._added = (self._added or 0) + max(0, row.lines.added)
            self._deleted = (self._deleted or 0) + max(0, row.lines.deleted)

    @property
    def number(self) -> int:
        """How many there are."""
        return len(self._names) + self._more

    @property
    def added(self) -> int | None:
        """How many lines were added in all iterations; None if that is unknown."""
        return self._added

    @property
    def deleted(self) -> int | None:
        """How many lines were deleted in all iterations; None if that is unknown."""
        return self._deleted

    def largest(self) -> tuple[FileSummary, ...]:
        """Return the files with the most changed lines."""

        def order(name: str) -> tuple[int, int, str]:
            return -sum(self._lines.get(name, ())), -len(self._names[name]), name

        found = []
        for name in sorted(self._names, key=order)[:_MOST_FILES]:
            added, deleted = self._lines.get(name, (None, None))
            numbers = tuple(self._names[name])
            found.append(FileSummary(name[:_LONGEST_NAME], added, deleted, numbers))
        return tuple(found)
