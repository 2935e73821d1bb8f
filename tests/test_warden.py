"""The warden as its client sees it, and the small parts that it and the capture are made of."""

import contextlib
import errno
import marshal
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rooda.loop.failure import room_advice
from rooda.process.capture.buffers import OutputBuffer, TailBuffer
from rooda.process.capture.disk import BoundedTranscript
from rooda.process.capture.files import FileCapture, WriteWatch
from rooda.process.events import Output
from rooda.process.tree import process_table
from rooda.process.tree.linux import LinuxProcessTable, OwnChildren
from rooda.process.tree.stopping import send_signal
from rooda.process.warden.channel import Channel, ChannelClosed
from rooda.process.warden.client import StartRefused, WardenClient, WardenDead
from rooda.views.terminal import Sink
from rooda.workspace.state_folder import open_prompt, open_transcript, place_of
from support.children import started_at, until
from support.workspace import alive, wait_for

LOOP = "while :; do sleep 0.05; done"


@pytest.fixture
def warden() -> Iterator[WardenClient]:
    found = WardenClient("adopt", os.environ)
    yield found
    found.close()


def start(
    warden: WardenClient, folder: Path, body: str, keep: tuple[str, ...] = ()
) -> tuple[int, float]:
    with Path(os.devnull).open("r+b") as nothing:
        files = (nothing.fileno(),) * 3
        return warden.start(("sh", "-c", body), folder, os.environ, files, keep, "")


def heard(warden: WardenClient, name: str) -> tuple[Any, ...]:
    """Everything that it says, up to the message of this name."""
    while True:
        for message in warden.messages():
            if message[0] == name:
                return message


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


# -- what it is told, and what it says -----------------------------------------------------


def test_a_program_that_ends_alone_is_told_with_its_code(
    warden: WardenClient, tmp_path: Path
) -> None:
    pid, started = start(warden, tmp_path, "exit 3")
    assert pid > 0
    assert started > 0
    assert heard(warden, "exited") == ("exited", 3, True, False)


def test_what_it_left_behind_is_stopped_on_demand(warden: WardenClient, tmp_path: Path) -> None:
    start(warden, tmp_path, "sleep 60 & echo $! > left.pid; exit 0")
    assert heard(warden, "exited")[2] is False
    assert warden.is_held() is True, "it has its output open"
    assert warden.stop(5) is False, "the program itself had ended before"
    (_, stopped, left) = heard(warden, "gone")
    pid = int((tmp_path / "left.pid").read_text())
    assert ([one for one, _ in stopped], left) == ([pid], [])
    assert not alive(pid)


def test_it_holds_a_tree_and_lets_it_go_on(warden: WardenClient, tmp_path: Path) -> None:
    pid, _ = start(warden, tmp_path, f"echo > up; {LOOP}")
    wait_for(tmp_path / "up")
    warden.pause()
    until(lambda: state(pid) in "TD", "its standstill")
    warden.resume()
    until(lambda: state(pid) != "T", "going on")
    assert warden.stop(5) is True
    assert heard(warden, "gone")[2] == []


@pytest.mark.slow
def test_the_grace_stands_still_with_the_tree(warden: WardenClient, tmp_path: Path) -> None:
    body = f"trap 'sleep 0.2; echo done > cleaned; exit' TERM; echo > up; {LOOP}"
    start(warden, tmp_path, body)
    wait_for(tmp_path / "up")
    warden.stop(1.0)
    warden.pause()
    end = time.monotonic() + 1.5
    until(lambda: time.monotonic() > end, "more than the grace")
    warden.resume()
    heard(warden, "gone")
    assert (tmp_path / "cleaned").exists()


def test_it_tells_the_cpu_time_of_the_tree(warden: WardenClient, tmp_path: Path) -> None:
    start(warden, tmp_path, "while :; do :; done")

    def used() -> float:
        warden.ask_for_cpu()
        return float(heard(warden, "cpu")[1])

    first = used()
    until(lambda: used() > first, "work")
    warden.stop(0)
    heard(warden, "gone")


def test_with_something_to_keep_the_rest_is_stopped(warden: WardenClient, tmp_path: Path) -> None:
    # A shell forks first and becomes `sleep` a moment later: only then it has the name to keep.
    named = "until grep -q ^sleep /proc/$kept/cmdline || [ ! -e /proc/self ]; do :; done"
    body = f"sleep 61 & kept=$!; echo $kept > kept.pid; sleep 62 & echo $! > left.pid; {named}"
    start(warden, tmp_path, body, keep=("sleep 61",))
    heard(warden, "exited")
    warden.stop(0)
    assert heard(warden, "gone")[2] == []
    kept = int((tmp_path / "kept.pid").read_text())
    try:
        assert alive(kept)
        assert not alive(int((tmp_path / "left.pid").read_text()))
    finally:
        os.kill(kept, signal.SIGKILL)


