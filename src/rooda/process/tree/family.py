"""Who belongs to whom. Pure."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from fnmatch import fnmatchcase
from os.path import basename

from rooda.process.tree.process import Process


def descendants(everyone: Iterable[Process], roots: Collection[int]) -> list[Process]:
    """Children of these pids, their children, and so on; the roots are not among them."""
    children: defaultdict[int, list[Process]] = defaultdict(list)
    for process in everyone:
        children[process.parent].append(process)
    found: list[Process] = []
    waiting, seen = list(roots), set(roots)
    while waiting:
        for child in children[waiting.pop()]:
            if child.pid not in seen:
                seen.add(child.pid)
                found.append(child)
                waiting.append(child.pid)
    return found


def without_kept(
    members: Collection[Process], is_kept: Callable[[Process], bool], never: int
) -> list[Process]:
    """Members that are not to be kept. A kept process shields what it started; `never` is not."""
    kept = {member.pid for member in members if member.pid != never and is_kept(member)}
    if not kept:
        return list(members)
    shielded = {member.pid for member in descendants(members, kept)} - {never}
    return [member for member in members if member.pid not in kept | shielded]


def is_named(process: Process, words: list[str], patterns: Iterable[str]) -> bool:
    """Whether a pattern fits the process's name, its program's name or its whole command line."""
    names = {process.name, " ".join(words)}
    if words:
        names.add(basename(words[0]))  # noqa: PTH119 - see Process
    return any(fnmatchcase(name, pattern) for name in names for pattern in patterns)
