"""Ignore rules: git applies them to names, in a folder that has nothing but copies of the rules.

So git never reads the work tree, where a pipe in place of a `.gitignore` would block it.
"""

import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path

from rooda.world.files.beneath import Beneath
from rooda.world.files.plain_files import read_plain_file
from rooda.world.git.git import Git
from rooda.world.git.snapshots.marks import RuleFile
from rooda.world.state.folder import StateFolder, make_folders
from rooda.world.state.home import OLD_FOLDER
from rooda.world.tools import Tools

RULES = ".gitignore"
MOST_RULES = 1024 * 1024  # bytes of one file
_ASK = ("check-ignore", "--no-index", "-z", "--stdin")
_PLAIN_SETTINGS = ("core.ignorecase", "core.precomposeunicode")


class IgnoreRules:
    """The rules of one work tree: those beside it, and the copies of its `.gitignore` files."""

    def __init__(
        self,
        state: StateFolder,
        tools: Tools,
        settings: Mapping[str, str],
        exclude: Path | None,
        own: Sequence[str] = (),
    ) -> None:
        """`exclude` is `info/exclude` of the user's repository.

        `own` are patterns, relative to the top, of files that rooda writes, not the agent.
        """
        self._state = state
        self._tools = tools
        self._settings = {key: settings[key] for key in _PLAIN_SETTINGS if key in settings}
        self._chosen = settings.get("core.excludesfile", "")
        self._exclude = exclude
        self._own = b"".join(os.fsencode(f"/{pattern}\n") for pattern in own)
        self._beside: tuple[bytes, bytes] = (b"", b"")
        self.files: dict[str, RuleFile] = {}  # by the path of their folder

    def read_beside(self) -> bytes:
        """Read the rules that are not in the tree; return a digest of them."""
        exclude = b"" if self._exclude is None else _read(self._exclude)
        mine = f"\n{OLD_FOLDER}/\n".encode()
        self._beside = (exclude + mine + self._own, _read(self._chosen_file()))
        words = [*self._beside, repr(self._settings).encode()]
        return sha256(b"\0".join(sha256(word).digest() for word in words)).digest()

    def _chosen_file(self) -> Path:
        """Return the file with the user's rules for all repositories."""
        environ = self._tools.environ
        home = environ.get("HOME", "")
        config = environ.get("XDG_CONFIG_HOME") or f"{home}/.config"
        chosen = self._chosen or f"{config}/git/ignore"
        return Path(f"{home}{chosen[1:]}" if chosen.startswith("~/") else chosen)

    def ignored(self, names: Mapping[str, Iterable[str]]) -> dict[str, set[str]]:
        """Return the names that a rule ignores, by their folders; those of folders end in `/`.

        Raises GitError, and OSError if there is no room for the copies.
        """
        make_folders(self._state)
        folder = tempfile.mkdtemp(prefix="rules-", dir=self._state)
        try:
            return self._asked(Path(folder), names)
        finally:
            Beneath(self._state).remove(os.path.basename(folder))  # noqa: PTH119 - text

    def _asked(self, folder: Path, names: Mapping[str, Iterable[str]]) -> dict[str, set[str]]:
        git, tree = self._prepared(folder)
        given: list[bytes] = []
        for path, some in names.items():
            with tree.folder(path, make=True) as fd:
                for name in some:
                    if name.endswith("/"):
                        _make_folder(name[:-1], fd)
                    # `./` in front keeps git from reading a name as an option or a pattern.
                    place = f"./{path}/{name}" if path else f"./{name}"
                    given.append(os.fsencode(place.removesuffix("/")))
        kinds = {
            (path, name[:-1]) for path, some in names.items() for name in some if name[-1] == "/"
        }
        found: dict[str, set[str]] = {}
        said = git.ask(*_ASK, given=b"".join([one + b"\0" for one in given]))
        for line in os.fsencode(said or "").split(b"\0")[:-1]:
            path, _, name = os.fsdecode(line).removeprefix("./").rpartition("/")
            found.setdefault(path, set()).add(f"{name}/" if (path, name) in kinds else name)
        return found

    def _prepared(self, folder: Path) -> tuple[Git, Beneath]:
        """Return git for a folder with copies of the rules, and the folder."""
        git_dir, chosen = folder / "git", folder / "chosen"
        for name in ("git/objects", "git/refs", "git/info", "tree"):
            (folder / name).mkdir(parents=True)
        (git_dir / "HEAD").write_text("ref: refs/heads/none\n")
        (git_dir / "info" / "exclude").write_bytes(self._beside[0])
        chosen.write_bytes(self._beside[1])
        tree = Beneath(folder / "tree")
        for path, rule in self.files.items():
            with tree.folder(path, make=True) as fd:
                file = os.open(RULES, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600, dir_fd=fd)
                with os.fdopen(file, "wb") as copy:
                    copy.write(rule.content)
        place = {"GIT_DIR": str(git_dir), "GIT_WORK_TREE": str(folder / "tree")}
        settings = {**self._settings, "core.excludesFile": str(chosen)}
        return Git(folder / "tree", self._tools, place, settings), tree


def _make_folder(name: str, parent: int) -> None:
    try:
        os.mkdir(name, dir_fd=parent)
    except FileExistsError:  # the copy of a `.gitignore` is in the way of a folder of that name
        if name == RULES:
            os.unlink(name, dir_fd=parent)
            os.mkdir(name, dir_fd=parent)


def _read(path: Path) -> bytes:
    """Return the start of a file of the user, which may be a link; nothing if it is no file."""
    try:
        return read_plain_file(path, MOST_RULES, follow=True)
    except OSError:
        return b""
