"""What a tree of git can't store about a snapshot: it is in the message of its commit, as JSON."""

import json
import stat
from collections import Counter
from collections.abc import Mapping

from msgspec import Struct

_PROGRAM = 0o100  # the bit by which git tells a program from another file
GIT_MODES = {False: 0o644, True: 0o755}


class Permissions(Struct, frozen=True):
    """The permissions of files: those of most files and most programs, and the exceptions."""

    file: int = GIT_MODES[False]
    program: int = GIT_MODES[True]
    others: Mapping[str, int] = {}

    @classmethod
    def usual(cls, counts: Mapping[int, int]) -> "Permissions":
        """Return the most frequent permissions of both kinds, of which there are this many."""
        some = Counter(counts).most_common()
        file, program = (
            next((mode for mode, _ in some if is_program(mode) is kind), GIT_MODES[kind])
            for kind in (False, True)
        )
        return cls(file, program)

    def mode(self, name: str, git_mode: int) -> int:
        """Return the permissions of a file that has this mode in the tree."""
        usual = self.program if is_program(git_mode) else self.file
        return self.others.get(name, usual)


class SnapshotNotes(Struct, frozen=True):
    """Facts about a snapshot beside its tree.

    `top` is the top of the work tree. `left_out` existed and is not in the tree; `absent` did not
    exist and would be ignored.
    """

    top: str = ""
    left_out: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    permissions: Permissions = Permissions()

    def message(self, title: str) -> bytes:
        """Return the message of a commit."""
        modes = self.permissions
        told = {
            "top": self.top,
            "left_out": self.left_out,
            "absent": self.absent,
            "usual": [modes.file, modes.program],
            "modes": modes.others,
        }
        return f"{title}\n\n{json.dumps(told)}\n".encode()

    @classmethod
    def read(cls, message: str) -> "SnapshotNotes":
        """Return the notes in the message of a commit."""
        told = json.loads(message.partition("\n\n")[2])
        file, program = told["usual"]
        return cls(
            told["top"],
            tuple(told["left_out"]),
            tuple(told["absent"]),
            Permissions(file, program, told["modes"]),
        )


def is_program(mode: int) -> bool:
    """Return whether git takes a file with these permissions for a program."""
    return bool(mode & _PROGRAM)


def permissions(mode: int) -> int:
    """Return the permissions in the mode of a file, without the bits that change its user."""
    return stat.S_IMODE(mode) & 0o777
