"""A home, a work tree and things outside, for a hostile agent; and one run of rooda with it."""

import json
import os
import platform
import pty
import secrets
import shutil
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from rooda.world.state.folder import StateFolder
from support.children import until
from support.sandboxes import packages, python_of, require_bwrap
from support.states import state_of

AGENT = Path(__file__).with_name("escapes")
_NUMBER = 54321  # the user and group of an ordinary user
_KEYCTL = {"x86_64": (250, 248), "aarch64": (219, 217)}  # keyctl, add_key
_LAUNCHER = """\
import ctypes, fcntl, os, sys, termios
libc = ctypes.CDLL(None)
if os.isatty(0):
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
key, value, number, folder, *command = sys.argv[1:]
libc.syscall(int(number), b"user", key.encode(), value.encode(), len(value), ctypes.c_int(-3))
os.set_inheritable(os.open(folder, os.O_RDONLY), True)
os.execv(command[0], command)
"""
SECRETS = (
    *(".ssh/id_rsa", ".aws/credentials", ".netrc", ".docker/config.json", ".gnupg/key"),
    *(".git-credentials", ".config/gh/hosts.yml", ".bash_history", ".kube/config", ".pgpass"),
    *(".claude.json", ".claude/settings.json", ".claude/.credentials.json", ".codex/auth.json"),
    *(".codex/config.toml", ".gemini/settings.json", ".config/opencode/opencode.json"),
    *(".gitconfig", ".cargo/credentials.toml", ".npmrc", ".local/share/uv/credentials/x"),
)
TOOLCHAINS = (".local/bin", ".cargo/bin")
# Programs outside execute or obey these.
GUARDED = (
    *(".git/config", ".git/hooks/pre-commit", ".git/hooks/pre-push", ".git/info/exclude"),
    *(".git/modules/sub/config", ".git/modules/sub/hooks/x", ".git/modules/sub/info/exclude"),
    *(".git/commondir", ".git/modules/sub/commondir", "rooda-config.yml", ".mcp.json", "sub/.git"),
)
ABSENT = (
    *(".git/hooks/new", ".git/info/attributes", ".git/objects/info/alternates"),
    *(".git/modules/sub/hooks/new", ".git/modules/sub/objects/info/alternates"),
)
# Tries that change nothing, and that work without a sandbox.
HARMLESS = (
    *("read a secret: .ssh/id_rsa", "abstract socket", "socket: of the ssh agent"),
    *("socket: in the home", "socket: in the temporary folder", "shared memory"),
    *("environment of all processes", "variables that name sockets", "inherited descriptors"),
    *("see a process outside", "follow a link for reading"),
)
FIXED = (
    *(".git", ".git/objects", ".git/objects/info", ".git/hooks", ".git/info", ".git/modules"),
    *(".git/modules/sub", ".git/modules/sub/objects", "sub"),
)


class Listener:
    """A socket outside that counts who connects."""

    def __init__(self, address: str | bytes) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(address)
        self._socket.listen()
        if isinstance(address, str):
            Path(address).chmod(0o777)
        self.connections = 0
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                self._socket.accept()[0].close()
                self.connections += 1

    def close(self) -> None:
        self._socket.close()


