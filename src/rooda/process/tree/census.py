"""The census of this system."""

from sys import platform

from rooda.process.tree.process import Census


def census() -> Census:
    """What this system has; imported only here, as psutil is a dependency of macOS alone."""
    if platform == "linux":
        from rooda.process.tree.proc import ProcFs  # noqa: PLC0415

        return ProcFs()
    from rooda.process.tree.sweep import Sweep  # noqa: PLC0415

    return Sweep()
