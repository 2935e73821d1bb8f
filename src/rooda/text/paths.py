"""Names of files, as people write them and as messages show them."""

import os
import stat
from pathlib import Path


def anchored(folder: Path, text: str, home: Path | None = None) -> Path:
    """The path that `text` means when it is written in `folder`; `~` is the home folder."""
    if home is not None and (text == "~" or text.startswith("~/")):
        return home / text[2:]
    # pathlib's expanduser raises for an unknown user; such a name is simply a name here.
    return folder / os.path.expanduser(text)  # noqa: PTH111


def shown_from(folder: Path, path: Path, home: Path | None = None) -> str:
    """The shortest name of `path` for a person in `folder`: relative, `~/...` or whole."""
    if path.is_relative_to(folder):
        return str(path.relative_to(folder))
    if home is not None and path.is_relative_to(home):
        return f"~/{path.relative_to(home)}"
    return str(path)


def file_mode(path: Path) -> int:
    """The mode of what is there; 0 for nothing, or a name that no file can have."""
    try:
        return path.stat().st_mode
    except (OSError, ValueError):
        return 0


def is_folder(path: Path) -> bool:
    """Whether a folder is there."""
    return stat.S_ISDIR(file_mode(path))
