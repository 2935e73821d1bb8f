"""The private HOME of a work tree: empty at first, kept between iterations and runs."""

import contextlib
import io
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from rooda.base.paths import file_mode
from rooda.world.files.beneath import Beneath
from rooda.world.sandbox.mounts import Mounts
from rooda.world.sandbox.sandbox_plan import SandboxError
from rooda.world.state.folder import StateFolder, make_folders
from rooda.world.state.home import VARIABLE

# Programs that users install below HOME, without the caches and credentials next to them.
_TOOLCHAINS = (
    *(".pyenv", ".rbenv", ".nodenv", ".asdf", ".local/share/mise", ".nvm", ".volta", ".bun"),
    *(".fnm", ".local/share/fnm", ".deno/bin", ".npm-global", ".local/share/pnpm", ".n"),
    *(".cargo/bin", ".cargo/env", ".rustup", "go/bin", ".go", "sdk", ".sdkman/candidates"),
    *(".local/bin", ".local/lib", ".local/share/uv/python", ".local/share/uv/tools"),
    *(".local/pipx", ".local/share/pipx", "bin", ".opam", ".ghcup/bin", ".juliaup", ".nix-profile"),
)
_FOLDERS_OF_TOOLCHAINS = (
    *("PYENV_ROOT", "RUSTUP_HOME", "GOROOT", "JAVA_HOME", "NVM_DIR", "VOLTA_HOME", "BUN_INSTALL"),
)


def home_of(environ: Mapping[str, str]) -> Path:
    """Return the user's HOME. Raises SandboxError without one."""
    text = environ.get("HOME", "")
    home = Path(text)
    if not home.is_absolute() or home == Path("/"):
        raise SandboxError(
            f"the sandbox needs a home folder, and HOME is {text or 'not set'}",
            "Set HOME to a folder of your own",
        )
    return home


def make_private(state: StateFolder, name: str) -> None:
    """Make a folder of the sandbox in the state folder, for the user alone. Raises SandboxError.

    The state folder around it is private too: a program inside can change the permissions of the
    folder itself.
    """
    place = state / name
    try:
        make_folders(state, name)
        found = place.lstat()
        is_own = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
        if is_own:
            place.chmod(0o700)
    except OSError as error:
        raise SandboxError(
            f"the folder of the sandbox can't be made: {place}: {error.strerror}",
            f"Set {VARIABLE} to a folder that you can write to",
        ) from None
    if not is_own:
        raise SandboxError(f"{place} is no folder of your own", "Move it away")


def show_toolchains(mounts: Mounts, home: Path, environ: Mapping[str, str]) -> None:
    """Show the programs that the user has installed below HOME, read-only.

    Variables may name folders for them elsewhere.
    """
    named = [Path(environ[name]) for name in _FOLDERS_OF_TOOLCHAINS if environ.get(name)]
    for place in (*(home / name for name in _TOOLCHAINS), *filter(Path.is_absolute, named)):
        real = Path(os.path.realpath(place))
        if file_mode(real) and not _is_too_much(real, home):
            mounts.read_only(real, place)


def is_in_toolchain(path: Path, home: Path) -> bool:
    """Return whether a program is in one of the folders below HOME that every sandbox shows."""
    return any(path.is_relative_to(home / name) for name in _TOOLCHAINS)


def places_of_program(found: Path, home: Path, tree: Path) -> Iterator[Path]:
    """Yield the folders of a program: where it was found, and where its links lead to."""
    for path in dict.fromkeys(_links_to(found)):
        for place in _whole_program(path, home):
            is_too_much = _is_too_much(place, home) or tree.is_relative_to(place)
            shown = path if is_too_much else place  # the file alone
            if file_mode(shown):
                yield shown


def show_certificates(mounts: Mounts, path: Path, home: Path) -> None:
    """Show a file or folder with certificates, read-only, unless it holds more than that."""
    real = Path(os.path.realpath(path))
    if not _is_too_much(real, home):
        mounts.read_only(real, path)


def _links_to(path: Path) -> Iterator[Path]:
    for _ in range(10):
        yield path
        if not path.is_symlink():
            break
        path = Path(os.path.normpath(path.parent / path.readlink()))
    yield Path(os.path.realpath(path))


def _whole_program(path: Path, home: Path) -> list[Path]:
    """Return the folders that a program needs: its packages, its virtual environment, its own."""
    parts = path.parts
    if "node_modules" in parts:
        return [Path(*parts[: parts.index("node_modules") + 1])]
    folder, above = path.parent, path.parent.parent
    if (above / "pyvenv.cfg").is_file():
        return [above]
    libraries = above / "lib"  # of a Python or a node that is installed in a folder of its own
    has_libraries = folder.name == "bin" and above != home and libraries.is_dir()
    return [folder, libraries] if has_libraries else [folder]


def _is_too_much(place: Path, home: Path) -> bool:
    """Return whether a folder contains the user's HOME, or is a folder of all users."""
    if home.is_relative_to(place) or home.resolve().is_relative_to(place):
        return True
    return str(place) in ("/tmp", "/var/tmp", "/run", "/etc", "/dev", "/proc")  # noqa: S108


# The places in the private HOME that other files are mounted on.
#
# An agent can change everything in the private HOME. bubblewrap follows links while it mounts, also
# to the whole disk: with a link in place of a folder, it would make files wherever the link leads.


def clear_places(private: Path, home: Path, mounted: Iterable[tuple[Path, Path]]) -> None:
    """Make plain folders and files for all mounts below HOME. Raises SandboxError.

    `mounted` are the sources and their places. A place within another mount is not in the private
    HOME.
    """
    tops: list[Path] = []
    for source, place in mounted:
        if place == home or not place.is_relative_to(home):
            continue
        if any(place.is_relative_to(top) for top in tops):
            continue
        tops.append(place)
        try:
            _make_place(private, place.relative_to(home), is_folder=source.is_dir())
        except OSError as error:
            raise SandboxError(
                f"the sandbox can't show {place} in its private home folder: {error.strerror}",
                f"Delete the private home folder: {private}",
            ) from None


def forget_place(private: Path, name: str) -> None:
    """Delete the empty file that bubblewrap has left as the place of a file; the file is gone."""
    door = Beneath(private)
    with contextlib.suppress(OSError):
        found = door.status(name)
        if stat.S_ISREG(found.st_mode) and not found.st_size:
            door.remove(name)


def _make_place(private: Path, name: Path, *, is_folder: bool) -> None:
    """Make an empty folder or file, unless there is one. Anything else there is deleted."""
    door, ways = Beneath(private), [str(above) for above in reversed(name.parents)][1:]
    for folder in (*ways, *([str(name)] if is_folder else [])):
        if not _make_room(door, folder, stat.S_IFDIR):
            with door.folder(folder, make=True):
                pass
    if not is_folder and not _make_room(door, str(name), stat.S_IFREG):
        door.write_new(str(name), io.BytesIO(), 0o600)


def _make_room(door: Beneath, name: str, kind: int) -> bool:
    """Return whether a file or folder of this kind is there; delete anything else."""
    try:
        found = stat.S_IFMT(door.status(name).st_mode)
    except FileNotFoundError:
        return False
    if found != kind:
        door.remove(name)
    return found == kind
