"""What the warden does. It runs as a process of its own: see `client.py`.

On Linux it is a child subreaper: whatever the program starts, by whatever double fork or setsid,
stays below it, and `waitpid` saying ECHILD proves that nothing is left. Elsewhere it finds what it
can by session, group, parent and a mark in the environment.

Messages in:  ("start", argv, folder, environ, keep, mark, umask) with three descriptors
              ("stop", grace) ("pause",) ("resume",) ("cpu",) ("held",)
Messages out: ("started", pid, start time) ("refused", errno, file, text)
              ("exited", status, alone, held) ("alone",) ("stopping", whether it still ran)
              ("killing",) ("gone", stopped, left) ("paused",) ("cpu", seconds)
              ("held", whether its output is) ("failed", text)
"""

import contextlib
import ctypes
import errno
import os
import selectors
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence

from rooda.process.tree.census import census
from rooda.process.tree.proc import Children
from rooda.process.tree.process import Census
from rooda.process.tree.stopping import MOST_NAMES, Stopping, named
from rooda.process.warden.channel import Channel, Closed, Message
from rooda.process.warden.tree import Tree

ADOPT = "adopt"  # how a tree is kept together; the other way is "sweep"
UNSEEN = "a process that can't be seen"
ORPHAN_GRACE = 1.0  # how long the tree may take to end when nobody waits for it any more

_PR_SET_CHILD_SUBREAPER = 36
_LOOK = 0.1  # where the end of somebody else's child wakes nobody
_HUNT = 0.2  # seconds


def main(arguments: Sequence[str]) -> None:
    """Serve on the descriptor that was handed over."""
    number, contain = arguments
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGTSTP):
        # Only the end of the channel ends us. A handler, as what we ignore the program would too.
        if signal.getsignal(name) is not signal.SIG_IGN:
            signal.signal(name, _nothing)
    os.chdir("/")
    channel = Channel(socket.socket(fileno=int(number)))
    os.set_inheritable(channel.fileno(), False)  # noqa: FBT003 - os has it so
    try:
        warden = Warden(channel, *_containment(contain))
    except Exception as error:
        _tell(channel, error)
        raise
    try:
        warden.serve()
    except Exception as error:
        warden.kill_everyone()
        _tell(channel, error)
        raise


def _tell(channel: Channel, error: Exception) -> None:
    with contextlib.suppress(Closed):
        channel.send(("failed", f"{type(error).__name__}: {error}"))


def _containment(contain: str) -> tuple[Census, bool]:
    """Who tells us who is there, and whether orphans become our children."""
    if contain == ADOPT:
        return census(), become_subreaper()
    from rooda.process.tree.sweep import Sweep  # noqa: PLC0415 - needs psutil

    return Sweep(), False


def become_subreaper() -> bool:
    """Ask to be the parent of every orphan below us (Linux)."""
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    return prctl is not None and bool(prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)


def _nothing(*_: object) -> None:
    """Exist."""


