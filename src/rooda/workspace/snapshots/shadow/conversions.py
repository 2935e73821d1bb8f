"""Whether git keeps other bytes than there are on disk: for line ends, large files, encodings."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from rooda.workspace.snapshots.repository import Repository

_NAME = ".gitattributes"
_PREFIXES = ("/", "/usr/local", "/opt/homebrew")
_OF_THE_SYSTEM = [Path(prefix, "etc", "gitattributes") for prefix in _PREFIXES]
_OFF = frozenset({"", "false", "no", "off", "0"})


def may_be_converted(
    tracked: Iterable[str],
    repository: Repository,
    settings: Mapping[str, str],
    environ: Mapping[str, str],
) -> bool:
    """Whether any of the tracked files might be. To ask for each file would take longer."""
    if settings.get("core.autocrlf", "").lower() not in _OFF:
        return True
    names = list(tracked)
    if any(name.rpartition("/")[2] == _NAME for name in names):  # counts even if it was deleted
        return True
    places = [repository.top / folder / _NAME for folder in _folders(names)]
    places += [repository.common / "info" / "attributes", *_OF_THE_SYSTEM]
    places.append(_of_the_user(repository, settings, environ))
    return any(path.is_symlink() or path.exists() for path in places)


def _folders(names: Iterable[str]) -> set[str]:
    """Every folder that has a tracked file somewhere below."""
    found = {""}
    for name in names:
        folder = name.rpartition("/")[0]
        while folder not in found:
            found.add(folder)
            folder = folder.rpartition("/")[0]
    return found


def _of_the_user(
    repository: Repository, settings: Mapping[str, str], environ: Mapping[str, str]
) -> Path:
    home = Path(environ.get("HOME") or "/nonexistent")
    if (named := settings.get("core.attributesfile")) is not None:
        return home / named[2:] if named.startswith("~/") else repository.top / named
    config = environ.get("XDG_CONFIG_HOME")
    return (Path(config) if config else home / ".config") / "git" / "attributes"