def test_what_can_not_be_started_is_refused(warden: WardenClient, tmp_path: Path) -> None:
    with Path(os.devnull).open("r+b") as nothing, pytest.raises(StartRefused) as refused:
        warden.start(("/no/such/program",), tmp_path, {}, (nothing.fileno(),) * 3, (), "")
    assert refused.value.number == errno.ENOENT
    with Path(os.devnull).open("r+b") as nothing, pytest.raises(StartRefused) as refused:
        warden.start(("a\0b",), tmp_path, {}, (nothing.fileno(),) * 3, (), "")
    assert refused.value.number == errno.EINVAL


def test_a_dead_warden_is_known_for_dead(tmp_path: Path) -> None:
    warden = WardenClient("adopt", os.environ)
    os.kill(warden.pid, signal.SIGKILL)
    until(lambda: state(warden.pid) == "Z", "its end")
    with pytest.raises(WardenDead):
        start(warden, tmp_path, "exit 0")
    warden.keep_going()
    warden.close()


def test_a_warden_that_nothing_ends_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rooda.process.warden.client.PATIENCE", 0.3)
    warden = WardenClient("adopt", os.environ)
    os.kill(warden.pid, signal.SIGSTOP)
    until(lambda: state(warden.pid) == "T", "its standstill")
    warden.close()
    assert not Path(f"/proc/{warden.pid}").exists()


def test_a_warden_that_fails_leaves_nothing_alive(tmp_path: Path) -> None:
    """Not even who shed everything that it could be found by."""
    warden = WardenClient("adopt", os.environ)
    daemon = "cd /; exec env -i setsid sh -c 'echo $$ > \"$0\"; exec sleep 60' "
    body = f"({daemon} {tmp_path}/daemon.pid) & trap '' TERM; echo $$ > a.pid; {LOOP}"
    start(warden, tmp_path, body)
    pids = [int(wait_for(tmp_path / f"{name}.pid")) for name in ("a", "daemon")]
    warden._channel.send(("stop", "soon"))  # noqa: SLF001 - nonsense that no client would say
    with pytest.raises(ChannelClosed, match="TypeError"):
        heard(warden, "gone")
    until(lambda: not any(map(alive, pids)), "the end of everyone")
    warden.close()


# -- the channel ---------------------------------------------------------------------------