class Warden:
    """Waits for messages and for the ends of children, and keeps its promises."""

    def __init__(self, channel: Channel, who: Census, adopts: bool) -> None:  # noqa: FBT001
        self._channel = channel
        self._census = who
        self._adopts = adopts
        self._tree: Tree | None = None
        self._deserted = False  # nobody listens any more
        self._given_up: set[tuple[int, float]] = set()
        self._children = Children()
        self._selector = selectors.DefaultSelector()
        self._selector.register(channel, selectors.EVENT_READ)
        self._wake, write = os.pipe()
        for fd in (self._wake, write):
            os.set_blocking(fd, False)
        signal.signal(signal.SIGCHLD, _nothing)
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        self._selector.register(self._wake, selectors.EVENT_READ)

    def serve(self) -> None:
        """Work until nobody listens and nothing is left."""
        while not self._deserted or self._tree is not None:
            self._step()

    def _step(self) -> None:
        tree = self._tree
        wait = None
        if tree is not None and tree.is_paused:
            pass
        elif tree is not None and tree.stopping is not None:
            wait = max(0.0, tree.stopping.due - time.monotonic())
        elif tree is not None and tree.ended and not self._adopts:
            wait = _LOOK
        for key, _ in self._selector.select(wait):
            if key.fd == self._wake:
                with contextlib.suppress(BlockingIOError):
                    os.read(self._wake, 4096)
            else:
                self._listen()
        self._reap()
        tree = self._tree
        if tree is not None and tree.stopping is not None and not tree.is_paused:
            self._go_on_stopping(tree, tree.stopping)

    def _listen(self) -> None:
        self._reap()  # who has ended by now did so before we were told anything
        try:
            messages = self._channel.receive()
        except Closed:
            self._selector.unregister(self._channel)
            self._deserted = True
            if self._tree is not None:
                self._tree.resume()
                self._stop(self._tree, ORPHAN_GRACE)
            return
        for message in messages:
            self._obey(message)

    def _say(self, *message: object) -> None:
        if not self._deserted:
            # Who has gone is noticed when the channel is read.
            with contextlib.suppress(Closed):
                self._channel.send(message)

    def _obey(self, message: Message) -> None:
        tree = self._tree
        match message:
            case ("start", argv, folder, environ, keep, mark, umask):
                self._start(argv, folder, environ, keep, mark, umask)
            case ("stop", grace):
                self._say("stopping", tree is not None and not tree.ended)
                if tree is not None:
                    self._stop(tree, grace)
            case ("pause",):
                if tree is not None:
                    tree.pause()
                self._say("paused")
            case ("resume",) if tree is not None:
                tree.resume()
            case ("cpu",):
                self._say("cpu", tree.cpu() if tree is not None else 0.0)
            case ("held",):
                self._say("held", tree is not None and tree.is_held())

    # -- starting ---------------------------------------------------------------------------

    def _start(
        self,
        argv: Sequence[str],
        folder: str,
        environ: Mapping[str, str],
        keep: Sequence[str],
        mark: str,
        umask: int,
    ) -> None:
        files, self._channel.files = self._channel.files, []
        try:
            for fd in files:
                os.set_inheritable(fd, False)  # noqa: FBT003 - as above
            if len(files) < 3:  # noqa: PLR2004 - the standard streams; the others did not fit
                self._say("refused", errno.EMFILE, "", os.strerror(errno.EMFILE))
                return
            child = subprocess.Popen(
                argv,
                bufsize=0,
                stdin=files[0],
                stdout=files[1],
                stderr=files[2],
                cwd=folder,
                env=environ,
                start_new_session=True,
                umask=umask,
            )
        except OSError as error:
            self._say("refused", error.errno or 0, str(error.filename or ""), error.strerror or "")
            return
        except ValueError as error:
            self._say("refused", 0, "", str(error))
            return
        else:
            child.returncode = 0  # we wait for it ourselves, and Popen must not
            outputs = frozenset((s.st_dev, s.st_ino) for s in map(os.fstat, files[1:3]))
        finally:
            for fd in files:
                os.close(fd)
        self._tree = Tree(
            self._census,
            child.pid,
            keep,
            mark,
            outputs,
            adopts=self._adopts,
            given_up=self._given_up,
        )
        self._say("started", child.pid, self._tree.started)

    # -- ends -------------------------------------------------------------------------------

    def _reap(self) -> None:
        """Wait for every child that has ended, whoever's it was, and say what follows from it."""
        none_left = self._wait_for_children()
        tree = self._tree
        if tree is None or tree.status is None:
            return
        if tree.may_leave_some:
            # Twice, as one look can miss who just moves.
            none_left = not tree.members() and not tree.members()
        if not tree.ended:
            self._leader_ended(tree, tree.status, none_left=none_left)
        elif none_left:
            self._empty(tree)

    def _wait_for_children(self) -> bool:
        """Whether there is none left: on Linux the proof that nothing of the tree lives."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return True
            if pid == 0:
                return False
            if self._tree is not None and pid == self._tree.leader:
                self._tree.status = os.waitstatus_to_exitcode(status)

    def _leader_ended(self, tree: Tree, code: int, *, none_left: bool) -> None:
        tree.ended = True
        held = not none_left and tree.is_held()
        alone = none_left and tree.stopping is None  # else "gone" says so, with more to tell
        self._say("exited", code, alone, held)
        if alone:
            self._tree = None
        elif none_left:
            self._empty(tree)

    def _empty(self, tree: Tree) -> None:
        self._tree = None
        if tree.stopping is None:
            self._say("alone")
        else:
            self._say("gone", list(tree.stopping.stopped.values()), [])

    # -- stopping ---------------------------------------------------------------------------

    def _stop(self, tree: Tree, grace: float) -> None:
        """SIGTERM now, SIGKILL after the grace; a second call can only hurry."""
        if tree.stopping is None:
            tree.stopping = Stopping(self._census, tree.members, tree.leader)
            if not self._census.everyone():
                tree.signal_group(signal.SIGTERM)
        tree.stopping.within(grace)

    def _go_on_stopping(self, tree: Tree, stopping: Stopping) -> None:
        if time.monotonic() < stopping.due:
            return
        was_killing = stopping.killing
        stopping.look()
        if stopping.killing and not was_killing:
            self._say("killing")
        if stopping.killing:
            self._hunt(tree)
        self._reap()  # which has the last word on who is left
        if self._tree is not None and stopping.is_hopeless:
            # Not even SIGKILL helped (sudo, a dead network drive). They hold up no later tree.
            left = tree.members()
            self._given_up.update(process.key for process in left)
            self._tree = None
            names = [named(self._census, process) for process in left[:MOST_NAMES]]
            self._say("gone", list(stopping.stopped.values()), names or [(0, UNSEEN)])

    def _hunt(self, tree: Tree) -> None:
        """Kill our own children as fast as they come: one that forks and exits outruns a census.

        Whatever lives below us becomes our child when its parent is killed.
        """
        if not self._census.everyone():  # no /proc, or no descriptor to read it with
            tree.signal_group(signal.SIGKILL)
        end = time.monotonic() + _HUNT
        while time.monotonic() < end:
            prey = [pid for pid in self._children.pids() if not tree.is_spared(pid)]
            for pid in prey:
                # Ours, and not waited for in between: the pid can't be another's.
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            if self._wait_for_children() or not prey:
                return

    def kill_everyone(self) -> None:
        """An error of ours: nobody will look after the tree, so it must not live on."""
        if self._tree is not None:
            self._tree.signal_group(signal.SIGKILL)
            self._hunt(self._tree)
