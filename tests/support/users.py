"""Tests as an ordinary user: root can read everything."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_NOBODY = 65534


@contextmanager
def folder_of_ordinary_user() -> Iterator[Path]:
    """Yield a new folder. The block runs as its owner, who is not root."""
    folder = Path(tempfile.mkdtemp())
    is_root = os.geteuid() == 0
    try:
        if is_root:
            os.chown(folder, _NOBODY, _NOBODY)
            os.seteuid(_NOBODY)
        yield folder
    finally:
        if is_root:
            os.seteuid(0)
        for above, _, _ in os.walk(folder):
            Path(above).chmod(0o700)
        shutil.rmtree(folder)
