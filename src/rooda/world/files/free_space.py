"""How much disk space is free where a run writes, and whether that is enough."""

import shutil
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from rooda.base.numbers import approximate_size, format_size
from rooda.world.state.folder import StateFolder, nearest_folder


class DiskShortage(Struct, frozen=True):
    """A disk with less free space than a run needs."""

    what: str  # is on it: `the work tree`
    folder: str
    free: int  # bytes
    floor: int

    def __str__(self) -> str:
        """Return how much is free, where, and how much should be."""
        return (
            f"only {approximate_size(self.free)} of disk space is free for {self.what} in "
            f"{self.folder}, less than {format_size(self.floor)} (min_free_disk)"
        )


def disk_places(working_dir: Path, state: StateFolder) -> Mapping[str, Path]:
    """Return the folders that a run writes to, by what is in them."""
    return {"the work tree": working_dir, "the record": nearest_folder(state)}


def find_shortage(floor: int | None, places: Mapping[str, Path]) -> DiskShortage | None:
    """Return the disk of the first place that has too little free space; None if all have enough.

    A file system that does not report its size, and a folder that is gone, have enough.
    """
    if not floor:
        return None
    seen: set[int] = set()
    for what, folder in places.items():
        try:
            device = folder.stat().st_dev
            if device in seen:
                continue
            seen.add(device)
            usage = shutil.disk_usage(folder)
        except OSError:
            continue
        if usage.total and usage.free < floor:
            return DiskShortage(what, str(folder), usage.free, floor)
    return None
