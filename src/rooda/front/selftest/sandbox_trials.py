"""Trials inside the sandbox bwrap: what an agent can't reach, and that it ends as without one."""

import os
import secrets
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from msgspec.structs import replace

from rooda.front.selftest.misbehaviour import ENDS, MISBEHAVIOURS
from rooda.front.selftest.process_trials import misbehave
from rooda.front.selftest.scratch import Scratch
from rooda.front.selftest.trial import (
    NO_CRASH,
    NOTHING_LIVES,
    Claim,
    Evidence,
    Need,
    Trial,
    ends_with,
    fact,
)
from rooda.world.files.beneath import Beneath

_SANDBOX = ("--sandbox", "bwrap")
_VARIABLE = "SELFTEST_TRIAL_VALUE"  # no name that any program knows
_INTERRUPTED = 130
# The agents tell what they got in a file of the work tree. Paths are part of the script: a file
# that the command line names is one that the user lets in.
_TELL = """
import os, signal, socket, time

def tell(text):
    with open("told", "a") as file:
        file.write(text + "\\n")

def done():
    tell("tried")
    print("<promise>SUCCESS</promise>", flush=True)
"""
_WRITE = """
for path in PATHS:
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "a") as file:
            file.write("planted")
    except OSError:
        pass
done()
"""
_READ = """
places = [""] + [f"/proc/{pid}/root" for pid in os.listdir("/proc") if pid.isdigit()]
for place in places:
    for path in PATHS:
        try:
            with open(place + path, errors="replace") as file:
                tell(file.read())
        except OSError:
            pass
done()
"""
_LOOK_AROUND = """
tell(repr(dict(os.environ)))
for pid in os.listdir("/proc"):
    try:
        with open(f"/proc/{pid}/environ", errors="replace") as file:
            tell(file.read())
    except OSError:
        pass
done()
"""
_KILL = """
try:
    os.kill(PID, signal.SIGKILL)
except OSError:
    pass
done()
"""
_CONNECT = """
try:
    with socket.socket(getattr(socket, FAMILY)) as client:
        client.connect(ADDRESS)
        tell("connected")
except OSError:
    pass
done()
"""
# What the agent leaves behind would act outside, when rooda or git goes on with the tree.
_PLANT = """
os.makedirs(".git/logs", exist_ok=True)
for name in (".git/logs/HEAD", ".ralph", "PROMPT.md"):
    try:
        os.unlink(name)
    except OSError:
        pass
os.symlink(TARGET, ".git/logs/HEAD")
os.symlink(os.path.dirname(TARGET), ".ralph")
os.symlink(SECRET, "PROMPT.md")
os.mkfifo(".git/MERGE_MSG")
folder = "deep"
for _ in range(25):
    os.mkdir(folder)
    os.chdir(folder)
    folder = "d" * 200
open("program", "w").close()
os.chmod("program", 0o4755)
os.chdir("..")
os.chmod("d" * 200, 0o311)
os.chdir(TREE)
done()
"""
_CLEAN_UP = """
def clean_up(*_):
    tell("cleaned up")
    os._exit(0)

signal.signal(signal.SIGTERM, clean_up)
open("ready", "w").close()
end = time.monotonic() + 120
while time.monotonic() < end:
    time.sleep(0.5)
"""


def _run(scratch: Scratch, script: str, *flags: str, **values: object) -> tuple[Evidence, str]:
    """Run an agent inside; return the evidence, and what the agent told."""
    run = scratch.start(*_agent(scratch, script, **values), *flags)
    return scratch.finish(run), _told(scratch)


def _agent(scratch: Scratch, script: str, **values: object) -> tuple[str, ...]:
    given = "".join(f"{name} = {value!r}\n" for name, value in values.items())
    return (*scratch.python_agent(_TELL + given + script), *_SANDBOX)


