"""Sandboxes for tests: a shell command in the sandbox of a work tree, with a warden and without."""

import atexit
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from rooda.base.event import Event
from rooda.world.agents.facts import SandboxNeeds
from rooda.world.process.interrupts import Interrupts
from rooda.world.process.request import ProcessRequest, ProcessResult
from rooda.world.process.runner import Runner
from rooda.world.sandbox.probe import try_bwrap
from rooda.world.sandbox.sandbox import Sandbox
from rooda.world.sandbox.sandbox_plan import SandboxError, SandboxKind, SandboxPlan
from rooda.world.tools import Tools
from support.states import state_of

_SOURCE = Path(__file__).parents[2] / "src"
_LIBRARIES = ("click", "msgspec", "yaml", "jinja2", "markupsafe", "tomlkit")
_NUMBER = 54321  # an ordinary user, and a group
# Without this folder, a user can't enter the folders of pytest.
_ORDINARY = f"--reuid={_NUMBER} --regid={_NUMBER} --clear-groups --inh-caps=-all"


@cache
def _trouble() -> str:
    try:
        try_bwrap(Tools())
    except SandboxError as error:
        return str(error)
    return ""


def require_bwrap() -> None:
    """Skip the test where bubblewrap does not work; in CI that is a failure."""
    if not (trouble := _trouble()):
        return
    if os.environ.get("ROODA_NEEDS_SANDBOX"):
        pytest.fail(trouble)
    pytest.skip(trouble)


@dataclass
class Inside:
    """The sandbox of a folder, and what happens to the programs in it."""

    tree: Path
    home: Path
    environ: dict[str, str]
    events: list[Event] = field(default_factory=list)
    runner: Runner = field(default_factory=Runner)

    def plan(self, **more: Any) -> SandboxPlan:
        return SandboxPlan(
            kind=more.pop("kind", SandboxKind.BWRAP),
            tree=self.tree,
            folders=(self.tree,),
            home=self.home,
            state=more.pop("state", state_of(self.tree)),
            outside=self.environ,
            tools=Tools(self.environ, [self.tree]),
            **more,
        )

    @contextmanager
    def sandbox(self, **more: Any) -> Iterator[Sandbox]:
        found = Sandbox.of(self.plan(**more))
        try:
            yield found
        finally:
            found.close()

    def sh(self, script: str, needs: SandboxNeeds = SandboxNeeds(), **more: Any) -> str:  # noqa: B008
        """Run a shell command in a new sandbox; return what it prints on both streams."""
        with self.sandbox(**more) as sandbox:
            wrapped = sandbox.wrap(("sh", "-c", script), self.tree, self.environ, needs)
            return printed_by(wrapped.argv, None, wrapped.environ)

    def run(self, argv: Sequence[str], sandbox: Sandbox, **more: Any) -> ProcessResult:
        """Run a program to its end as rooda does, with a warden."""
        wrapped = sandbox.wrap(argv, self.tree, self.environ)
        with Path(os.devnull).open("rb") as nothing, self.runner:
            request = ProcessRequest(
                argv=wrapped.program,
                cwd=self.tree,
                environ=wrapped.environ,
                stdin=nothing,
                output_limit=100_000,
                jail=more.pop("jail", wrapped.jail),
                **more,
            )
            return self.runner.run(request, Interrupts(), self.events.append)


@dataclass(frozen=True)
class OrdinaryUser:
    """A user other than root, who can start rooda."""

    before: tuple[str, ...]
    folder: Path
    python: str

    def rooda(self, *args: str) -> subprocess.CompletedProcess[str]:
        code = "import sys; from rooda.front.cli.main import main; sys.exit(main())"
        return subprocess.run(
            [*self.before, self.python, "-c", code, *args],
            cwd=self.folder / "work",
            env=_environ(self.folder / "home"),
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    def sh(self, script: str) -> None:
        subprocess.run(
            [*self.before, "sh", "-ec", script],
            cwd=self.folder / "work",
            env=_environ(self.folder / "home"),
            check=True,
            timeout=60,
        )


def _environ(home: Path) -> Mapping[str, str]:
    path = "/usr/local/bin:/usr/bin:/bin"
    return {"PYTHONPATH": packages(), "PATH": path, "HOME": str(home)}


def packages() -> str:
    """Return a PYTHONPATH with rooda and what it needs."""
    return _COPIED[0] if _COPIED else f"{_SOURCE}:{sysconfig.get_path('purelib')}"


_COPIED: list[str] = []


def _copy_packages() -> None:
    """Copy rooda and what it needs to where every user can read it: a clone may be private."""
    folder = Path(tempfile.mkdtemp(prefix="rooda-packages-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    folder.chmod(0o755)
    libraries = Path(sysconfig.get_path("purelib"))
    for source in (_SOURCE / "rooda", *(libraries / name for name in _LIBRARIES)):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(source, folder / source.name, ignore=ignored)
    for path in folder.rglob("*"):
        path.chmod(path.stat().st_mode | (0o755 if path.is_dir() else 0o444))
    _COPIED.append(str(folder))


def python_of(before: Sequence[str]) -> str:
    """Return an interpreter that another user can start: root's may be in the home of root."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    for _ in range(2):
        for path in (sys.executable, f"/usr/bin/python{version}"):
            command = [*before, path, "-c", "import rooda.run.start"]
            with suppress(OSError):
                environ = _environ(Path("/"))
                done = subprocess.run(
                    command, env=environ, cwd="/", capture_output=True, check=False
                )
                if done.returncode == 0:
                    return path
        if not _COPIED:
            _copy_packages()
    pytest.skip("an ordinary user can start no Python that has the packages of rooda")


def ordinary_user(folder: Path) -> OrdinaryUser:
    """Return a user and the empty folders `work` and `home`; the test must run as root."""
    if os.geteuid() != 0:
        pytest.skip("only root can change the user")
    before = ("setpriv", *_ORDINARY.split(), "env")
    for path in (folder, folder / "work", folder / "home"):
        path.mkdir(exist_ok=True)
        os.chown(path, _NUMBER, _NUMBER)
    return OrdinaryUser(before, folder, python_of(before))


def until_gone(words: str, timeout: float = 10) -> None:
    """Wait until no process has these words in its command line."""
    end = time.monotonic() + timeout
    while left := _with_words(words):
        assert time.monotonic() < end, f"still there: {left}"
        time.sleep(0.02)


def _with_words(words: str) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            line = path.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
            if words in line and path.parent.name != str(os.getpid()):
                found.append(line)
    return found


def printed_by(argv: Sequence[str], cwd: Path | None, environ: Mapping[str, str]) -> str:
    """Return what a command prints on both streams."""
    done = subprocess.run(
        argv,
        cwd=cwd,
        env=dict(environ),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=60,
    )
    return done.stdout.strip()
