"""What the warden does. It runs as a process of its own: see `client.py`.

On Linux the warden is a child subreaper: every process that the program starts, also by a double
fork or setsid, stays below it, and ECHILD from `waitpid` proves that none is left. Elsewhere the
warden finds what it can by session, group, parent and a mark in the environment.

Messages in:  ("start", argv, folder, environ, keep, mark, umask, jail) with three descriptors
              ("stop", grace) ("pause",) ("resume",) ("cpu",) ("held",)
Messages out: ("started", pid, start time) ("refused", errno, file, text)
              ("unready", why) ("exited", status, alone, held) ("alone",)
              ("stopping", whether it still ran) ("killing",) ("gone", stopped, left) ("paused",)
              ("cpu", seconds) ("held", whether its output is) ("failed", text)

The warden imports as little as possible: it lives as long as rooda, and its memory counts too.
"""

import contextlib
import errno
import fcntl
import os
import selectors
import signal
import socket
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence

from rooda.world.process.libc import become_subreaper
from rooda.world.process.tree import process_table
from rooda.world.process.tree.linux import OwnChildren
from rooda.world.process.tree.processes import ProcessTable, named
from rooda.world.process.tree.stopping import MOST_NAMES, TreeStop
from rooda.world.process.warden.channel import Channel, ChannelClosed, Message
from rooda.world.process.warden.jail import (
    STATUS_FD,
    Jail,
    away_from_status_fd,
    command_line,
    isolate,
    reserve_status_fd,
)
from rooda.world.process.warden.process_tree import ProcessTree

ADOPT = "adopt"  # how to keep a tree together; the other way is "sweep"
UNSEEN = "a process that can't be seen"
ORPHAN_GRACE = 1.0  # seconds until SIGKILL when rooda is gone

_POLL = 0.1  # seconds, where the end of a process that is no child wakes nothing
_HUNT = 0.2  # seconds
_CHECK_ROODA = 0.5  # seconds between two looks at whether rooda is halted
_STANDARD_STREAMS = 3


def main(arguments: Sequence[str]) -> None:
    """Serve on the descriptor whose number rooda passed."""
    number, contain = arguments
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGTSTP):
        # Only the end of the channel ends the warden. It installs a handler, because the program
        # would inherit an ignored signal.
        if signal.getsignal(name) is not signal.SIG_IGN:
            signal.signal(name, _do_nothing)
    os.chdir("/")
    channel = Channel(socket.socket(fileno=away_from_status_fd(int(number))))
    reserve_status_fd()
    os.set_inheritable(channel.fileno(), False)  # noqa: FBT003 - the signature of os
    try:
        warden = Warden(channel, *_containment(contain))
    except Exception as error:
        _report(channel, error)
        raise
    try:
        warden.serve()
    except Exception as error:
        warden.kill_everything()
        _report(channel, error)
        raise


def _report(channel: Channel, error: Exception) -> None:
    with contextlib.suppress(ChannelClosed):
        channel.send(("failed", f"{type(error).__name__}: {error}"))


def _containment(contain: str) -> tuple[ProcessTable, bool]:
    """The process table to use, and whether orphans become children of the warden."""
    if contain == ADOPT:
        return process_table(), become_subreaper()
    from rooda.world.process.tree.portable import PsutilProcessTable  # noqa: PLC0415 - needs psutil

    return PsutilProcessTable(), False


def _do_nothing(*_: object) -> None:
    """Handle a signal."""