def _told(scratch: Scratch) -> str:
    try:
        return (scratch.tree / "told").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _tried(evidence: Evidence, told: str, name: str, value: str) -> Evidence:
    """Return the evidence with its fact, and with whether the agent has tried at all."""
    tried = "yes" if "tried" in told else "no"
    return replace(evidence, facts={"tried": tried, name: value})


# -- files and variables ---------------------------------------------------------------------


def _writes(scratch: Scratch) -> Evidence:
    git, home = scratch.tree / ".git", scratch.home
    (home / ".profile").write_text("mine\n", encoding="utf-8")
    paths = [home / ".profile", home / "new" / "file", scratch.folder / "beside.txt"]
    paths += [git / "hooks" / "post-commit", git / "config", git / "info" / "attributes"]
    before = _contents(paths)
    state = scratch.state / "planted"
    evidence, told = _run(scratch, _WRITE, PATHS=[str(one) for one in (*paths, state)])
    after = _contents([*paths, state])
    changed = [str(path) for path, content in after.items() if content != before.get(path)]
    return _tried(evidence, told, "outside", ", ".join(changed) or "unchanged")


def _contents(paths: Iterable[Path]) -> dict[Path, bytes | None]:
    return {path: path.read_bytes() if path.exists() else None for path in paths}


def _reads(scratch: Scratch) -> Evidence:
    secret = secrets.token_hex(16)
    paths = [scratch.home / ".ssh" / "id_ed25519", scratch.folder / "beside.txt"]
    for path in paths:
        path.parent.mkdir(exist_ok=True)
        path.write_text(secret, encoding="utf-8")
    evidence, told = _run(scratch, _READ, PATHS=[str(one) for one in paths])
    return _tried(evidence, told, "secret", "read" if secret in told else "hidden")


def _reads_variables(scratch: Scratch) -> Evidence:
    secret = secrets.token_hex(16)
    scratch.variables[_VARIABLE] = secret
    evidence, told = _run(scratch, _LOOK_AROUND)
    return _tried(evidence, told, "secret", "read" if secret in told else "hidden")


def _plants(scratch: Scratch) -> Evidence:
    """The second iteration has the planted files, if nothing holds them."""
    key, profile = scratch.folder / "key", scratch.home / ".profile"
    secret = secrets.token_hex(16)
    key.write_text(secret, encoding="utf-8")
    profile.write_text("mine\n", encoding="utf-8")
    flags = ("-n", "2", "--failure-threshold", "3", "--commit")
    values = {"TARGET": str(profile), "SECRET": str(key), "TREE": str(scratch.tree)}
    evidence, told = _run(scratch, _PLANT, *flags, **values)
    found = []
    if secret in evidence.log or any(secret in one for one in _prompts(scratch)):
        found.append("the key is in a prompt")
    if profile.read_text(encoding="utf-8") != "mine\n":
        found.append("git wrote to ~/.profile")
    if any(status.st_mode & stat.S_ISUID for status in _files_below(scratch.tree)):
        found.append("a program with your rights stays")
    return _tried(evidence, told, "traps", ", ".join(found) or "held")


def _prompts(scratch: Scratch) -> Iterable[str]:
    runs = scratch.state / "runs"
    for file in runs.glob("*/*/prompt.md"):
        yield file.read_text(encoding="utf-8", errors="replace")


def _files_below(tree: Path) -> Iterable[os.stat_result]:
    for listing in Beneath(tree).walk():
        yield from (entry.status for entry in listing.entries)


# -- processes and sockets -------------------------------------------------------------------


def _kills(scratch: Scratch) -> Evidence:
    command = [sys.executable, "-S", "-c", "import time; time.sleep(600)"]
    with subprocess.Popen(command, cwd="/", stdin=subprocess.DEVNULL) as bystander:
        try:
            evidence, told = _run(scratch, _KILL, PID=bystander.pid)
            state = "alive" if bystander.poll() is None else "killed"
        finally:
            bystander.kill()
    return _tried(evidence, told, "bystander", state)


def _connects_abstract(scratch: Scratch) -> Evidence:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"\0rooda-selftest-{secrets.token_hex(8)}")
        return _connected(scratch, server, "AF_UNIX")


