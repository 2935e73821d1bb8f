"""The census of this system."""

import sys

from rooda.process.tree.process import Census

if sys.platform == "linux":
    from rooda.process.tree.proc import ProcFs as _OfThisSystem
else:  # psutil is a dependency there
    from rooda.process.tree.sweep import Sweep as _OfThisSystem


def census() -> Census:
    """What this system has to tell who is there."""
    return _OfThisSystem()
