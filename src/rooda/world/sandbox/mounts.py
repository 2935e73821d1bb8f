"""The words that tell bubblewrap what to mount, in order: later mounts lie over earlier ones."""

import os
import stat
from pathlib import Path

from rooda.base.paths import file_mode
from rooda.world.sandbox.sandbox_plan import SandboxError


class Mounts:
    """Collects the words for bubblewrap."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self.shown: list[tuple[Path, Path]] = []  # sources and their places

    def add(self, *words: str) -> None:
        """Add an option of bubblewrap."""
        self.words += words

    def writable(self, source: Path | str, place: Path | str | None = None) -> None:
        """Show a file or folder, at its own place or at another one."""
        self._show("--bind", Path(source), Path(place or source))

    def read_only(self, source: Path | str, place: Path | str | None = None) -> None:
        """Show a file or folder that can't be changed."""
        self._show("--ro-bind", Path(source), Path(place or source))

    def _show(self, option: str, source: Path, place: Path) -> None:
        self.add(option, str(source), str(place))
        self.shown.append((source, place))

    def folder(self, place: str) -> None:
        """Make a folder that others can read too."""
        self.add("--perms", "0755", "--dir", place)

    def memory(self, place: str, size: int, mode: str) -> None:
        """Mount an empty folder in memory."""
        self.add("--size", str(size), "--perms", mode, "--tmpfs", place)

    def hide(self, folder: Path) -> None:
        """Show an empty folder that can't be changed."""
        self.memory(str(folder), 4096, "0555")
        self.add("--remount-ro", str(folder))


class ProtectedMounts:
    """Protects paths below a writable folder.

    Each folder on the way to such a path is a mount of its own. Otherwise a program could move the
    folder away, and make another one in its place.
    """

    def __init__(self, top: Path, mounts: Mounts) -> None:
        self.top = top
        self._mounts = mounts
        self._mounted = {top}

    def exists(self, path: Path) -> bool:
        """Return whether there is a file or folder. Raises SandboxError for a symbolic link.

        A link on the way counts too: the mount would lead to what an agent has chosen.
        """
        place = self.top
        for name in path.relative_to(self.top).parts:
            place /= name
            try:
                mode = place.lstat().st_mode
            except (FileNotFoundError, NotADirectoryError):
                return False
            if stat.S_ISLNK(mode):
                raise SandboxError(
                    f"{place} is a symbolic link, so the sandbox can't protect {path}",
                    f"Put the file or folder itself there: it leads to {os.readlink(place)}",  # noqa: PTH115
                )
        return True

    def open(self, folder: Path) -> bool:
        """Make an existing folder, and those on the way, mounts of their own. False without it."""
        if not self.exists(folder):
            return False
        for place in (*reversed(folder.parents), folder):
            if place.is_relative_to(self.top) and place not in self._mounted:
                self._mounts.writable(place)
                self._mounted.add(place)
        return True

    def protect(self, path: Path) -> bool:
        """Make an existing file or folder read-only. Return False if it does not exist."""
        if not self.exists(path):
            return False
        self.open(path.parent)
        self._mounts.read_only(path)
        self._mounted.add(path)
        return True

    def hide(self, folder: Path) -> None:
        """Show an empty folder instead of an existing one."""
        if self.exists(folder):
            self.open(folder.parent)
            self._mounts.hide(folder)
            self._mounted.add(folder)


# What a sandbox shows of the system: programs and libraries, a part of /etc, empty /tmp and /run.
#
# /etc is a list of names: it also contains private keys, which root can read.


_PROGRAMS = ("/usr", "/opt", "/nix", "/gnu/store", "/home/linuxbrew/.linuxbrew")
_IN_USR = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_FOLDERS_OF_ETC = ("/etc", "/etc/ssl", "/etc/pki", "/etc/pki/tls", "/etc/default")
_ETC = (
    *("passwd", "group", "hosts", "host.conf", "nsswitch.conf", "resolv.conf", "gai.conf"),
    *("services", "protocols", "networks", "hostname", "localtime", "timezone", "os-release"),
    *("ssl/certs", "ssl/cert.pem", "ssl/openssl.cnf", "ca-certificates", "ca-certificates.conf"),
    *("pki/ca-trust", "pki/tls/certs", "pki/tls/cert.pem", "pki/tls/openssl.cnf"),
    *("crypto-policies", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "ld.so.preload"),
    *("alternatives", "mime.types", "magic", "terminfo", "profile", "profile.d", "bash.bashrc"),
    *("bashrc", "inputrc", "shells", "login.defs", "debian_version", "redhat-release"),
    *(
        "lsb-release",
        "locale.alias",
        "locale.conf",
        "default/locale",
        "fonts",
        "perl",
        "xattr.conf",
    ),
)
_ETC_PATTERNS = ("java-*", "python3*")
_IN_MEMORY = 2 * 1024**3  # bytes for /tmp; the default is half of the machine's memory
_LITTLE = 64 * 1024**2  # bytes for /run and /dev/shm


def show_system(mounts: Mounts) -> None:
    """Show the system read-only, with private folders for temporary files."""
    for place in _PROGRAMS:
        if Path(place).is_dir():
            mounts.read_only(place)
    for place in _IN_USR:
        if os.path.islink(place):  # noqa: PTH114 - as the next line
            mounts.add("--symlink", os.readlink(place), place)  # noqa: PTH115 - as it is written
        elif Path(place).is_dir():
            mounts.read_only(place)
    _show_etc(mounts)
    # Without capabilities, bubblewrap does not notice that root can write to /proc/sys.
    mounts.add("--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys", "--dev", "/dev")
    mounts.memory("/dev/shm", _LITTLE, "1777")  # noqa: S108 - a place inside
    mounts.memory("/tmp", _IN_MEMORY, "1777")  # noqa: S108 - a place inside
    mounts.folder("/var")
    mounts.memory("/var/tmp", _IN_MEMORY, "1777")  # noqa: S108 - a place inside
    mounts.memory("/run", _LITTLE, "0755")
    mounts.folder("/run/user")
    mounts.add("--perms", "0700", "--dir", f"/run/user/{os.getuid()}")


def is_shown(path: Path) -> bool:
    """Return whether a path is in one of the folders of the system that a sandbox shows."""
    return any(path.is_relative_to(place) for place in (*_PROGRAMS, *_IN_USR))


def _show_etc(mounts: Mounts) -> None:
    for place in _FOLDERS_OF_ETC:
        mounts.folder(place)
    etc = Path("/etc")
    found = [etc / name for name in _ETC]
    found += [path for pattern in _ETC_PATTERNS for path in sorted(etc.glob(pattern))]
    for path in found:
        # /etc/resolv.conf may be a link into /run, which is empty in the sandbox.
        real = Path(os.path.realpath(path))
        if file_mode(real):
            mounts.read_only(real, path)
