"""The submodules of a slot: fetched with the user's login, so only from addresses of the user."""

import os
from collections.abc import Iterator, Mapping

from rooda.fleet.slot.slot_clone import SlotClone, make_real_folder, remove_tree
from rooda.world.git.git import INHERITED, Git

_LIST = ".gitmodules"
_WANTED = r"^submodule\..*\.(path|url)$"
_LINK = "160000"

# The name of a submodule and its address, by its path. None: git could read it in several ways.
Addresses = Mapping[str, tuple[str, str] | None]


def update_submodules(clone: SlotClone, start: str, base: str) -> list[str]:
    """Check out the submodules of a commit; return the paths of those that stay empty folders.

    An agent may have written `.gitmodules`. A submodule is fetched if the user's own commit `base`
    names the same address for the same path. Submodules within one come along if the user chose
    its commit as well. An agent may also have changed the repositories of the submodules, so rooda
    makes them again. Raises GitError.
    """
    links = _links(clone.git, start)
    for path in links:
        make_real_folder(clone.work, path)
        remove_tree(clone.work / path)
        (clone.work / path).mkdir()
    remove_tree(clone.git_dir / "modules")
    if not links:
        return []
    here, known = _addresses_here(clone), _addresses_of(clone.git, base)
    chosen = _links(clone.git, base)
    trusted = [path for path in links if here.get(path) and here.get(path) == known.get(path)]
    whole = [path for path in trusted if links[path] == chosen.get(path)]
    moved = [path for path in trusted if path not in whole]
    update = ("submodule", "--quiet", "update", "--init", "--force", "--checkout")
    if whole:
        clone.online(*update, "--recursive", "--", *whole, umask=INHERITED)
    if moved:
        clone.online(*update, "--", *moved, umask=INHERITED)
    within = (f"{path}/..." for path in moved if os.path.lexists(clone.work / path / _LIST))
    return [*(path for path in links if path not in trusted), *within]


def _links(git: Git, commit: str) -> dict[str, str]:
    """Return the commits of the submodules in a commit, by their paths."""
    entries = os.fsdecode(git("ls-tree", "-r", "-z", "--full-tree", commit)).split("\0")
    split = (entry.partition("\t") for entry in entries if entry.startswith(f"{_LINK} "))
    return {path: facts.split(" ")[2] for facts, _, path in split}


def _addresses_here(clone: SlotClone) -> Addresses:
    """Return what git will read in the work tree."""
    path = clone.work / _LIST
    return {} if path.is_symlink() or not path.is_file() else _read(clone.git, "--file", str(path))


def _addresses_of(git: Git, commit: str) -> Addresses:
    blob = f"{commit}:{_LIST}"
    is_there = git.ask("rev-parse", "--quiet", "--verify", blob) is not None
    return _read(git, "--blob", blob) if is_there else {}


def _read(git: Git, *source: str) -> Addresses:
    found = git.ask("config", "--null", *source, "--get-regexp", _WANTED) or ""
    values: dict[str, dict[str, list[str]]] = {}
    for name, key, value in _entries(found):
        values.setdefault(name, {"path": [], "url": []})[key].append(value)
    addresses: dict[str, tuple[str, str] | None] = {}
    for name, keys in values.items():
        is_plain = len(keys["path"]) == 1 and len(keys["url"]) == 1
        for path in keys["path"]:
            is_first = path not in addresses
            addresses[path] = (name, keys["url"][0]) if is_plain and is_first else None
    return addresses


def _entries(found: str) -> Iterator[tuple[str, str, str]]:
    """Yield the name of the submodule, the key and the value of each setting."""
    for entry in found.split("\0"):
        setting, divided, value = entry.partition("\n")
        name, _, key = setting.removeprefix("submodule.").rpartition(".")
        if divided:
            yield name, key, value
