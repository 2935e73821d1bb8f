"""The warden through its client, and the parts that the warden and the capture use."""

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
from rooda.views.terminal.terminal import Sink
from rooda.world.process.capture.buffers import OutputBuffer, TailBuffer
from rooda.world.process.capture.disk import BoundedTranscript
from rooda.world.process.capture.files import FileCapture, WriteWatch
from rooda.world.process.events import Output
from rooda.world.process.tree import process_table
from rooda.world.process.tree.linux import LinuxProcessTable, OwnChildren
from rooda.world.process.tree.stopping import send_signal
from rooda.world.process.warden.channel import Channel, ChannelClosed
from rooda.world.process.warden.client import StartRefused, WardenClient, WardenDead
from rooda.world.state.folder import open_prompt, open_transcript, place_of
from support.children import started_at, until
from support.states import state_of
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


def receive(warden: WardenClient, name: str) -> tuple[Any, ...]:
    """Read messages up to the first with this name, and return it."""
    while True:
        for message in warden.messages():
            if message[0] == name:
                return message


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


# -- messages ------------------------------------------------------------------------------


@pytest.mark.real
def test_exit_code_is_reported(warden: WardenClient, tmp_path: Path) -> None:
    pid, started = start(warden, tmp_path, "exit 3")
    assert pid > 0
    assert started > 0
    assert receive(warden, "exited") == ("exited", 3, True, False)


@pytest.mark.real
def test_stop_ends_background_processes_of_a_finished_program(
    warden: WardenClient, tmp_path: Path
) -> None:
    start(warden, tmp_path, "sleep 60 & echo $! > left.pid; exit 0")
    assert receive(warden, "exited")[2] is False
    assert warden.is_held() is True, "the leftover has the output open"
    assert warden.stop(5) is False, "the program had exited before"
    (_, stopped, left) = receive(warden, "gone")
    pid = int((tmp_path / "left.pid").read_text())
    assert ([one for one, _ in stopped], left) == ([pid], [])
    assert not alive(pid)


@pytest.mark.real
def test_pause_and_resume(warden: WardenClient, tmp_path: Path) -> None:
    pid, _ = start(warden, tmp_path, f"echo > up; {LOOP}")
    wait_for(tmp_path / "up")
    warden.pause()
    until(lambda: state(pid) in "TD", "the tree is stopped")
    warden.resume()
    until(lambda: state(pid) != "T", "the tree continues")
    assert warden.stop(5) is True
    assert receive(warden, "gone")[2] == []


@pytest.mark.real
def test_pause_does_not_count_towards_the_grace(warden: WardenClient, tmp_path: Path) -> None:
    body = f"trap 'sleep 0.2; echo done > cleaned; exit' TERM; echo > up; {LOOP}"
    start(warden, tmp_path, body)
    wait_for(tmp_path / "up")
    warden.stop(3)
    warden.pause()
    end = time.monotonic() + 3.5
    until(lambda: time.monotonic() > end, "more time than the grace passes")
    warden.resume()
    receive(warden, "gone")
    assert (tmp_path / "cleaned").exists()


@pytest.mark.real
def test_warden_reports_the_cpu_time_of_the_tree(warden: WardenClient, tmp_path: Path) -> None:
    start(warden, tmp_path, "while :; do :; done")

    def used() -> float:
        warden.ask_for_cpu()
        return float(receive(warden, "cpu")[1])

    first = used()
    until(lambda: used() > first, "the CPU time grows")
    warden.stop(0)
    receive(warden, "gone")


@pytest.mark.real
def test_stop_spares_kept_processes_only(warden: WardenClient, tmp_path: Path) -> None:
    # The shell's child is called `sh` until it runs exec: only then the pattern matches it.
    named = "until grep -q ^sleep /proc/$kept/cmdline || [ ! -e /proc/self ]; do :; done"
    body = f"sleep 61 & kept=$!; echo $kept > kept.pid; sleep 62 & echo $! > left.pid; {named}"
    start(warden, tmp_path, body, keep=("sleep 61",))
    receive(warden, "exited")
    warden.stop(0)
    assert receive(warden, "gone")[2] == []
    kept = int((tmp_path / "kept.pid").read_text())
    try:
        assert alive(kept)
        assert not alive(int((tmp_path / "left.pid").read_text()))
    finally:
        os.kill(kept, signal.SIGKILL)


