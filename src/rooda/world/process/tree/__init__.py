"""Which processes there are, which belong together, and how to stop all of a tree."""

import sys

from rooda.world.process.tree.processes import ProcessTable

if sys.platform == "linux":
    from rooda.world.process.tree.linux import LinuxProcessTable as _OfThisSystem
else:  # psutil is a dependency there
    from rooda.world.process.tree.portable import PsutilProcessTable as _OfThisSystem


def process_table() -> ProcessTable:
    """The process table of this system."""
    return _OfThisSystem()
