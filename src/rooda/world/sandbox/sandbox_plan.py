"""What a sandbox is made from: the settings of the run, its folders, and the user's variables."""

import errno
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

from msgspec import Struct

from rooda.world.files.sight import Sight
from rooda.world.state.folder import StateFolder, has_left_git
from rooda.world.tools import Tools

HOME = "home"  # the private home folder, in the state folder


class SandboxKind(StrEnum):
    """How programs are kept in."""

    NONE = "none"
    BWRAP = "bwrap"
    COMMAND = "command"


class SandboxError(OSError):
    """Why the sandbox can't be set up, and what the user can do (`fix`)."""

    def __init__(self, message: str, fix: str = "") -> None:
        super().__init__(errno.ENOSYS, message)
        self.fix = fix

    def __str__(self) -> str:
        """Return the message without the number of the error."""
        return str(self.strerror)


class SandboxPlan(Struct, frozen=True):
    """What the user asked for, and where.

    `tree` is the work tree, links resolved. `folders` are those below it that rooda and the agent
    work in: config files are looked for there and in the folders above. `home` is that of the user,
    `state` the state folder. `outside` is the
    environment that rooda was started with, `given` the names that the user's setting `env` sets,
    `held_inside` those that the file of the work tree sets: they decide nothing outside. `env` are
    names (with *) of other variables that pass in. `real_readable` and `real_writable` are where
    these folders led when the run started: the user may name a folder by a link. `command`
    is a prefix, with names in braces.
    """

    kind: SandboxKind
    tree: Path
    folders: tuple[Path, ...]
    home: Path
    state: StateFolder
    outside: Mapping[str, str]
    tools: Tools
    network: bool = True
    readable: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()
    real_readable: tuple[Path, ...] = ()
    real_writable: tuple[Path, ...] = ()
    env: tuple[str, ...] = ()
    given: tuple[str, ...] = ()
    held_inside: frozenset[str] = frozenset()
    command: tuple[str, ...] = ()

    def sight(self) -> Sight:
        """Return what the agent can change and read of the user's files."""
        return Sight(
            changes=(self.tree, *self.writable, *self.real_writable),
            reads=(*self.readable, *self.real_readable),
        )

    @property
    def shown(self) -> tuple[Path, ...]:
        """The folders of the user that the agent sees, if rooda makes the sandbox itself."""
        return (self.tree, *self.real_readable, *self.real_writable)

    @property
    def has_left_git(self) -> bool:
        """Whether the start of the run takes over commits of a run that was killed."""
        return self.kind is SandboxKind.BWRAP and has_left_git(self.state)

    @property
    def private_home(self) -> Path:
        """The HOME of programs inside: empty at first, kept between iterations and runs."""
        return self.state / HOME
