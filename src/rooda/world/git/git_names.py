"""Names of files that git allows in a tree."""

import os

# Characters that macOS ignores in a name, such as a joiner of zero width.
_IGNORED = dict.fromkeys(
    (*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF)
)


def is_path_in_tree(name: str) -> bool:
    """Return whether git can have a file of this name. An agent can forge an index or a message.

    Names that some file system takes for `.git` count as `.git`.
    """
    try:
        parts = os.fsencode(name).split(b"/")
    except UnicodeEncodeError:
        return False
    if any(part in (b"", b".", b"..") or b"\0" in part for part in parts):
        return False
    return not any(_is_git(part) for part in name.split("/"))


def _is_git(part: str) -> bool:
    plain = part.translate(_IGNORED).lower().partition(":")[0].rstrip(" .")
    return plain in (".git", "git~1")
