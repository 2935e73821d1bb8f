"""Git commands that reach the remote of a fleet, within a time limit, its address in no argument.

Other users of the machine can read the arguments of a process, but not its environment.
"""

import contextlib
import re
import shlex
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from rooda.fleet.addresses import local_folder
from rooda.world.git.git import Git, GitError
from rooda.world.tools import Tools

NAME = "rooda-fleet"  # the remote in the environment of git
_TO_ASK, _TO_MOVE = 60.0, 600.0  # seconds for one command
_SETTINGS = {
    "maintenance.auto": "false",
    "http.lowSpeedLimit": "1000",  # bytes a second
    "http.lowSpeedTime": "60",  # seconds: a connection that is dead for so long
    "protocol.version": "2",
    "push.pushOption": "",
}
# A push to a folder of this machine adds objects and refs there, and nothing else.
_QUIET_RECEIVER = {
    "receive.autogc": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "core.logAllRefUpdates": "false",
}
_LOCKED = re.compile(r"Unable to create '([^']+\.lock)': File exists")
_STALE = 60.0  # seconds
_NO_HOOKS = {"core.hooksPath": "/dev/null"}


def transport(
    url: str, git_dir: Path, tools: Tools, receive_pack: str | None = None
) -> tuple[Git, Git]:
    """Return a git that asks the remote `NAME`, and one with more time that moves objects."""
    receiver = receive_pack or quiet_receiver(url, tools)
    known = {f"remote.{NAME}.url": url}
    if receiver is not None:
        known[f"remote.{NAME}.receivepack"] = receiver
    more = {"GIT_DIR": str(git_dir), **in_environment(tools.environ, known)}
    asker = Git(git_dir, tools, more, _SETTINGS, online=_TO_ASK)
    return asker, Git(git_dir, tools, more, _SETTINGS, online=_TO_MOVE)


def quiet_receiver(url: str, tools: Tools) -> str | None:
    """Return the command that takes a push in a folder of this machine; None for other remotes.

    The hooks of a bare repository are the rules of a server. Those of a work tree are for its user.
    """
    folder = local_folder(url)
    if folder is None:
        return None
    settings = _QUIET_RECEIVER | ({} if _is_bare(folder, tools) else _NO_HOOKS)
    words = [word for key, value in settings.items() for word in ("-c", f"{key}={value}")]
    return shlex.join([tools.program("git"), *words, "receive-pack"])


def _is_bare(folder: Path, tools: Tools) -> bool:
    """Return whether a repository has no work tree. `folder` may be its git folder."""
    if folder.name == ".git" or (folder / ".git").exists():
        return False
    try:
        return Git(folder, tools).ask("config", "--bool", "core.bare") != "false"
    except GitError:
        return True


def remove_stale_lock(url: str, refs: Iterable[str], said: str) -> None:
    """Remove the lock that a killed git left on one of these refs of rooda, on this machine.

    `said` is what git said about it. Git holds such a lock for some milliseconds.
    """
    found = _LOCKED.search(said)
    if found is None or local_folder(url) is None:
        return
    lock = Path(found[1])
    if not found[1].endswith(tuple(f"/{ref}.lock" for ref in refs)):
        return
    with contextlib.suppress(OSError):
        if time.time() - lock.lstat().st_mtime > _STALE:
            lock.unlink()


def in_environment(environ: Mapping[str, str], settings: Mapping[str, str]) -> dict[str, str]:
    """Return variables that give settings to git, after those that are in the environment."""
    first = environ.get("GIT_CONFIG_COUNT", "")
    count = int(first) if first.isdecimal() else 0
    found: dict[str, str] = {}
    for number, (key, value) in enumerate(settings.items(), start=count):
        found[f"GIT_CONFIG_KEY_{number}"] = key
        found[f"GIT_CONFIG_VALUE_{number}"] = value
    return {**found, "GIT_CONFIG_COUNT": str(count + len(settings))}