def test_a_message_that_arrived_is_no_failure_when_its_reader_is_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Who starts a program may be killed by it before we have drawn breath."""
    ours, theirs = socket.socketpair()
    really = socket.send_fds

    def sent_and_gone(*arguments: Any) -> int:
        sent = really(*arguments)
        theirs.close()
        return sent

    monkeypatch.setattr(socket, "send_fds", sent_and_gone)
    with ours, Path(os.devnull).open("rb") as file:
        Channel(ours).send(("start",), (file.fileno(),))


@pytest.mark.parametrize(
    "garbage",
    [
        struct.pack("!I", 2**31),
        struct.pack("!I", 3) + b"xyz",
        struct.pack("!I", len(marshal.dumps(5))) + marshal.dumps(5),
        struct.pack("!I", len(marshal.dumps(()))) + marshal.dumps(()),
        b"",
    ],
    ids=["huge", "no marshal", "a number", "an empty tuple", "the end"],
)
def test_nonsense_on_the_channel_is_its_end(garbage: bytes) -> None:
    ours, theirs = socket.socketpair()
    channel = Channel(ours)
    with theirs:
        theirs.sendall(garbage)
    with pytest.raises(ChannelClosed):
        channel.receive()
    channel.close()


def test_a_message_may_come_in_pieces_and_many_at_once() -> None:
    ours, theirs = socket.socketpair()
    channel = Channel(ours)
    body = marshal.dumps(("a", 1))
    data = (struct.pack("!I", len(body)) + body) * 2
    with theirs:
        theirs.sendall(data[:7])
        assert channel.receive() == []
        theirs.sendall(data[7:])
        assert channel.receive() == [("a", 1), ("a", 1)]
    with pytest.raises(ChannelClosed):
        channel.send(("x" * 10_000_000,))
    channel.close()


# -- signals and the process table ---------------------------------------------------------


@pytest.mark.parametrize("error", [errno.EMFILE, errno.ENOSYS])
def test_without_a_descriptor_for_it_the_right_process_is_still_meant(
    monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    def refuse(_: int) -> int:
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr(os, "pidfd_open", refuse, raising=False)
    with subprocess.Popen(["sleep", "60"]) as child:
        who = process_table()
        meant = who.find(child.pid)
        assert meant is not None
        assert not send_signal(who, started_at(meant, 0), signal.SIGKILL)
        assert send_signal(who, meant, signal.SIGKILL)
        assert child.wait(10) == -signal.SIGKILL
    assert not send_signal(who, meant, signal.SIGKILL)


def test_where_proc_is_not_ours_nobody_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rooda.process.tree.linux._is_ours", lambda: False)
    who = LinuxProcessTable()
    assert (who.all_processes(), who.find(os.getpid()), OwnChildren().pids()) == ([], None, [])


def test_the_children_of_a_process_are_known_without_a_process_table() -> None:
    children = OwnChildren()
    with subprocess.Popen(["sleep", "60"]) as child:
        assert child.pid in children.pids()
        child.kill()


# -- files and disks -----------------------------------------------------------------------


def following(folder: Path, limit: int = 1000) -> tuple[FileCapture, OutputBuffer, Path]:
    paths = {name: folder / name for name in ("stdout", "stderr")}
    fds = {
        name: os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND) for name, path in paths.items()
    }
    heard: list[Output] = []
    spoken = OutputBuffer(limit, heard.append, time.monotonic)
    disk = BoundedTranscript(fds, 1024 * 1024)  # type: ignore[arg-type]  # the names are those of streams
    return FileCapture(fds, spoken, disk, time.monotonic), spoken, paths["stdout"]  # type: ignore[arg-type]


def test_a_hole_of_terabytes_is_passed_over(tmp_path: Path) -> None:
    files, spoken, path = following(tmp_path)
    with path.open("ab") as file:
        file.write(b"begin")
    files.look(None)
    os.truncate(path, 2**41)
    with path.open("ab") as file:
        file.write(b"the end")
    files.finish()
    captured = spoken.captured("stdout")
    assert captured.total == 2**41 + len(b"the end")
    assert captured.tail.endswith(b"\0the end")
    assert len(captured.tail) == 1000
    files.close()


def test_a_disk_that_breaks_is_not_the_program_s_end(tmp_path: Path) -> None:
    files, spoken, path = following(tmp_path)
    path.write_bytes(b"x")
    os.close(files.readers[0])
    files.look(None)
    assert spoken.total == 0
    files.close()


def test_without_inotify_files_are_looked_at_now_and_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: object) -> int:
        raise OSError(errno.EMFILE, "no more")

    monkeypatch.setattr("rooda.process.capture.files.watch_writes", refuse)
    assert WriteWatch(()).fd is None
    files, spoken, path = following(tmp_path)
    path.write_bytes(b"hello")
    files.look(None)
    files.look(None)
    due = files.next_look()
    assert due is not None
    assert due - time.monotonic() < 0.1
    assert spoken.captured("stdout").tail == b"hello"
    files.close()


def test_what_was_passed_over_is_counted_and_not_kept() -> None:
    buffer = TailBuffer(10)
    buffer.append(b"abc")
    buffer.skip(0)
    buffer.skip(100)
    buffer.append(b"xyz")
    captured = buffer.captured()
    assert (captured.total, captured.tail, captured.head) == (106, b"xyz", b"abcxyz")


@pytest.mark.parametrize(
    "number,word",
    [(errno.EMFILE, "ulimit -n"), (errno.ENOSPC, "disk"), (errno.EFBIG, "ulimit -f"),
     (errno.EACCES, "mode")],
)  # fmt: skip
def test_the_advice_fits_the_trouble(number: int, word: str) -> None:
    assert word in room_advice(OSError(number, "x"))


def test_without_a_state_folder_files_are_temporary_or_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".rooda").write_text("in the way")
    place, troubles = place_of("run", 1), list[OSError]()
    with open_prompt(tmp_path, place, b"words", troubles.append) as prompt:
        assert prompt.read() == b"words"
    files = open_transcript(tmp_path, place, troubles.append)
    assert files is not None
    for file in files:
        file.close()
    assert len(troubles) == 2

    def refuse(*_: object, **__: object) -> object:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    assert open_transcript(tmp_path, place, troubles.append) is None
    with pytest.raises(OSError, match="not a folder"):
        open_prompt(tmp_path, place, b"words", troubles.append)


def test_what_nobody_reads_is_dropped_and_told_of_later() -> None:
    ours, theirs = os.pipe()
    os.set_blocking(theirs, False)
    hurried: Callable[[], bool] = lambda: True  # noqa: E731 - as short as it is
    sink = Sink(theirs, hurried)
    sink.write("x" * 1_000_000)
    assert sink.missing > 0
    with contextlib.suppress(BlockingIOError):
        os.set_blocking(ours, False)
        while os.read(ours, 1_000_000):
            pass
    sink.write("again")
    assert sink.missing == 0
    assert os.read(ours, 1000).endswith(b"nothing read them]\nagain")
    for fd in (ours, theirs):
        os.close(fd)


pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
