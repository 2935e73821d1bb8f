"""The private folder of one trial: a work tree, a home folder, an agent, and real runs of rooda.

Nothing of the user takes part: no config, no project, no record, no home folder. A run ends with
the self-test, however that ends: it hangs on a pipe of the self-test (`--lifeline`).
"""

import contextlib
import fcntl
import os
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import msgspec

from rooda.front.demo.demo_repository import environment, own_command
from rooda.front.selftest.misbehaviour import Kept
from rooda.front.selftest.trial import Evidence
from rooda.run.outcome import RunOutcome
from rooda.world.state.folder import StateFolder, place_of
from rooda.world.state.home import VARIABLE, state_folder_at

# Finds processes that an agent of the self-test, or of the kill matrix, has left behind.


_MARK = "ROODA_RUN"
_PROC = Path("/proc")


def survivors(folder: Path) -> list[str]:
    """The running processes of an agent of this folder, found by pid, mark, cwd and lock."""
    found = [f"{why}: pid {pid}" for pid, why in (*_recorded(folder), *_found(folder))]
    return found if _is_free(folder / "tree.lock") else [*found, "a process holds tree.lock"]


def end_all(folder: Path, patience: float = 10) -> None:
    """Kill all processes of the agent, to clean up after a test or a trial."""
    (folder / "stop").write_text("now")
    end = time.monotonic() + patience
    while survivors(folder) and time.monotonic() < end:
        for pid, _ in (*_recorded(folder), *_found(folder)):
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)


def record(folder: Path, name: str) -> tuple[int, int]:
    """Return pid and start time of a process that the agent has recorded."""
    pid, started = (folder / f"{name}.pid").read_text().split()
    return int(pid), int(started)


def is_alive(pid: int, started: int) -> bool:
    """Whether this process is running: not a zombie, and no later process with the same pid."""
    if not _PROC.joinpath("self").exists():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, 0)
            return True
        return False
    fields = _stat(pid)
    return bool(fields) and fields[0] not in "ZX" and int(fields[19]) == started


def _recorded(folder: Path) -> Iterator[tuple[int, str]]:
    for file in folder.glob("*.pid"):
        pid, started = record(folder, file.stem)
        if is_alive(pid, started):
            yield pid, file.stem


def _is_free(lock: Path) -> bool:
    """Whether all processes that inherited the lock are gone: no fork can outrun this check."""
    try:
        with lock.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return True
    except BlockingIOError:
        return False
    return True


def _found(folder: Path) -> Iterator[tuple[int, str]]:
    """All processes with the mark of the run, or with their cwd in the folder (Linux)."""
    mark = folder / "mark"
    wanted = os.fsencode(f"{_MARK}={mark.read_text()}") if mark.exists() else None
    pids = [int(file.name) for file in _PROC.glob("[0-9]*")]
    for pid in pids:
        if pid == os.getpid() or (_stat(pid) or "Z")[0] in "ZX":
            continue
        with contextlib.suppress(OSError):
            if wanted in (_PROC / str(pid) / "environ").read_bytes().split(b"\0"):
                yield pid, "has the mark of the run"
                continue
            if (_PROC / str(pid) / "cwd").readlink().is_relative_to(folder.resolve()):
                yield pid, "is in the folder"


