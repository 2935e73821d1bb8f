"""Where a fleet is: the user's repository, the database, the git remote, and the project's key."""

import errno
import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote

from msgspec import Struct

from rooda.base.controls import one_line
from rooda.base.paths import anchored
from rooda.base.problems import InvalidInput, Problem
from rooda.base.secrets.sensitive import HIDDEN, masked_url, without_secret_values
from rooda.plan.resolve import Values
from rooda.plan.settings.fleet_settings import REMOTE, URL
from rooda.world.files.file_systems import network_file_system
from rooda.world.files.plain_files import read_plain_file, replace_file
from rooda.world.git.git import Git, GitError
from rooda.world.git.work_tree import explain_refusal, has_repository
from rooda.world.state.folder import StateFolder
from rooda.world.state.home import VARIABLE, NoStateHomeError
from rooda.world.state.record_place import FLEET_DATABASE as DATABASE
from rooda.world.state.record_place import (
    fleet_state,
    main_tree,
    note_tree,
    old_database,
    take_over_database,
)
from rooda.world.tools import Tools

# The address of a git remote: which folder it is on this machine, how messages show it.


_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:(//|:)")
_SHORT_SSH = re.compile(r"[^/]+:")  # host:path
_FILE = "file://"
# A token can stand in place of the user's name. With ssh the name is not a secret.
_HTTP_USER = re.compile(r"(https?://)[^/\s]+@", re.IGNORECASE)  # an @ may be in a password


def local_folder(url: str) -> Path | None:
    """Return the folder of a remote on this machine; None if the remote is elsewhere."""
    if url.startswith(_FILE):
        return Path(unquote(url.removeprefix(_FILE)))
    if _SCHEME.match(url) or _SHORT_SSH.match(url):
        return None
    return Path(url)


def absolute_address(url: str) -> str:
    """Return the address of a remote so that it is the same in every folder."""
    folder = local_folder(url)
    return url if folder is None or url.startswith(_FILE) else str(folder.absolute())


def without_credentials(text: str) -> str:
    """Return a message, or an address, on one line and without the credentials of addresses."""
    hidden = _HTTP_USER.sub(rf"\g<1>{HIDDEN}@", text)
    return one_line(without_secret_values(hidden))


def without_user(url: str) -> str:
    """Return the address without the user and the password of http; git asks its helper then."""
    return _HTTP_USER.sub(r"\g<1>", url)


TITLE = "Fleet"
_SQLITE = "sqlite:///"
_DEFAULT_REMOTE = "origin"
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://(?P<host>[^/]*)(?P<path>/.*)?")
_SCP = re.compile(r"(?P<host>[^/:]+):(?P<path>.*)")  # user@host:path, as ssh and git have it
_UNSAFE = re.compile(r"[^a-z0-9._]+")
_LONGEST_NAME = 40  # characters of the readable part of a key
_HASH = 8  # characters
_PROJECT = "fleet-project"  # the key of the project, which stays when the repository is moved
_KEY = re.compile(rf"[a-z0-9._-]*[0-9a-f]{{{_HASH}}}")
_LONGEST_KEY = 1024


class Place(Struct, frozen=True):
    """Where a fleet is.

    `top` is the user's checkout, `git_dir` its git folder (of all linked work trees), `project` the
    key of the project in the database and in names of folders. `remote` is what git pushes to. On
    one machine, `state` is the private folder of the database and of the `fence`. `needed_state`
    is the state folder that the fleet needs: for the fence, or for the database alone.
    """

    top: Path
    git_dir: Path
    project: str
    url: str
    remote: str
    state: Path | None = None
    needed_state: Path | None = None

    @property
    def database(self) -> Path | None:
        """The SQLite file; None for PostgreSQL."""
        return Path(self.url.removeprefix(_SQLITE)) if self.url.startswith(_SQLITE) else None

    @property
    def fence(self) -> Path | None:
        """The repository with the records; None if the remote has them."""
        return None if self.state is None else self.state / "fence.git"

    @property
    def has_database(self) -> bool:
        """Whether there may be runs: a SQLite file that does not exist has none."""
        return self.database is None or self.database.exists()

    @property
    def has_old_database(self) -> bool:
        """Whether a database of version 0.1 waits to be taken over."""
        return self.state is not None and old_database(self.git_dir, self.state) is not None

    @property
    def shown_url(self) -> str:
        """The URL of the database for messages."""
        return masked_url(self.url)

    @property
    def shown_remote(self) -> str:
        """The URL of the remote for messages."""
        return without_credentials(self.remote)

    @property
    def shown_records(self) -> str:
        """Where the records are, for messages."""
        return self.shown_remote if self.fence is None else str(self.fence)

    @property
    def is_own_remote(self) -> bool:
        """Whether the user's repository itself receives the work."""
        return self.remote == str(self.git_dir)


def find_place(folder: Path, values: Values, tools: Tools) -> Place:
    """Return the place for the current folder. Raises InvalidInput with what to do."""
    git = Git(folder, tools)
    top, git_dir = _repository(git)
    url = values[URL]
    if url is not None and not url.startswith(_SQLITE):
        remote = _remote(git, values[REMOTE], top, git_dir, is_shared=True)
        return Place(top, git_dir, project_key(remote), url, remote)
    remote = _remote(git, values[REMOTE], top, git_dir, is_shared=False)
    state = _state(git_dir, tools.environ)
    is_own = remote == str(git_dir)
    project = (is_own and _noted_project(state)) or project_key(remote)
    return Place(
        top,
        git_dir,
        project,
        _sqlite(url, top, state),
        remote,
        state if is_own else None,
        state if is_own or url is None else None,
    )


def _noted_project(state: Path) -> str:
    """Return the key of the project from before its repository was moved; "" for a new fleet."""
    try:
        key = read_plain_file(state / _PROJECT, _LONGEST_KEY).decode("ascii")
    except (OSError, ValueError):
        return ""
    return key if _KEY.fullmatch(key) else ""


def _state(git_dir: Path, environ: Mapping[str, str]) -> Path:
    try:
        return fleet_state(git_dir, environ)
    except NoStateHomeError as error:
        advice = f"Set {VARIABLE} to a folder of yours on a local disk"
        raise _wrong(str(error), advice) from None


def make_state(place: Place) -> Path | None:
    """Make the folders of a SQLite file and of the fence, for the user alone.

    Returns where the database of version 0.1 was, if this took it over. Raises InvalidInput.
    """
    folder = place.state if place.database is None else place.database.parent
    try:
        if folder is not None:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if place.state is None:
            return None
        note_tree(StateFolder(place.state), main_tree(place.git_dir))
        if not (place.state / _PROJECT).exists():
            replace_file(place.state / _PROJECT, place.project.encode())
        return take_over_database(place.git_dir, place.state)
    except OSError as error:
        path = error.filename or folder
        message = f"the state of the fleet can't be in {path}: {error.strerror}"
        is_full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        check = "Free some disk space" if is_full else "Check the modes of the folder"
        raise _wrong(message, f"{check}, or set {VARIABLE}") from None


def project_key(remote: str) -> str:
    """Return the key of a project: a readable name, and a hash of where its repository is.

    The ssh and the https address of a repository have the same key.
    """
    where = _where(remote)
    name = _UNSAFE.sub("-", where.lower()).strip("-._")[-_LONGEST_NAME:].strip("-._")
    if where.startswith("/"):  # a folder of this machine: its last name is enough
        name = _UNSAFE.sub("-", Path(where).name.lower()).strip("-._")[:_LONGEST_NAME]
    key = hashlib.sha256(where.encode("utf-8", "surrogateescape")).hexdigest()[:_HASH]
    return f"{name}-{key}" if name else key


def _where(remote: str) -> str:
    """Return the path of a repository: on this machine with a slash in front, else without."""
    folder = local_folder(remote)
    elsewhere = _URL.fullmatch(remote) or _SCP.fullmatch(remote)
    path = remote if elsewhere is None else elsewhere["path"] or ""
    path = path if folder is None else str(folder)
    path = path.rstrip("/").removesuffix("/.git").removesuffix(".git").rstrip("/")
    return path.lstrip("/~") if folder is None else path


def _repository(git: Git) -> tuple[Path, Path]:
    if not has_repository(git.folder):
        raise _wrong(
            f"{git.folder} is in no git repository",
            "Go to a repository, or make one with `git init` and a first commit",
        )
    try:
        absolute = "--path-format=absolute"
        common = git.line("rev-parse", absolute, "--git-common-dir")
        top = git.line("rev-parse", absolute, "--show-toplevel")
    except GitError as error:
        raise _wrong(*explain_refusal(git.folder, str(error))) from None
    return Path(top).resolve(), Path(common).resolve()


def _sqlite(url: str | None, top: Path, state: Path) -> str:
    path = state / DATABASE if url is None else anchored(top, url.removeprefix(_SQLITE))
    if kind := network_file_system(path.parent):
        raise _wrong(
            f"the database would be on a network file system ({kind}): {path}",
            f"SQLite breaks there. Set {VARIABLE} to a folder on a local disk, or fleet.url "
            f"({URL.variable}) to {_SQLITE}/FILE on a local disk or to a PostgreSQL database",
        )
    return f"{_SQLITE}{path}"


def _remote(git: Git, wanted: str | None, top: Path, git_dir: Path, *, is_shared: bool) -> str:
    if wanted is None and not is_shared:
        return str(git_dir)
    name = wanted or _DEFAULT_REMOTE
    try:
        is_known = name in git.line("remote").splitlines()
        found = git.line("remote", "get-url", "--push", "--", name) if is_known else wanted
    except GitError as error:
        message = f"the remote {name!r} can't be read: {without_credentials(str(error))}"
        raise _wrong(message, "Check `git remote -v`") from None
    if found is None:
        raise _wrong(
            f"the repository has no remote {name!r}, and other machines need one",
            f"Set fleet.remote ({REMOTE.variable}) to a repository that all machines can push to",
        )
    is_address = local_folder(found) is None or "://" in found
    return found if is_address else str(anchored(top, found).resolve())


def _wrong(message: str, advice: str) -> InvalidInput:
    return InvalidInput([Problem(message, advice, title=TITLE)])