class Warden:
    """Waits for orders and for the ends of children, and acts on them."""

    def __init__(self, channel: Channel, table: ProcessTable, adopts: bool) -> None:  # noqa: FBT001
        self._channel = channel
        self._table = table
        self._adopts = adopts
        self._tree: ProcessTree | None = None
        self._deserted = False  # rooda is gone
        self._given_up: set[tuple[int, float]] = set()
        self._children = OwnChildren()
        self._rooda = os.getppid()
        self._rooda_was_halted = False
        self._next_look = 0.0
        self._selector = selectors.DefaultSelector()
        self._selector.register(channel, selectors.EVENT_READ)
        self._wake, write = os.pipe()
        for fd in (self._wake, write):
            os.set_blocking(fd, False)
        signal.signal(signal.SIGCHLD, _do_nothing)
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        self._selector.register(self._wake, selectors.EVENT_READ)

    def serve(self) -> None:
        """Work until rooda is gone and no process is left."""
        while not self._deserted or self._tree is not None:
            self._step()

    def _step(self) -> None:
        tree = self._tree
        wait = None
        if tree is not None and tree.is_paused:
            pass
        elif tree is not None and tree.stop is not None:
            wait = max(0.0, tree.stop.due - time.monotonic())
        elif tree is not None and tree.ended and not self._adopts:
            wait = _POLL
        if self._is_rooda_needed():
            wait = _CHECK_ROODA if wait is None else min(wait, _CHECK_ROODA)
        for key, _ in self._selector.select(wait):
            if key.fd == self._wake:
                with contextlib.suppress(BlockingIOError):
                    os.read(self._wake, 4096)
            elif key.fileobj is self._channel:
                self._listen()
        self._reap()
        tree = self._tree
        if tree is not None and tree.stop is not None and not tree.is_paused:
            self._go_on_stopping(tree, tree.stop)
        self._keep_rooda_going()

    def _keep_rooda_going(self) -> None:
        """Continue a rooda that a process has halted: no time limit would end the program then.

        Before rooda halts itself (Ctrl+Z), it asks for a pause. rooda may ask for one at this
        moment, so it is continued at the second look.
        """
        now = time.monotonic()
        if not self._is_rooda_needed():
            self._rooda_was_halted = False
            return
        if now < self._next_look:
            return
        self._next_look = now + _CHECK_ROODA
        if self._tree is not None:
            self._tree.keep_keeper_going()
        is_halted = self._is_rooda_halted()
        if is_halted and self._rooda_was_halted:
            self._continue_rooda()
        self._rooda_was_halted = is_halted

    def _is_rooda_needed(self) -> bool:
        """Return whether a program runs, or rooda has not heard yet that it has ended."""
        if self._deserted:
            return False
        return self._is_unheard() if self._tree is None else not self._tree.is_paused

    def _is_rooda_halted(self) -> bool:
        found = self._table.find(self._rooda) if os.getppid() == self._rooda else None
        return found is not None and found.halted

    def _continue_rooda(self) -> None:
        with contextlib.suppress(OSError):
            os.kill(self._rooda, signal.SIGCONT)

    def _end_tree(self, *message: object) -> None:
        """Tell rooda that the tree is gone."""
        if self._tree is not None and self._tree.jail is not None:
            self._forget(self._tree.jail)
            self._tree.jail.close()
        self._tree = None
        self._say(*message)

    def _forget(self, jail: Jail) -> None:
        """Wait for no more words of a keeper."""
        with contextlib.suppress(KeyError):
            self._selector.unregister(jail)

    def _is_unheard(self) -> bool:
        """Return whether rooda has not read all messages yet."""
        try:
            return any(fcntl.ioctl(self._channel, termios.TIOCOUTQ, bytes(4)))
        except OSError:
            return False

    def _listen(self) -> None:
        self._reap()  # a child that has ended by now ended before the next order
        try:
            messages = self._channel.receive()
        except ChannelClosed:
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
            # The next read of the channel shows that rooda is gone.
            with contextlib.suppress(ChannelClosed):
                self._channel.send(message)

    def _obey(self, message: Message) -> None:
        tree = self._tree
        match message:
            case (
                "start",
                tuple(argv),
                str(folder),
                dict(environ),
                tuple(keep),
                str(mark),
                int(umask),
                tuple(prefix),
            ):
                self._start(argv, folder, environ, keep, mark, umask, prefix)
            case ("stop", int(grace) | float(grace)):
                self._say("stopping", tree is not None and not tree.ended)
                if tree is not None:
                    self._stop(tree, grace)
            case ("pause",):
                if tree is not None:
                    tree.pause()
                self._say("paused")
            case ("resume",):
                if tree is not None:
                    tree.resume()
            case ("cpu",):
                self._say("cpu", tree.cpu() if tree is not None else 0.0)
            case ("held",):
                self._say("held", tree is not None and tree.is_held())
            case _:
                raise TypeError(f"unknown order: {message[0]}")

    # -- starting ---------------------------------------------------------------------------

    def _start(
        self,
        argv: Sequence[str],
        folder: str,
        environ: Mapping[str, str],
        keep: Sequence[str],
        mark: str,
        umask: int,
        prefix: Sequence[str],
    ) -> None:
        files, self._channel.files = self._channel.files, []
        jail = None
        try:
            for fd in files:
                os.set_inheritable(fd, False)  # noqa: FBT003 - as above
            if len(files) < _STANDARD_STREAMS:  # the warden had no room for the others
                self._say("refused", errno.EMFILE, "", os.strerror(errno.EMFILE))
                return
            jail = Jail() if prefix else None
            child = subprocess.Popen(
                command_line(prefix, argv) if prefix else argv,
                bufsize=0,
                stdin=files[0],
                stdout=files[1],
                stderr=files[2],
                cwd=folder,
                env=environ,
                start_new_session=True,
                umask=umask,
                pass_fds=(STATUS_FD,) if prefix else (),
                preexec_fn=isolate if prefix else None,  # noqa: PLW1509 - the warden has one thread
            )
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            if jail is not None:
                jail.close()
            number, file = getattr(error, "errno", 0), getattr(error, "filename", "")
            text = getattr(error, "strerror", "") or str(error)
            self._say("refused", number or 0, str(file or ""), text)
            return
        else:
            child.returncode = 0  # the warden waits for it itself, and Popen must not
            outputs = frozenset((s.st_dev, s.st_ino) for s in map(os.fstat, files[1:3]))
        finally:
            for fd in files:
                os.close(fd)
            if prefix:
                reserve_status_fd()
        if jail is not None:
            self._selector.register(jail, selectors.EVENT_READ)
        self._tree = ProcessTree(
            self._table,
            child.pid,
            keep,
            mark,
            outputs,
            adopts=self._adopts,
            given_up=self._given_up,
            jail=jail,
        )
        self._say("started", child.pid, self._tree.started)

    # -- ends -------------------------------------------------------------------------------

    def _reap(self) -> None:
        """Wait for every child that has ended, adopted ones too, and report what follows."""
        none_left = self._wait_for_children()
        tree = self._tree
        if tree is None:
            return
        if tree.jail is not None:
            self._hear_keeper(tree, tree.jail)
        if tree.status is None:
            return
        if tree.may_leave_some:
            # Twice: one scan can miss a process that is just forking.
            none_left = not tree.members() and not tree.members()
        if not tree.ended:
            self._leader_ended(tree, tree.status, none_left=none_left)
        elif none_left:
            self._empty(tree)

    def _wait_for_children(self) -> bool:
        """Whether there is none left (ECHILD): on Linux the proof that the whole tree is gone."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return True
            if pid == 0:
                return False
            if self._tree is not None and pid == self._tree.leader:
                self._tree.leader_status = os.waitstatus_to_exitcode(status)
                if self._tree.jail is None:
                    self._tree.status = self._tree.leader_status

    def _hear_keeper(self, tree: ProcessTree, jail: Jail) -> None:
        """Take from the keeper how the program ended; without a keeper, from the sandbox."""
        jail.listen()
        if jail.is_silent:
            self._forget(jail)
        if tree.status is not None:
            return
        tree.status = jail.code
        if tree.status is None and tree.leader_status is not None:
            tree.status = tree.leader_status
            if jail.trouble and tree.status > 0:
                self._say("unready", jail.trouble)

    def _leader_ended(self, tree: ProcessTree, code: int, *, none_left: bool) -> None:
        tree.ended = True
        held = not none_left and tree.is_held()
        alone = none_left and tree.stop is None  # otherwise "gone" follows, which says more
        if alone:
            self._end_tree("exited", code, alone, held)
            return
        self._say("exited", code, alone, held)
        if none_left:
            self._empty(tree)

    def _empty(self, tree: ProcessTree) -> None:
        if tree.stop is None:
            self._end_tree("alone")
        else:
            self._end_tree("gone", list(tree.stop.stopped.values()), [])

    # -- stopping ---------------------------------------------------------------------------

    def _stop(self, tree: ProcessTree, grace: float) -> None:
        """SIGTERM now, SIGKILL after the grace; a second call can only shorten the grace."""
        if tree.stop is None:
            tree.stop = TreeStop(self._table, tree.members, tree.unnamed, tree.own_processes)
            if not self._table.all_processes() and tree.jail is None:
                tree.signal_group(signal.SIGTERM)
        tree.stop.within(grace)

    def _go_on_stopping(self, tree: ProcessTree, stop: TreeStop) -> None:
        if time.monotonic() < stop.due:
            return
        was_killing = stop.killing
        stop.step()
        if stop.killing and not was_killing:
            self._say("killing")
        if stop.killing:
            self._hunt(tree)
        self._reap()  # `waitpid` decides whether a process is left
        if self._tree is not None and stop.is_hopeless:
            # SIGKILL did not help (sudo, a dead network drive). No later tree waits for these.
            left = tree.members()
            self._given_up.update(process.key for process in left)
            names = [named(self._table, process) for process in left[:MOST_NAMES]]
            self._end_tree("gone", list(stop.stopped.values()), names or [(0, UNSEEN)])

    def _hunt(self, tree: ProcessTree) -> None:
        """Kill the warden's own children as fast as they appear.

        A process that forks and exits all the time outruns the process table; when its parent is
        killed, it becomes a child of the warden.
        """
        if not self._table.all_processes():  # no /proc, or no descriptor left to read it
            tree.signal_group(signal.SIGKILL)
        end = time.monotonic() + _HUNT
        while time.monotonic() < end:
            prey = [pid for pid in self._children.pids() if not tree.is_spared(pid)]
            for pid in prey:
                # A child that the warden has not waited for: its pid can't have been reused.
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            if self._wait_for_children() or not prey:
                return

    def kill_everything(self) -> None:
        """Kill the tree after an error of the warden's own, because the warden is about to end."""
        if self._tree is not None:
            self._tree.signal_group(signal.SIGKILL)
            self._hunt(self._tree)
