"""A `git` in front of the real one on PATH, which hangs at a chosen command."""

import shutil
from pathlib import Path

from support.gitwork import GitWork
from support.workspace import wait_for

# It notes each command. From the wanted call on, that command hangs; `$HOME/tools` has the wish.
_GIT = """#!/bin/sh
tools="$HOME/tools"
skip=
for word; do
  if [ -n "$skip" ]; then skip=; continue; fi
  case "$word" in
    -c|-C) skip=yes ;;
    -*) ;;
    *) name="$word"; break ;;
  esac
done
echo "$name" >> "$tools/calls"
if [ -f "$tools/wish" ]; then
  read -r wanted number manner < "$tools/wish"
  if [ "$name" = "$wanted" ]; then
    echo x >> "$tools/seen"
    if [ "$(wc -l < "$tools/seen")" -ge "$number" ]; then
      [ "$manner" = stubborn ] && trap '' TERM INT HUP
      echo $$ > "$tools/hung.new"; mv "$tools/hung.new" "$tools/hung"
      while [ "$manner" = stubborn ]; do sleep 60; done
      exec sleep 600
    fi
  fi
fi
exec {git} "$@"
"""


class StandInGit:
    """The stand-in of one repository; `work.env` has its folder first on PATH."""

    def __init__(self, work: GitWork) -> None:
        real = shutil.which("git")
        assert real is not None
        self._tools = work.tools
        self._folder = work.home / "bin"
        self._folder.mkdir(exist_ok=True)
        program = self._folder / "git"
        program.write_text(_GIT.replace("{git}", real))
        program.chmod(0o755)
        work.env["PATH"] = f"{self._folder}:{Path(real).parent}:/usr/bin:/bin"

    def calls(self) -> list[str]:
        """Return the commands since the last call, in their order."""
        file = self._tools / "calls"
        found = file.read_text().split() if file.exists() else []
        file.unlink(missing_ok=True)
        return found

    def hang_at(self, command: str, number: int = 1, *, stubborn: bool = False) -> None:
        """Hang from that call of the command on; a stubborn git ignores SIGTERM."""
        for name in ("seen", "hung"):
            (self._tools / name).unlink(missing_ok=True)
        manner = "stubborn" if stubborn else "obedient"
        (self._tools / "wish").write_text(f"{command} {number} {manner}\n")

    def wait_until_it_hangs(self, timeout: float = 120) -> int:
        """Return the pid of the git that hangs."""
        return int(wait_for(self._tools / "hung", timeout=timeout))

    def hangs(self) -> bool:
        """Return whether a git hangs now."""
        try:
            return bool((self._tools / "hung").read_text())
        except FileNotFoundError:
            return False
