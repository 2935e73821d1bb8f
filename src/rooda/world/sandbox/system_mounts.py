"""What a sandbox shows of the system: programs and libraries, a part of /etc, empty /tmp and /run.

/etc is a list of names: it also contains private keys, which root can read.
"""

import os
from pathlib import Path

from rooda.base.paths import file_mode
from rooda.world.sandbox.mounts import Mounts

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
