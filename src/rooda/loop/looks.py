"""Tell what the looks at the work tree have found; what was said once is not said again."""

from rooda.iteration.tracker import Seen
from rooda.loop.edge import Edge
from rooda.loop.events import ChangesUnknown, FilesLeftOut, SnapshotTaken, SnapshotTrouble


class Looks:
    """The looks of one run."""

    def __init__(self, edge: Edge) -> None:
        self._edge = edge
        self._left_out: set[str] = set()
        self._trouble = ""

    def tell(self, number: int, seen: Seen) -> None:
        """Tell of a look after an iteration, or before the run (0)."""
        if seen.trouble and seen.trouble != self._trouble:
            unknown = seen.changes is None and number > 0
            kind = ChangesUnknown if unknown else SnapshotTrouble
            self._edge.emit(kind(number, seen.trouble))
        self._trouble = seen.trouble
        if seen.tree is None:
            return
        new = tuple(name for name in seen.left_out if name not in self._left_out)
        if new:
            self._left_out.update(new)
            self._edge.emit(FilesLeftOut(number, new))
        self._edge.emit(SnapshotTaken(number, seen.tree, seen.commit, seen.head, seen.left_out))