def _stat(pid: int) -> list[str]:
    try:
        return (_PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return []


PATIENCE = 90.0  # seconds for a sign; a loaded machine takes long, and that breaks no promise
GRACE = "0.5s"  # between SIGTERM and SIGKILL
_PAUSE = 0.01
_TOO_SLOW = 5.0  # seconds for `rooda version`, which takes about 0.1
_SHOWN = 4000  # characters of the log that are evidence
_READY = "ready"
_PROMPT = "PROMPT.md"
# Short limits would make the trial of a slow machine fail before the agent misbehaves at all.
_LIMITS = (2.0, 15.0, 60.0)
# Variables of the user that would lead rooda, git or the agent out of the scratch folder.
_DROPPED = ("XDG_", "CI", "NO_COLOR", "PYTHONSTARTUP")


class Canceled(Exception):  # noqa: N818 - it says what happened
    """The user has interrupted the self-test."""


class TrialFailed(Exception):  # noqa: N818 - likewise
    """The trial could not be carried through; the message says why."""


class Rooda:
    """A rooda that runs."""

    def __init__(self, process: "subprocess.Popen[bytes]", log: Path, lifeline: int | None) -> None:
        self.process = process
        self.began = time.monotonic()
        self._log = log
        self._lifeline = lifeline

    @property
    def log(self) -> str:
        """The end of what rooda has printed."""
        return self._log.read_text(encoding="utf-8", errors="replace")[-_SHOWN:]

    def send(self, number: signal.Signals, *, to_group: bool = False) -> None:
        """Send a signal to rooda, or to its group as a terminal does for Ctrl+C."""
        with contextlib.suppress(ProcessLookupError):
            if to_group:
                os.killpg(self.process.pid, number)
            else:
                self.process.send_signal(number)

    def close(self) -> None:
        """Kill rooda if it runs."""
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        self.process.wait()
        if self._lifeline is not None:
            os.close(self._lifeline)
            self._lifeline = None


class Scratch:
    """The folder of one trial. `template` is a repository to start from, None without git."""

    def __init__(
        self,
        folder: Path,
        template: Path | None,
        canceled: threading.Event,
        environ: Mapping[str, str],
    ) -> None:
        self.folder = folder
        self._template, self._canceled, self._environ = template, canceled, environ
        self._runs: list[Rooda] = []
        self._trees: list[Path] = []
        self.variables: dict[str, str] = {}  # more of them for rooda
        self.home = folder / "home"
        for one in (self.home, folder / "tmp"):
            one.mkdir(parents=True)
        self.new_tree()

    # -- the work tree -----------------------------------------------------------------------

    def new_tree(self) -> None:
        """Make a new work tree, and use it from now on."""
        self.tree = self.folder / f"tree-{len(self._trees) + 1}"
        self._trees.append(self.tree)
        if self._template is None:
            self.tree.mkdir()
        else:
            shutil.copytree(self._template, self.tree, symlinks=True)
        (self.tree / _PROMPT).write_text("Do what you want.\n", encoding="utf-8")

    def python_agent(self, script: str, *words: str) -> tuple[str, ...]:
        """Write the script, and return the flags that make it the agent."""
        file = self.folder / "agent.py"
        file.write_text(script, encoding="utf-8")
        return ("--ai-cmd", shlex.join([sys.executable, "-I", "-S", str(file), *words]))

    def shell_agent(self, *bodies: str) -> tuple[str, ...]:
        """Return the flags for an agent that runs the n-th body at its n-th start."""
        starts = shlex.quote(str(self.folder / "starts"))
        cases = [f"{n}) {body} ;;" for n, body in enumerate(bodies[:-1], 1)]
        lines = (f"echo >> {starts}; case $(($(wc -l < {starts}))) in", *cases)
        text = "\n".join((*lines, f"*) {bodies[-1]} ;;", "esac"))
        return ("--ai-cmd", shlex.join(["sh", "-c", text]))

    @property
    def starts(self) -> int:
        """How often the shell agent was started."""
        with contextlib.suppress(OSError):
            return len((self.folder / "starts").read_bytes())
        return 0

    @property
    def state(self) -> StateFolder:
        """The state folder of the work tree."""
        return state_folder_at(Path(os.path.realpath(self.folder / "state")), self.tree.resolve())

    # -- rooda -------------------------------------------------------------------------------

    def environ(self) -> dict[str, str]:
        """Return the environment of a run: private folders, and nothing that rooda or git read."""
        base = environment(self._environ)
        kept = {name: value for name, value in base.items() if not name.startswith(_DROPPED)}
        return kept | {
            "HOME": str(self.home),
            VARIABLE: str(self.folder / "state"),
            "TMPDIR": str(self.folder / "tmp"),
            "ROODA_CONFIG_HOME": str(self.home / "no-global-config"),
            "ROODA_LOOP_KEEP_AWAKE": "false",
            "GIT_CONFIG_NOSYSTEM": "1",
            "PAGER": "cat",
            **self.variables,
        }

    def start(self, *words: str) -> Rooda:
        """Start a run with the agent of these flags: one iteration, if no flag says otherwise."""
        result = str(self.folder / "result.json")
        flags = ("-n", "1", "--failure-threshold", "1", "--kill-grace", GRACE, "--result", result)
        return self._start("loop", _PROMPT, *flags, *words)

    def resume(self, *words: str) -> Rooda:
        """Resume the last run."""
        return self._start("resume", "--result", str(self.folder / "result.json"), *words)

    def command(self, *words: str) -> Evidence:
        """Run another command of rooda to its end."""
        return self.finish(self._start(*words, has_lifeline=False))

    def _start(self, *words: str, has_lifeline: bool = True) -> Rooda:
        if self._canceled.is_set():
            raise Canceled
        log = self.folder / f"log-{len(self._runs)}.txt"
        reading, writing = os.pipe() if has_lifeline else (None, None)
        flags = () if reading is None else ("--lifeline", str(reading))
        try:
            with log.open("wb") as file:
                process = subprocess.Popen(
                    own_command(*words, *flags),
                    cwd=self.tree,
                    env=self.environ(),
                    stdin=subprocess.DEVNULL,
                    stdout=file,
                    stderr=file,
                    start_new_session=True,
                    pass_fds=() if reading is None else (reading,),
                )
        finally:
            if reading is not None:
                os.close(reading)
        found = Rooda(process, log, writing)
        self._runs.append(found)
        return found

    def finish(self, run: Rooda, **facts: object) -> Evidence:
        """Wait until rooda ends; return what is to be seen then."""
        self.until(lambda: run.process.poll() is not None)
        seconds = time.monotonic() - run.began
        return Evidence(
            code=run.process.poll(),
            seconds=seconds,
            log=run.log,
            survivors=tuple(survivors(self.tree)),
            outcome=self._outcome(),
            facts=dict(facts),
        )

    def _outcome(self) -> RunOutcome | None:
        try:
            text = (self.folder / "result.json").read_bytes()
            return msgspec.json.decode(text, type=RunOutcome)
        except (OSError, msgspec.DecodeError):
            return None

    def missing(self, promised: Kept) -> int:
        """Return how many bytes of the agent's output rooda has not kept as they were."""
        found = self.transcript()
        pairs = ((promised.stdout, found.stdout), (promised.stderr, found.stderr))
        return sum(max(1, len(must) - len(has)) for must, has in pairs if must != has)

    def transcript(self) -> Kept:
        """Return what rooda kept of the output of the first iteration."""
        runs = sorted((self.state / "runs").glob("*"))
        if not runs:
            return Kept(b"", b"")
        place = self.state / place_of(runs[-1].name, 1, 1)
        return Kept(_content(place / "stdout.log"), _content(place / "stderr.log"))

    # -- waiting -----------------------------------------------------------------------------

    def until(self, done: Callable[[], bool]) -> bool:
        """Wait for a sign; return whether it came. Raises Canceled and TrialFailed."""
        end = time.monotonic() + PATIENCE
        while not done():
            if self._canceled.is_set():
                raise Canceled
            if time.monotonic() > end:
                self._check_pace()
                return False
            time.sleep(_PAUSE)
        return True

    def _check_pace(self) -> None:
        """Raise TrialFailed if the machine is so slow that a missing sign means nothing."""
        began = time.monotonic()
        with contextlib.suppress(subprocess.TimeoutExpired):
            subprocess.run(
                own_command("version"),
                env=self.environ(),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
                timeout=PATIENCE,
            )
        if (took := time.monotonic() - began) > _TOO_SLOW:
            raise TrialFailed(f"this machine is too busy: `rooda version` took {took:.0f} s")

    def until_ready(self, run: Rooda) -> None:
        """Wait until the agent misbehaves. Raises TrialFailed if it never does."""
        ready = self.tree / _READY
        self.until(lambda: ready.exists() or run.process.poll() is not None)
        if not ready.exists():
            raise TrialFailed(f"the agent of the trial did not start ({run.log.strip()[-300:]})")

    def until_empty(self) -> tuple[str, ...]:
        """Wait until no process of the agent is left; return those that are."""
        self.until(lambda: not survivors(self.tree))
        return tuple(survivors(self.tree))

    def within_limit(self, flag: str, start: Callable[..., Rooda]) -> Evidence:
        """Run with a time limit that lets the agent get ready, in a new work tree each time."""
        for limit in _LIMITS:
            evidence = self.finish(start(flag, f"{limit}s"))
            if (self.tree / _READY).exists() or evidence.code is None:
                return evidence
            self.new_tree()
        raise TrialFailed(f"the agent of the trial was not ready within {_LIMITS[-1]:.0f} s")

    # -- the end -----------------------------------------------------------------------------

    def remove(self) -> None:
        """Kill what still runs, and delete the folder."""
        for run in self._runs:
            run.close()
        for tree in self._trees:
            if tree.is_dir():
                end_all(tree)
        shutil.rmtree(self.folder, ignore_errors=True)


def _content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:
        return b""


@contextlib.contextmanager
def scratch_folder(
    folder: Path, template: Path | None, canceled: threading.Event
) -> Iterator[Scratch]:
    """Give a trial its folder, and leave nothing of it behind."""
    scratch = Scratch(folder, template, canceled, os.environ)
    try:
        yield scratch
    finally:
        scratch.remove()
