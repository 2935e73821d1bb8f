"""A storm for a fleet: kills, freezes, partitions and outages, in an order that a seed decides."""

import contextlib
import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
from msgspec import Struct

from rooda.fleet.slot.slot import slots_root
from support.fleet import Fleet, rooda_in
from support.postgres import Postgres
from support.socket_proxy import SocketProxy

# What is put in place of a folder that was deleted: words for the shell.
_REPLACEMENTS = {
    "a link": 'ln -s "$repo" "$path"',
    "a file": 'echo x > "$path"',
    "a locked folder": 'mkdir "$path"; chmod 000 "$path"',
    "a repository": 'case "$path" in *.git) path="${path%/.git}";; esac; git init -q "$path"',
    "a clone": 'git clone -q "$repo" "$path.new"; case "$path" in *.git) '
    'mv "$path.new/.git" "$path"; rm -rf "$path.new";; *) mv "$path.new" "$path";; esac',
}
TTL = 2.0
MARK = "ROODA_STORM"
_GONE = (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess, ProcessLookupError)
_MOST_CLAIMS = 1000  # a storm kills one iteration more often than bad luck does


class Later(Struct, frozen=True):
    """What ends a trouble, and when."""

    moment: float
    act: Callable[[], object]


class Storm:
    """Slot processes that are kept alive, and the troubles that they meet."""

    def __init__(
        self,
        fleet: Fleet,
        seed: int,
        slots: int,
        server: Postgres | None,
        *,
        deletes_only: bool = False,
    ) -> None:
        self.fleet = fleet
        self._deletes_only = deletes_only
        self.story: list[str] = []
        self.has_failed_iterations = False  # its agent died, or git was away when rooda committed
        self._random = random.Random(seed)
        self._mark = str(fleet.folder)
        self._server = server
        self._proxies = [self._proxy(number) for number in range(1, slots + 1)] if server else []
        self._slots: list[subprocess.Popen[bytes]] = []
        self._later: list[Later] = []
        self._began = time.monotonic()
        self._slots = [self._start(number) for number in range(1, slots + 1)]

    def _proxy(self, number: int) -> SocketProxy:
        folder = self.fleet.folder / f"p{number}"
        return SocketProxy(folder, self.fleet.url)

    def _start(self, number: int) -> subprocess.Popen[bytes]:
        url = self._proxies[number - 1].url if self._proxies else None
        return self.fleet.start_slot(
            number, TTL, {MARK: self._mark}, url=url, most_claims=_MOST_CLAIMS
        )

    # -- the course of the storm -----------------------------------------------------------

    def rage(self, seconds: float) -> None:
        """Make trouble for so many seconds, or until all runs have ended."""
        end = time.monotonic() + seconds
        next_trouble = time.monotonic() + 1.0
        while time.monotonic() < end and not self._is_over():
            self._keep()
            if time.monotonic() >= next_trouble:
                self._trouble()
                next_trouble = time.monotonic() + self._random.uniform(0.2, 1.8)
            time.sleep(0.05)

    def calm(self, timeout: float) -> None:
        """End every trouble; wait until all runs have ended."""
        for later in self._later:
            later.act()
        self._later = []
        self._tell("calm")
        end = time.monotonic() + timeout
        while not self._is_over():
            assert time.monotonic() < end, self.told()
            self._keep()
            time.sleep(0.1)

    def close(self) -> None:
        """End every trouble and every process."""
        for later in self._later:
            later.act()
        for proxy in self._proxies:
            proxy.close()

    def told(self) -> str:
        """What happened, for a person who looks at a storm that failed."""
        return "\n".join([*self.story, self.fleet.story()])

    def left_over(self) -> list[str]:
        """The processes of the storm that are still there."""
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(*_GONE):
                if process.environ().get(MARK) == self._mark:
                    found.append(f"{process.pid} {process.cmdline()}")
        return found

    def _is_over(self) -> bool:
        if self._later:  # the database or the repository may be away
            return False
        return all(run.state.is_end for run in self.fleet.store.runs(self.fleet.project))

    def _keep(self) -> None:
        """Start slots again that ended, and end troubles whose time is over."""
        now = time.monotonic()
        due = [later for later in self._later if later.moment <= now]
        self._later = [later for later in self._later if later.moment > now]
        for later in due:
            later.act()
        for place, process in enumerate(self._slots):
            if process.poll() is not None:
                self._tell(f"slot {place + 1} ended with {process.returncode}, and starts again")
                self._slots[place] = self._start(place + 1)

    def _tell(self, words: str) -> None:
        self.story.append(f"{time.monotonic() - self._began:6.2f} s: {words}")

    # -- troubles --------------------------------------------------------------------------

    def _trouble(self) -> None:
        deletions = [self._delete_part, self._delete_part, self._move_away, self._delete_slot]
        if self._deletes_only:
            self._random.choice([*deletions, self._kill_rooda])()
            return
        troubles = [
            *deletions,
            *(self._kill_slot, self._kill_rooda, self._kill_agent, self._kill_tree),
            *(self._kill_one, self._kill_rooda),
            *(self._freeze_slot, self._freeze_tree, self._hide_repository),
        ]
        if self._server is not None:
            troubles += [self._restart_server, self._halt_server, self._part, self._part]
        self._random.choice(troubles)()

    def _tree(self) -> tuple[int, list[psutil.Process]]:
        """A slot, and its processes from the slot process down to the agent."""
        number = self._random.randrange(len(self._slots)) + 1
        with contextlib.suppress(*_GONE):
            top = psutil.Process(self._slots[number - 1].pid)
            return number, [top, *top.children(recursive=True)]
        return number, []

    def _busy_tree(self) -> tuple[int, list[psutil.Process]]:
        """A slot with an iteration at work, if there is one."""
        number, tree = self._tree()
        for _ in range(10):
            with contextlib.suppress(*_GONE):
                if rooda_in(tree):
                    break
            number, tree = self._tree()
        return number, tree

    def _signal(self, what: str, number: int, chosen: list[psutil.Process], kind: int) -> None:
        self._tell(f"{what} of slot {number}: {[one.pid for one in chosen]}")
        for process in chosen:
            with contextlib.suppress(*_GONE):
                process.send_signal(kind)

    def _kill_slot(self) -> None:
        number, tree = self._tree()
        self._signal("kill the slot process", number, tree[:1], signal.SIGKILL)

    def _kill_rooda(self) -> None:
        number, tree = self._busy_tree()
        with contextlib.suppress(*_GONE):
            self._signal("kill rooda", number, rooda_in(tree), signal.SIGKILL)

    def _kill_one(self) -> None:
        """Kill a warden, the agent, or a git command."""
        number, tree = self._tree()
        self.has_failed_iterations = True
        self._signal("kill one", number, self._random.sample(tree, bool(tree)), signal.SIGKILL)

    def _kill_agent(self) -> None:
        number, tree = self._busy_tree()
        with contextlib.suppress(*_GONE):
            self.has_failed_iterations = True
            agents = [one for one in tree if "agent-" in " ".join(one.cmdline()[:2])]
            self._signal("kill the agent", number, agents, signal.SIGKILL)

    def _kill_tree(self) -> None:
        number, tree = self._tree()
        self._signal("kill all", number, tree, signal.SIGKILL)

    def _freeze_slot(self) -> None:
        number, tree = self._tree()
        self._freeze("freeze the slot process", number, tree[:1])

    def _freeze_tree(self) -> None:
        number, tree = self._tree()
        self._freeze("freeze all", number, tree)

    def _freeze(self, what: str, number: int, chosen: list[psutil.Process]) -> None:
        self._signal(what, number, chosen, signal.SIGSTOP)
        self._in_a_while(lambda: self._signal("wake", number, chosen, signal.SIGCONT))

    def _delete_part(self) -> None:
        """Delete a work tree, its repository or a record, and perhaps put something else there."""
        number, _ = self._busy_tree()
        part = self._random.choice(["work", "work/.git", "record"])
        new = self._random.choice(["nothing", "nothing", *_REPLACEMENTS])
        self._tell(f"delete {part} of slot {number}, and put {new} there")
        path = self._folder(number) / part
        self._remove(path)
        self._replace(path, new)

    def _replace(self, path: Path, new: str) -> None:
        words = _REPLACEMENTS.get(new)
        if words is not None and path.parent.is_dir():
            variables = {"path": str(path), "repo": str(self.fleet.repo)}
            environ = self.fleet.environ(**variables)
            subprocess.run(["sh", "-c", words], env=environ, check=False, capture_output=True)

    def _move_away(self) -> None:
        """Move a folder of a slot away, and back if nothing else is there by then."""
        number, _ = self._busy_tree()
        part = self._random.choice(["work", "work/.git", "record", ""])
        self.has_failed_iterations = True
        path, aside = self._folder(number) / part, self.fleet.folder / f"away-{len(self.story)}"
        self._tell(f"move {part or 'the folder'} of slot {number} away")
        with contextlib.suppress(OSError):
            path.rename(aside)

        def move_back() -> None:
            self._tell(f"move {part or 'the folder'} of slot {number} back")
            if not path.exists():
                with contextlib.suppress(OSError):
                    aside.rename(path)

        self._in_a_while(move_back)

    def _delete_slot(self) -> None:
        number, _ = self._busy_tree()
        new = self._random.choice(["nothing", "nothing", "a link", "a repository"])
        self._tell(f"delete the folder of slot {number}, and put {new} there")
        self._remove(self._folder(number))
        self._replace(self._folder(number), new)

    def _folder(self, number: int) -> Path:
        cache = self.fleet.folder / "cache"
        return slots_root({"XDG_CACHE_HOME": str(cache)}) / self.fleet.project / str(number)

    def _remove(self, path: Path) -> None:
        """Delete a folder at one moment, or file by file."""
        if self._random.random() < 0.5:
            aside = self.fleet.folder / f"deleted-{len(self.story)}"
            with contextlib.suppress(OSError):
                path.rename(aside)
            path = aside
        shutil.rmtree(path, ignore_errors=True)

    def _hide_repository(self) -> None:
        place, hidden = self.fleet.repo / ".git", self.fleet.repo / ".hidden"
        if hidden.exists():
            return
        self._tell("the repository is away")
        place.rename(hidden)

        def bring_back() -> None:
            self._tell("the repository is back")
            hidden.rename(place)

        self._in_a_while(bring_back)

    def _restart_server(self) -> None:
        assert self._server is not None
        if self._server.is_halted:
            return
        self._tell("the database starts again")
        self._server.restart()

    def _halt_server(self) -> None:
        server = self._server
        assert server is not None
        if server.is_halted:
            return
        self._tell("the database halts")
        server.halt()

        def go_on() -> None:
            self._tell("the database goes on")
            server.go_on()

        self._in_a_while(go_on)

    def _part(self) -> None:
        number = self._random.randrange(len(self._slots)) + 1
        proxy = self._proxies[number - 1]
        if proxy.is_cut:
            return
        silently = self._random.random() < 0.5
        self._tell(f"slot {number} is cut off from the database{' silently' * silently}")
        proxy.cut(silently=silently)

        def mend() -> None:
            self._tell(f"slot {number} reaches the database again")
            proxy.mend()

        self._in_a_while(mend)

    def _in_a_while(self, act: Callable[[], object]) -> None:
        """End a trouble after less than a TTL, or after some TTLs."""
        seconds = self._random.choice([0.3, 0.7, 1.5, 3.0]) * TTL
        self._later.append(Later(time.monotonic() + seconds, act))


@contextlib.contextmanager
def storm_at(
    folder: Path, url: str, server: Postgres | None, seed: int, *, deletes_only: bool = False
) -> Iterator[Storm]:
    """Yield a storm in a new fleet; end both afterwards."""
    fleet = Fleet(folder, url)
    storm = Storm(fleet, seed, 3, server, deletes_only=deletes_only)
    try:
        yield storm
    finally:
        storm.close()
        fleet.close()


def is_gone(pid: int) -> bool:
    """Whether a process has ended."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
