"""The remote that a branch is pushed to."""

from collections.abc import Callable

Ask = Callable[..., str]  # asks git, and returns its answer; empty where git has none


def push_remote(ask: Ask, branch: str) -> str:
    """Return where git itself would push to; without any setting the only remote, or `origin`."""
    for key in (f"branch.{branch}.pushRemote", "remote.pushDefault"):
        if chosen := ask("config", key):
            return chosen
    upstream = ask("config", f"branch.{branch}.remote")
    if upstream and upstream != ".":
        return upstream
    remotes = ask("remote").split()
    return remotes[0] if len(remotes) == 1 else "origin" if "origin" in remotes else ""