@dataclass
class World:
    """What there is outside of the sandbox, and what came of the run."""

    base: Path
    token: str  # in every secret
    before: tuple[str, ...]  # makes a command run as the user
    python: tuple[str, ...]  # an interpreter that the user can start, with rooda
    number: int  # of the user
    listeners: dict[str, Listener] = field(default_factory=dict)
    victim: subprocess.Popen[bytes] | None = None
    contents: Mapping[str, bytes] = field(default_factory=dict)
    output: str = ""
    code: int | None = None
    results: dict[str, dict[str, str]] = field(default_factory=dict)
    control: dict[str, dict[str, str]] = field(default_factory=dict)  # without a sandbox

    @property
    def tree(self) -> Path:
        return self.base / "work"

    @property
    def home(self) -> Path:
        return self.base / "home"

    @property
    def outside(self) -> Path:
        return self.base / "outside"

    @property
    def state(self) -> StateFolder:
        """The state folder of the work tree."""
        return state_of(self.tree, self.environ)

    @property
    def environ(self) -> dict[str, str]:
        return {
            "PATH": f"{self.home}/.local/bin:{self.home}/.cargo/bin:/usr/local/bin:/usr/bin:/bin",
            "HOME": str(self.home),
            "PYTHONPATH": packages(),
            "SECRET_TOKEN": self.token,
            "AWS_SECRET_ACCESS_KEY": self.token,
            "SSH_AUTH_SOCK": str(self.outside / "agent.sock"),
            "DBUS_SESSION_BUS_ADDRESS": f"unix:path={self.outside}/agent.sock",
            "DBUS_SYSTEM_BUS_ADDRESS": "unix:path=/nowhere",
            "DOCKER_HOST": f"unix://{self.outside}/agent.sock",
            "DISPLAY": ":0",
            "TERM": "xterm",
        }

    def sh(self, script: str, *, folder: Path | None = None) -> str:
        """Run a script outside, as the user. Each command must succeed."""
        done = subprocess.run(
            [*self.before, "sh", "-ec", script],
            cwd=folder or self.tree,
            env=self.environ,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def files(self) -> dict[str, bytes]:
        """Return the content of everything that must not change, by its path."""
        private = self.home / ".local/state"
        found: dict[str, bytes] = {}
        for top in (self.home, self.outside):
            for path in top.rglob("*"):
                if path.is_relative_to(private) or path.is_relative_to(self.outside / "remote"):
                    continue
                if path.is_file() and not path.is_symlink():
                    found[str(path)] = path.read_bytes()
                else:
                    found[str(path)] = b"link" if path.is_symlink() else b"folder"
        for name in GUARDED:
            if not name.endswith("commondir"):  # rooda makes and deletes these
                found[name] = (self.tree / name).read_bytes()
        return found


@contextmanager
def world(user: str) -> Iterator[World]:
    """Make a world for `root` or `user`, run the hostile agent in it twice, and stop the rest."""
    require_bwrap()
    is_root = os.geteuid() == 0
    if user == "root" and not is_root:
        pytest.skip("the tests do not run as root")
    before: tuple[str, ...] = ()
    if user == "user" and is_root:
        words = f"--reuid={_NUMBER} --regid={_NUMBER} --clear-groups --inh-caps=-all"
        # setpriv itself can still start programs that only root can read.
        before = ("setpriv", *words.split(), "env")
    with ExitStack() as closing:
        base = Path(closing.enter_context(tempfile.TemporaryDirectory(prefix="rooda-escape-")))
        number = _NUMBER if before else os.geteuid()
        found = World(base, secrets.token_hex(12), before, (python_of(before),), number)
        _fill(found, closing)
        found.contents = found.files()
        _try_without_sandbox(found)
        _run(found)
        yield found


def _fill(world: World, closing: ExitStack) -> None:
    base = world.base
    base.chmod(0o755)
    for folder in (world.tree, world.home, world.outside):
        folder.mkdir()
    for name in SECRETS:
        path = world.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# {world.token}\n")
    (world.home / ".gitconfig").write_text(
        f"[user]\n\tname = A\n\temail = a@example.org\n[http]\n\textraHeader = {world.token}\n"
        '[protocol "file"]\n\tallow = always\n'
    )
    for name in TOOLCHAINS:
        (world.home / name).mkdir(parents=True, exist_ok=True)
        tool = world.home / name / "tool"
        tool.write_text("#!/bin/sh\n")
        tool.chmod(0o755)
    (world.outside / "canary").write_text(f"{world.token}\n")
    agent = world.tree / "agent"
    shutil.copytree(AGENT, agent / "support/escapes", ignore=shutil.ignore_patterns("__pycache__"))
    (agent / "run.py").write_text("from support.escapes.hostile_agent import main\n\nmain()\n")
    (base / "prompt.md").write_text("do it\n")
    if world.before:
        for path in (base, *base.rglob("*")):
            os.chown(path, world.number, world.number, follow_symlinks=False)
    world.home.chmod(0o700)
    _fill_tree(world)
    places = {
        "of the ssh agent": str(world.outside / "agent.sock"),
        "in the home": str(world.home / "s.sock"),
        "in the temporary folder": f"{tempfile.gettempdir()}/rooda-{world.token}.sock",
    }
    for name, address in places.items():
        world.listeners[name] = listener = Listener(address)
        closing.callback(Path(address).unlink, missing_ok=True)
        closing.callback(listener.close)
    world.listeners["abstract"] = Listener(f"\0rooda-{world.token}".encode())
    closing.callback(world.listeners["abstract"].close)
    shared = Path("/dev/shm") / f"rooda-{base.name}"
    shared.write_text(world.token)
    shared.chmod(0o644)
    closing.callback(shared.unlink)
    world.victim = subprocess.Popen([*world.before, "sleep", "600"], env=world.environ)
    closing.callback(world.victim.wait)
    closing.callback(world.victim.kill)
    facts = {
        "tree": str(world.tree),
        "home": str(world.home),
        "outside": str(world.outside),
        "state": str(world.state),
        "secrets": SECRETS,
        "guarded": GUARDED,
        "absent": ABSENT,
        "fixed": FIXED,
        "toolchains": TOOLCHAINS,
        "victim": world.victim.pid,
        "key": f"rooda-{base.name}",
        "keyctl": _KEYCTL.get(platform.machine(), (0, 0))[0],
        "shared": shared.name,
        "abstract": f"rooda-{world.token}",
        "sockets": places,
    }
    # The token would be in the results: the agent must not know it.
    text = json.dumps(facts).replace(world.token, "TOKEN")
    (world.tree / "facts.json").write_text(text)
    (world.tree / "token.json").write_text(json.dumps(world.token[::-1]))
    for name in ("facts.json", "token.json"):
        os.chown(world.tree / name, world.number, world.number)


def _fill_tree(world: World) -> None:
    hook = (
        f"#!/bin/sh\\ntouch {world.outside}/$(basename $0) 2>/dev/null; touch ran-$(basename $0)\\n"
    )
    world.sh(
        f"""
        git init -q -b main . ; git init -q --bare {world.outside}/remote
        git init -q ../sub-origin; cd ../sub-origin; git commit -q --allow-empty -m sub; cd -
        git submodule add -q ../sub-origin sub 2>/dev/null
        printf 'loop: {{}}\\n' > rooda-config.yml; echo '{{}}' > .mcp.json
        ln -s {world.outside}/canary link-to-canary; ln -s {world.outside} link-to-folder
        git add -A; git commit -q -m start; git remote add origin {world.outside}/remote
        git push -q -u origin main; mkdir -p .git/hooks .git/modules/sub/hooks
        for name in pre-commit pre-push post-commit reference-transaction; do
          printf '{hook}' > .git/hooks/$name; chmod +x .git/hooks/$name
        done
        cp .git/hooks/pre-commit .git/modules/sub/hooks/x
        mkdir -p .git/info .git/modules/sub/info
        touch .git/info/exclude .git/modules/sub/info/exclude
        """
    )


def _launcher(world: World) -> list[str]:
    """Return the words that start a program with a secret key and an open folder."""
    add_key = str(_KEYCTL.get(platform.machine(), (0, 0))[1])
    name = f"rooda-{world.base.name}"
    return [*world.before, *world.python, "-c", _LAUNCHER, name, world.token, add_key]


def _try_without_sandbox(world: World) -> None:
    """Make the tries that change nothing without a sandbox, to show that they are real ones."""
    agent = [*world.python, str(world.tree / "agent/run.py"), *HARMLESS]
    done = subprocess.run(
        [*_launcher(world), str(world.outside), *agent],
        cwd=world.tree,
        env=world.environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    world.control = {one["name"]: one for one in map(json.loads, done.stdout.splitlines())}
    for listener in world.listeners.values():
        until(lambda listener=listener: listener.connections > 0, "a connection")  # type: ignore[misc]
        listener.connections = 0


def _run(world: World) -> None:
    """Run rooda with a terminal, as a user does, with a secret key and an open folder."""
    (interpreter,) = world.python
    rooda = [
        *(interpreter, "-m", "rooda", "loop", str(world.base / "prompt.md"), "-n", "2"),
        *("--sandbox", "bwrap", "--commit", "--push", "--verify", "touch ran-verify"),
        *("--ai-cmd", f"{interpreter} {world.tree}/agent/run.py"),
    ]
    main, terminal = pty.openpty()
    os.fchmod(terminal, 0o666)
    process = subprocess.Popen(
        [*_launcher(world), str(world.outside), *rooda],
        cwd=world.tree,
        env=world.environ,
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        start_new_session=True,
    )
    os.close(terminal)
    pieces: list[bytes] = []
    with suppress(OSError):
        while piece := os.read(main, 65536):
            pieces.append(piece)
    os.close(main)
    world.code = process.wait(timeout=120)
    world.output = b"".join(pieces).decode("utf-8", "replace")
    for number in (1, 2):
        path = world.tree / f"results-{number}.jsonl"
        for line in path.read_text().splitlines() if path.exists() else ():
            result = json.loads(line)
            world.results[result["name"]] = result
