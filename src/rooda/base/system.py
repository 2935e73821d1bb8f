"""The operating system, as reports name it."""

import os


def system_name() -> str:
    """Return system, release and machine: "Linux 6.1.0 x86_64".

    platform.platform() starts `uname`; a report of an internal error may not depend on a process.
    """
    system, _, release, _, machine = os.uname()
    return f"{system} {release} {machine}"