def _connects_network(scratch: Scratch) -> Evidence:
    with socket.socket(socket.AF_INET) as server:
        server.bind(("127.0.0.1", 0))
        return _connected(scratch, server, "AF_INET", "--no-sandbox-network")


def _connected(scratch: Scratch, server: socket.socket, family: str, *flags: str) -> Evidence:
    server.listen()
    address = server.getsockname()
    evidence, told = _run(scratch, _CONNECT, *flags, FAMILY=family, ADDRESS=address)
    return _tried(evidence, told, "socket", "reached" if "connected" in told else "out of reach")


def _is_stopped(scratch: Scratch) -> Evidence:
    # A long grace: the agent must get the time to clean up, also on a busy machine.
    run = scratch.start(*_agent(scratch, _CLEAN_UP), "--kill-grace", "30s")
    scratch.until_ready(run)
    run.send(signal.SIGTERM)
    evidence = scratch.finish(run)
    return replace(evidence, facts={"agent": _told(scratch).strip() or "got no SIGTERM"})


def _misbehaves(name: str, end_name: str) -> Callable[[Scratch], Evidence]:
    one = next(one for one in MISBEHAVIOURS if one.name == name)
    end = next(end for end in ENDS if end.name == end_name)
    return lambda scratch: misbehave(one, end, scratch, *_SANDBOX)


def sandbox_trials() -> list[Trial]:
    """Return the trials of the sandbox bwrap."""
    tried = (ends_with(0), fact("tried", "yes", "the agent works inside"))
    hidden = fact("secret", "hidden", "the agent does not find it")
    away = fact("socket", "out of reach", "the agent can't connect")
    rows: list[tuple[str, str, tuple[Claim, ...], Callable[[Scratch], Evidence]]] = [
        (
            "writes outside",
            "writes to the home folder, beside the work tree, the record, git's config and hooks",
            (*tried, fact("outside", "unchanged", "nothing of it changes")),
            _writes,
        ),
        (
            "reads a secret",
            "looks for a key in the home folder, and for a file beside the work tree",
            (*tried, hidden),
            _reads,
        ),
        (
            "reads variables",
            "looks for a variable of the user in the environment of all processes",
            (*tried, hidden),
            _reads_variables,
        ),
        (
            "plants traps",
            "puts links in place of its prompt and of git's log, a pipe, a hidden set-uid file",
            (fact("tried", "yes", "the agent works inside"), fact("traps", "held", "none acts")),
            _plants,
        ),
        (
            "kills outside",
            "kills a process of the user by its pid",
            (*tried, fact("bystander", "alive", "the process lives on")),
            _kills,
        ),
        (
            "no network",
            "connects to a server on this machine (sandbox.network: false)",
            (*tried, away),
            _connects_network,
        ),
        (
            "soft stop",
            "cleans up at SIGTERM, when rooda gets SIGTERM",
            (
                ends_with(_INTERRUPTED),
                fact("agent", "cleaned up", "the agent gets the signal and the time"),
                NOTHING_LIVES,
            ),
            _is_stopped,
        ),
        (
            "daemon inside",
            "exits, and leaves a daemon that writes to a file",
            (ends_with(0), NOTHING_LIVES, NO_CRASH),
            _misbehaves("daemon", "clean exit"),
        ),
        (
            "everything inside",
            "does all that the agents without a sandbox do, when rooda is killed",
            (NOTHING_LIVES, NO_CRASH),
            _misbehaves("everything", "SIGKILL"),
        ),
    ]
    found = [
        Trial(f"sandbox: {name}", does, claims, perform, (Need.BWRAP,))
        for name, does, claims, perform in rows
    ]
    does = "connects to an abstract socket of the user, such as that of a desktop"
    needs = (Need.BWRAP, Need.SCOPE)
    return [*found, Trial("sandbox: sockets", does, (*tried, away), _connects_abstract, needs)]