@pytest.mark.real
def test_failed_start_is_refused_with_its_errno(warden: WardenClient, tmp_path: Path) -> None:
    with Path(os.devnull).open("r+b") as nothing, pytest.raises(StartRefused) as refused:
        warden.start(("/no/such/program",), tmp_path, {}, (nothing.fileno(),) * 3, (), "")
    assert refused.value.number == errno.ENOENT
    with Path(os.devnull).open("r+b") as nothing, pytest.raises(StartRefused) as refused:
        warden.start(("a\0b",), tmp_path, {}, (nothing.fileno(),) * 3, (), "")
    assert refused.value.number == errno.EINVAL


@pytest.mark.real
def test_dead_warden_is_detected(tmp_path: Path) -> None:
    warden = WardenClient("adopt", os.environ)
    os.kill(warden.pid, signal.SIGKILL)
    until(lambda: state(warden.pid) == "Z", "the warden is dead")
    with pytest.raises(WardenDead):
        start(warden, tmp_path, "exit 0")
    warden.keep_going()
    warden.close()


@pytest.mark.real
def test_close_kills_a_warden_that_does_not_exit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rooda.world.process.warden.client.PATIENCE", 0.3)
    warden = WardenClient("adopt", os.environ)
    os.kill(warden.pid, signal.SIGSTOP)
    until(lambda: state(warden.pid) == "T", "the warden is stopped")
    warden.close()
    assert not Path(f"/proc/{warden.pid}").exists()


@pytest.mark.real
def test_warden_with_an_internal_error_leaves_no_process(tmp_path: Path) -> None:
    """The daemon has no mark, another session and another folder: only its parent is known."""
    warden = WardenClient("adopt", os.environ)
    daemon = "cd /; exec env -i setsid sh -c 'echo $$ > \"$0\"; exec sleep 60' "
    body = f"({daemon} {tmp_path}/daemon.pid) & trap '' TERM; echo $$ > a.pid; {LOOP}"
    start(warden, tmp_path, body)
    pids = [int(wait_for(tmp_path / f"{name}.pid")) for name in ("a", "daemon")]
    warden._channel.send(("stop", "soon"))  # noqa: SLF001 - no client sends this
    with pytest.raises(ChannelClosed, match="TypeError"):
        receive(warden, "gone")
    until(lambda: not any(map(alive, pids)), "all of them exit")
    warden.close()


# -- the channel ---------------------------------------------------------------------------


