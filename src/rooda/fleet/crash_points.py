"""Named places where a test lets a worker die, and guards that a test switches off.

`ROODA_FLEET_FAULTS` is a list such as `crash:after-push:auth:2,off:self-check`. A crash happens
once: the file `ROODA_FLEET_FAULTS_DONE/after-push-auth-2` remembers it.
"""

import os
import signal
from pathlib import Path

FAULTS = "ROODA_FLEET_FAULTS"
DONE = "ROODA_FLEET_FAULTS_DONE"


def reach(point: str, run: str, iteration: int) -> None:
    """Kill this process if a test asked for a crash at this point."""
    if f"crash:{point}:{run}:{iteration}" not in _asked():
        return
    mark = Path(os.environ[DONE]) / f"{point}-{run}-{iteration}"
    try:
        mark.touch(exist_ok=False)
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


def is_off(guard: str) -> bool:
    """Return whether a test has switched this guard off."""
    return f"off:{guard}" in _asked()


def _asked() -> list[str]:
    return os.environ.get(FAULTS, "").split(",")