def test_message_to_a_reader_that_then_exited_is_no_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A program may kill its own parent right after its start."""
    near, far = socket.socketpair()
    real_send = socket.send_fds

    def send_and_close(*arguments: Any) -> int:
        sent = real_send(*arguments)
        far.close()
        return sent

    monkeypatch.setattr(socket, "send_fds", send_and_close)
    with near, Path(os.devnull).open("rb") as file:
        Channel(near).send(("start",), (file.fileno(),))


@pytest.mark.parametrize(
    "garbage",
    [
        struct.pack("!I", 2**31),
        struct.pack("!I", 3) + b"xyz",
        struct.pack("!I", len(marshal.dumps(5))) + marshal.dumps(5),
        struct.pack("!I", len(marshal.dumps(()))) + marshal.dumps(()),
        b"",
    ],
    ids=["huge", "not marshal", "number", "empty tuple", "end of file"],
)
def test_invalid_message_closes_the_channel(garbage: bytes) -> None:
    near, far = socket.socketpair()
    channel = Channel(near)
    with far:
        far.sendall(garbage)
    with pytest.raises(ChannelClosed):
        channel.receive()
    channel.close()


def test_messages_may_arrive_in_pieces_and_several_at_once() -> None:
    near, far = socket.socketpair()
    channel = Channel(near)
    body = marshal.dumps(("a", 1))
    data = (struct.pack("!I", len(body)) + body) * 2
    with far:
        far.sendall(data[:7])
        assert channel.receive() == []
        far.sendall(data[7:])
        assert channel.receive() == [("a", 1), ("a", 1)]
    with pytest.raises(ChannelClosed):
        channel.send(("x" * 10_000_000,))
    channel.close()


# -- signals and the process table ---------------------------------------------------------


@pytest.mark.real
@pytest.mark.parametrize("error", [errno.EMFILE, errno.ENOSYS])
def test_signal_without_pidfd_still_checks_the_start_time(
    monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    def refuse(_: int) -> int:
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr(os, "pidfd_open", refuse, raising=False)
    with subprocess.Popen(["sleep", "60"]) as child:
        table = process_table()
        meant = table.find(child.pid)
        assert meant is not None
        assert not send_signal(table, started_at(meant, 0), signal.SIGKILL)
        assert send_signal(table, meant, signal.SIGKILL)
        assert child.wait(20) == -signal.SIGKILL
    assert not send_signal(table, meant, signal.SIGKILL)


def test_proc_of_another_pid_namespace_shows_no_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rooda.world.process.tree.linux._is_ours", lambda: False)
    table = LinuxProcessTable()
    assert (table.all_processes(), table.find(os.getpid()), OwnChildren().pids()) == ([], None, [])


@pytest.mark.real
def test_own_children_are_listed() -> None:
    children = OwnChildren()
    with subprocess.Popen(["sleep", "60"]) as child:
        assert child.pid in children.pids()
        child.kill()


# -- files and disks -----------------------------------------------------------------------


def file_capture(folder: Path, limit: int = 1000) -> tuple[FileCapture, OutputBuffer, Path]:
    paths = {name: folder / name for name in ("stdout", "stderr")}
    fds = {
        name: os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND) for name, path in paths.items()
    }
    outputs: list[Output] = []
    buffer = OutputBuffer(limit, outputs.append, time.monotonic)
    disk = BoundedTranscript(fds, 1024 * 1024)  # type: ignore[arg-type]  # the names are those of streams
    return FileCapture(fds, buffer, disk, time.monotonic), buffer, paths["stdout"]  # type: ignore[arg-type]


def test_hole_of_terabytes_is_skipped(tmp_path: Path) -> None:
    files, buffer, path = file_capture(tmp_path)
    with path.open("ab") as file:
        file.write(b"begin")
    files.read(None)
    os.truncate(path, 2**41)
    with path.open("ab") as file:
        file.write(b"the end")
    files.finish()
    captured = buffer.captured("stdout")
    assert captured.total == 2**41 + len(b"the end")
    assert captured.tail.endswith(b"\0the end")
    assert len(captured.tail) == 1000
    files.close()


def test_unreadable_transcript_does_not_end_the_program(tmp_path: Path) -> None:
    files, buffer, path = file_capture(tmp_path)
    path.write_bytes(b"x")
    os.close(files.readers[0])
    files.read(None)
    assert buffer.total == 0
    files.close()


def test_files_are_polled_without_inotify(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: object) -> int:
        raise OSError(errno.EMFILE, "no more")

    monkeypatch.setattr("rooda.world.process.capture.files.watch_writes", refuse)
    assert WriteWatch(()).fd is None
    files, buffer, path = file_capture(tmp_path)
    path.write_bytes(b"hello")
    files.read(None)
    files.read(None)
    due = files.next_read()
    assert due is not None
    assert due - time.monotonic() < 0.1
    assert buffer.captured("stdout").tail == b"hello"
    files.close()


def test_skipped_bytes_are_counted_and_not_kept() -> None:
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
def test_advice_fits_the_error(number: int, word: str) -> None:
    assert word in room_advice(OSError(number, "x"))


def test_files_are_temporary_or_none_without_a_state_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state_of(tmp_path).parent.mkdir(parents=True)
    state_of(tmp_path).write_text("in the way")
    place, troubles = place_of("run", 1), list[OSError]()
    with open_prompt(state_of(tmp_path), place, b"words", troubles.append) as prompt:
        assert prompt.read() == b"words"
    files = open_transcript(state_of(tmp_path), place, troubles.append)
    assert files is not None
    for file in files:
        file.close()
    assert len(troubles) == 2

    def refuse(*_: object, **__: object) -> object:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    assert open_transcript(state_of(tmp_path), place, troubles.append) is None
    with pytest.raises(OSError, match="not a folder"):
        open_prompt(state_of(tmp_path), place, b"words", troubles.append)


def test_output_without_a_reader_is_dropped_and_reported_later() -> None:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    in_a_hurry: Callable[[], bool] = lambda: True  # noqa: E731 - a type for mypy
    sink = Sink(writer, in_a_hurry)
    sink.write("x" * 1_000_000)
    assert sink.missing > 0
    with contextlib.suppress(BlockingIOError):
        os.set_blocking(reader, False)
        while os.read(reader, 1_000_000):
            pass
    sink.write("again")
    assert sink.missing == 0
    assert os.read(reader, 1000).endswith(b"nothing read them]\nagain")
    for fd in (reader, writer):
        os.close(fd)


pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
