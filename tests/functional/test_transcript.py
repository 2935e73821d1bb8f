"""Output is complete in memory and on disk, up to the configured limits."""

import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rooda.base.event import Event
from rooda.world.process.capture.buffers import combined
from rooda.world.process.capture.disk import BLOCK, NO_HOLES, BoundedTranscript, KeptBytes
from rooda.world.process.events import Output, Stream, TranscriptTrimmed
from rooda.world.process.exits import Exited
from rooda.world.process.request import Listener, ProcessResult
from support.capturing import (
    BOTH_CAPTURES,
    Capture,
    Studio,
    mounted,
    studio_in,
)
from support.children import Nursery
from support.finished import Finished
from support.properties import examples
from support.states import state_of
from support.workspace import PROCEDURE, Workspace, kept_in

MEGABYTE = 1024 * 1024
TAG = b"<promise>SUCCESS</promise>"
SUCCESS = f"echo '{TAG.decode()}'"
STREAMS: tuple[Stream, Stream] = ("stdout", "stderr")


@pytest.fixture
def studio(tmp_path: Path) -> Iterator[Studio]:
    with studio_in(tmp_path) as found:
        yield found


@pytest.fixture
def nursery(workspace: Workspace) -> Iterator[Nursery]:
    # Not in the work folder: some tests mount another file system there.
    workspace.global_config(PROCEDURE)
    found = Nursery(workspace.home)
    yield found
    found.clear()


# -- transcript limit: real files ----------------------------------------------------------


@cache
def numbers() -> bytes:
    return b"%15d\n" * MEGABYTE % tuple(range(MEGABYTE))


def counted(size: int) -> bytes:
    """Numbered lines without a zero byte, so that each byte's position is known."""
    assert size <= len(numbers())
    return numbers()[:size]


def check_kept(path: Path, whole: bytes, kept: KeptBytes) -> None:
    """The file has the head and the tail of the whole, and zeros in between."""
    on_disk = path.read_bytes()
    if kept.is_whole:
        assert on_disk == whole[: kept.size]
        return
    assert on_disk[: kept.head] == whole[: kept.head]
    assert on_disk[kept.tail :] == whole[kept.tail :]
    assert not on_disk[kept.head : kept.tail].strip(b"\0")


def used(path: Path) -> int:
    return path.stat().st_blocks * 512


WRITES = st.lists(
    st.tuples(st.sampled_from(STREAMS), st.integers(1, 3 * MEGABYTE // 2)), min_size=1, max_size=8
)


@given(WRITES, st.integers(64 * 1024, 2 * MEGABYTE))
# An odd limit, and a stream that overtakes the other.
@example([("stderr", 6 * MEGABYTE), *[("stdout", 7 * MEGABYTE // 2)] * 2], MEGABYTE - 1)
@examples(25)
def test_transcript_keeps_what_it_reports(writes: list[tuple[Stream, int]], limit: int) -> None:
    whole: dict[Stream, bytes] = dict.fromkeys(STREAMS, b"")
    with tempfile.TemporaryDirectory() as folder:
        paths: dict[Stream, Path] = {name: Path(folder) / name for name in STREAMS}
        with paths["stdout"].open("a+b", 0) as stdout, paths["stderr"].open("a+b", 0) as stderr:
            disk = BoundedTranscript({"stdout": stdout.fileno(), "stderr": stderr.fileno()}, limit)
            for stream, size in writes:
                before = len(whole[stream])
                data = counted(before + size)[before:]
                disk.write(stream, data)
                whole[stream] += data
            printed: dict[Stream, int] = {name: len(said) for name, said in whole.items()}
            kept = disk.finish(printed, direct=False)
            if disk.trouble == NO_HOLES:
                pytest.skip("this file system can't punch holes")
            assert disk.trouble == ""
            for stream in STREAMS:
                assert kept[stream].size == len(whole[stream])
                check_kept(paths[stream], whole[stream], kept[stream])
            assert sum(one.bytes for one in kept.values()) <= limit
            assert sum(map(used, paths.values())) <= limit + 16 * BLOCK


# -- real programs: complete output --------------------------------------------------------


def acknowledge(studio: Studio) -> Listener:
    """Answer every piece of output with a file `1`, `2`, ... that the program waits for."""
    answers = 0

    def listen(event: Event) -> None:
        nonlocal answers
        if isinstance(event, Output):
            answers += event.data.count(b"\n")
            (studio.folder / str(answers)).touch()

    return listen


def waits_for(name: object) -> str:
    return f"while ! test -e {name}; do sleep 0.002; done"


@pytest.mark.real
@BOTH_CAPTURES
def test_streams_are_separate_and_combined_in_order_of_arrival(
    studio: Studio, capture: Capture
) -> None:
    lines = ["out 1", "err 2", "err 3", "out 4", "err 5", "out 6", "out 7", "err 8"]
    body = "; ".join(
        f"echo {line}{' >&2' if 'err' in line else ''}; {waits_for(n)}"
        for n, line in enumerate(lines, 1)
    )
    result = studio.sh(body, capture, acknowledge(studio))
    assert result.exit == Exited(0)
    assert result.stdout.tail == b"out 1\nout 4\nout 6\nout 7\n"
    assert result.stderr.tail == b"err 2\nerr 3\nerr 5\nerr 8\n"
    together = "".join(f"{line}\n" for line in lines).encode()
    assert studio.output() == together
    assert result.order is not None
    assert combined(result.order, result.stdout.tail, result.stderr.tail) == together
    on_disk = [studio.transcripts[stream].read_bytes() for stream in STREAMS]
    assert combined(result.order, *on_disk) == together


@pytest.mark.real
@BOTH_CAPTURES
def test_transcript_is_exactly_the_output(studio: Studio, capture: Capture) -> None:
    body = """
import os
for n in range(200):
    os.write(1, bytes(range(256)) * 40)
    os.write(2, b"\\xff\\x00\\r\\x1b[2J" * n)
os.write(1, b"no newline at the end")
"""
    result = studio.python(body, capture)
    stdout = bytes(range(256)) * 40 * 200 + b"no newline at the end"
    stderr = b"".join(b"\xff\x00\r\x1b[2J" * n for n in range(200))
    assert result.stdout.tail == studio.output("stdout") == stdout
    assert result.stderr.tail == studio.output("stderr") == stderr
    assert studio.transcripts["stdout"].read_bytes() == stdout
    assert studio.transcripts["stderr"].read_bytes() == stderr
    assert result.kept is not None
    assert all(kept.is_whole for kept in result.kept.values())
    assert [kept.bytes for kept in result.kept.values()] == [len(stdout), len(stderr)]
    assert not studio.events_of(TranscriptTrimmed)


@pytest.mark.real
@BOTH_CAPTURES
def test_each_iteration_has_its_own_transcript(studio: Studio, capture: Capture) -> None:
    studio.sh("echo a long first word", capture)
    studio.sh("echo second", capture)
    assert studio.transcripts["stdout"].read_bytes() == b"second\n"


@pytest.mark.real
def test_file_capture_is_complete_for_non_blocking_writes(studio: Studio) -> None:
    body = """
import os
os.set_blocking(1, False)
data, sent = b"%15d\\n" * 524288 % tuple(range(524288)), 0
try:
    while sent < len(data):
        sent += os.write(1, data[sent:])
finally:
    os._exit(0)
"""
    result = studio.python(body, "file")
    assert result.exit == Exited(0)
    assert result.stdout.tail == counted(8 * MEGABYTE)


@pytest.mark.real
def test_pipes_work_without_a_transcript(studio: Studio) -> None:
    result = studio.run(("sh", "-c", "echo out; echo err >&2"), None)
    assert (result.stdout.tail, result.stderr.tail) == (b"out\n", b"err\n")
    assert result.kept is None


# -- real programs: the transcript limit ---------------------------------------------------

FLOOD = """
import os, sys
def counted(first, last):
    return b"%15d\\n" * (last - first) % tuple(range(first, last))
for block in range({blocks}):
    data = counted(block * 16384, (block + 1) * 16384)
    for stream in {streams}:
        rest = data
        while rest:
            rest = rest[os.write(stream, rest):]
"""
BLOCKS = 32  # of 256 kB


def flood(blocks: int, *streams: int) -> str:
    return FLOOD.format(blocks=blocks, streams=streams)


def skip_without_holes(studio: Studio) -> None:
    if any(
        isinstance(event, TranscriptTrimmed) and event.reason == NO_HOLES for event in studio.events
    ):
        pytest.skip("this file system can't punch holes")


def check_transcripts(studio: Studio, result: ProcessResult, limit: int, **sizes: int) -> None:
    """Head and tail are on disk within the limit, and the events report the right sizes."""
    assert result.kept is not None
    paths = studio.transcripts
    for stream in STREAMS:
        kept, whole = result.kept[stream], counted(sizes[stream])
        assert kept.size == len(whole)
        check_kept(paths[stream], whole, kept)
    assert sum(kept.bytes for kept in result.kept.values()) <= limit
    assert sum(map(used, paths.values())) <= limit + 16 * BLOCK
    assert studio.events_of(TranscriptTrimmed) == [
        TranscriptTrimmed(stream, kept.size, kept.bytes)
        for stream, kept in result.kept.items()
        if not kept.is_whole
    ]


@pytest.mark.real(rows=1)
@BOTH_CAPTURES
def test_head_and_tail_of_a_flood_stay_on_disk(studio: Studio, capture: Capture) -> None:
    limit, size = MEGABYTE, BLOCKS * 16384 * 16
    result = studio.python(flood(BLOCKS, 1), capture, limit=limit)
    skip_without_holes(studio)
    assert result.stdout.total == size
    assert result.stdout.tail == counted(size)[-10_000_000:]
    check_transcripts(studio, result, limit, stdout=size, stderr=0)
    assert result.kept is not None
    kept = result.kept["stdout"]
    assert abs(kept.head - limit // 2) <= BLOCK
    assert abs((kept.size - kept.tail) - limit // 2) <= BLOCK
    assert result.kept["stderr"] == KeptBytes(0, 0, 0)


@pytest.mark.real(rows=1)
@BOTH_CAPTURES
def test_two_floods_share_the_disk(studio: Studio, capture: Capture) -> None:
    limit, size = MEGABYTE, BLOCKS // 2 * 16384 * 16
    result = studio.python(flood(BLOCKS // 2, 1, 2), capture, limit=limit)
    skip_without_holes(studio)
    check_transcripts(studio, result, limit, stdout=size, stderr=size)
    assert result.kept is not None
    assert all(kept.bytes >= limit // 2 - BLOCK for kept in result.kept.values())


@pytest.mark.real(rows=1)
@BOTH_CAPTURES
def test_flood_leaves_room_for_the_other_stream(studio: Studio, capture: Capture) -> None:
    body = flood(BLOCKS, 2) + "os.write(1, counted(0, 1000))"
    result = studio.python(body, capture, limit=MEGABYTE)
    skip_without_holes(studio)
    check_transcripts(studio, result, MEGABYTE, stdout=16_000, stderr=BLOCKS * 16384 * 16)
    assert result.kept is not None
    assert result.kept["stdout"].is_whole


@pytest.mark.long
def test_flood_through_pipes_is_always_within_the_limit(studio: Studio) -> None:
    most = 0

    def listen(event: Event) -> None:
        nonlocal most
        if isinstance(event, Output):
            most = max(most, used(studio.transcripts["stdout"]))

    studio.python(flood(4 * BLOCKS, 1), "pipe", listen, limit=MEGABYTE)
    skip_without_holes(studio)
    # The limit, one read, and the step by which the hole grows.
    assert most <= 4 * MEGABYTE


@pytest.mark.long
@BOTH_CAPTURES
def test_trimmed_transcript_is_reported(
    workspace: Workspace, nursery: Nursery, capture: Capture
) -> None:
    agent = workspace.python_agent(flood(BLOCKS, 1) + f"print({TAG.decode()!r})")
    words = ("--capture", capture, "--max-transcript", "1MB")
    done = nursery.start(workspace, "work", "--ai-cmd", agent, *words).finish()
    assert done.code == 0
    size = BLOCKS * 16384 * 16 + len(TAG) + 1
    warning = f"WARN: Not all of the output is kept on disk stream=stdout size={size} kept="
    lines = [line for line in done.log if line.startswith(warning)]
    assert len(lines) == 1, done.err
    transcript = workspace.kept() / "stdout.log"
    assert transcript.stat().st_size == size
    if "file system" not in lines[0]:
        assert used(transcript) <= MEGABYTE + 16 * BLOCK
        kept, _, reason = lines[0].removeprefix(warning).partition(" ")
        assert (int(kept) <= MEGABYTE, reason) == (True, "reason=max_transcript")
        assert transcript.read_bytes().endswith(TAG + b"\n")


# -- file systems without holes, and full disks --------------------------------------------


def on_disk(
    nursery: Nursery, workspace: Workspace, disk: tuple[str, str], agent: str, *args: str
) -> Finished:
    """Run an agent in a work folder that is its own disk; copy `.rooda` to `kept`."""
    kind, options = disk
    before = mounted(kind, workspace.path, workspace.home / "kept", options)
    path = workspace.home / "agent.py"
    command = workspace.python_agent(agent, str(path))
    bounds = ("-n", "1", "--iteration-timeout", "30", "--min-free-disk", "0")
    return nursery.start(
        workspace, "work", "--ai-cmd", command, *bounds, *args, before=before
    ).finish(50)


def kept_on_disk(workspace: Workspace) -> bytes:
    return (kept_in(workspace.home / "kept") / "stdout.log").read_bytes()


RAMFS = ("ramfs", "")
SMALL = ("tmpfs", "size=2m")
FLOOD_AND_SUCCESS = flood(BLOCKS, 1) + f"print({TAG.decode()!r}, flush=True)"


@pytest.mark.long
def test_pipe_transcript_ends_at_the_limit_on_a_disk_without_holes(
    workspace: Workspace, nursery: Nursery
) -> None:
    words = ("--capture", "pipe", "--max-transcript", "1MB")
    done = on_disk(nursery, workspace, RAMFS, FLOOD_AND_SUCCESS, *words)
    assert done.code == 0, done.err
    kept = kept_on_disk(workspace)
    assert MEGABYTE <= len(kept) <= 4 * MEGABYTE
    assert kept == counted(len(kept))
    warnings = [line for line in done.log if "Not all of the output is kept on disk" in line]
    assert len(warnings) == 1, done.err
    assert f"size={BLOCKS * 16384 * 16 + len(TAG) + 1} kept={len(kept)} " in warnings[0]
    assert NO_HOLES in warnings[0]


@pytest.mark.long
def test_file_transcript_is_cut_to_the_limit_on_a_disk_without_holes(
    workspace: Workspace, nursery: Nursery
) -> None:
    words = ("--capture", "file", "--max-transcript", "1MB")
    done = on_disk(nursery, workspace, RAMFS, FLOOD_AND_SUCCESS, *words)
    assert done.code == 0, done.err
    kept = kept_on_disk(workspace)
    assert kept == counted(MEGABYTE)
    warnings = [line for line in done.log if "Not all of the output is kept on disk" in line]
    assert len(warnings) == 1, done.err
    assert f"size={BLOCKS * 16384 * 16 + len(TAG) + 1} kept={MEGABYTE} " in warnings[0]
    assert NO_HOLES in warnings[0]


@pytest.mark.real(rows=1)
@BOTH_CAPTURES
def test_short_transcript_needs_no_holes(
    workspace: Workspace, nursery: Nursery, capture: Capture
) -> None:
    agent = f"print('hello'); print({TAG.decode()!r})"
    done = on_disk(nursery, workspace, RAMFS, agent, "--capture", capture)
    assert done.code == 0, done.err
    assert "Not all of the output is kept on disk" not in done.err
    assert kept_on_disk(workspace) == b"hello\n" + TAG + b"\n"


@pytest.mark.long
def test_disk_of_unknown_size_is_not_reported_as_full(
    workspace: Workspace, nursery: Nursery
) -> None:
    done = on_disk(nursery, workspace, RAMFS, f"print({TAG.decode()!r})", "--capture", "file")
    assert done.code == 0, done.err
    assert "space left" not in done.err


@pytest.mark.long
def test_pipe_capture_keeps_the_outcome_on_a_full_disk(
    workspace: Workspace, nursery: Nursery
) -> None:
    done = on_disk(nursery, workspace, SMALL, FLOOD_AND_SUCCESS, "--capture", "pipe")
    assert done.code == 0, done.err
    assert "Traceback" not in done.err
    kept = kept_on_disk(workspace)
    assert kept == counted(len(kept))
    assert MEGABYTE <= len(kept) <= 2 * MEGABYTE
    warnings = [line for line in done.log if "Not all of the output is kept on disk" in line]
    assert len(warnings) == 1, done.err
    assert f"size={BLOCKS * 16384 * 16 + len(TAG) + 1} kept={len(kept)} " in warnings[0]
    assert "No space left on device" in warnings[0]


@pytest.mark.long
def test_file_capture_fails_the_iteration_cleanly_on_a_full_disk(
    workspace: Workspace, nursery: Nursery
) -> None:
    """The agent itself gets ENOSPC, and can't print its promise."""
    done = on_disk(nursery, workspace, SMALL, FLOOD_AND_SUCCESS, "--capture", "file")
    assert done.code == 2, done.err
    assert "Iteration 1/1 failed" in done.err or "consecutive: 1/3" in done.err, done.err
    assert "Internal error" not in done.err
    assert not [line for line in done.err.splitlines() if line.startswith("Traceback")]
    kept = kept_on_disk(workspace)
    assert kept == counted(len(kept))


@pytest.mark.long
@BOTH_CAPTURES
def test_agent_that_fills_its_disk(
    workspace: Workspace, nursery: Nursery, capture: Capture
) -> None:
    """With pipes rooda still gets the output; with files there is no room for it."""
    fill = f"""
import os
with open({str(workspace.state / "big")!r}, "wb", 0) as file:
    try:
        while True:
            file.write(b"x" * 4096)
    except OSError:
        pass
os.write(1, b"the disk is full\\n")
"""
    agent = fill + (f"print({TAG.decode()!r})" if capture == "pipe" else "")
    done = on_disk(nursery, workspace, SMALL, agent, "--capture", capture)
    assert "Internal error" not in done.err
    assert done.code == (0 if capture == "pipe" else 2), done.err
    if capture == "pipe":
        assert "Not all of the output is kept on disk" in done.err


# -- programs that change their transcript -------------------------------------------------


@pytest.mark.real
@BOTH_CAPTURES
def test_program_that_reopens_its_stdout_is_followed(studio: Studio, capture: Capture) -> None:
    body = "; ".join(
        [
            f"echo the first words; {waits_for(1)}",
            f"echo second > /dev/stdout; {waits_for(2)}",
            f"echo third; {waits_for(3)}",
            f"echo fourth > /dev/stdout; {waits_for(4)}",
            "echo fifth",
        ]
    )
    result = studio.sh(body, capture, acknowledge(studio), timeout=20)
    assert result.exit == Exited(0)
    whole = b"the first words\nsecond\nthird\nfourth\nfifth\n"
    assert studio.output("stdout") == result.stdout.tail == whole
    left = b"fourth\nfifth\n" if capture == "file" else whole
    assert studio.transcripts["stdout"].read_bytes() == left
    assert result.kept is not None
    assert result.kept["stdout"].size == len(left)


TRUNCATES = """
os.write(1, b"end of the flood\\n")
import time
while not os.path.exists("go"): time.sleep(0.002)
open("/dev/stdout", "w").close()
"""


def go_after_the_flood(studio: Studio) -> Listener:
    """Let the program truncate its output, after rooda has punched a hole into it."""

    def listen(event: Event) -> None:
        if isinstance(event, Output) and event.data.endswith(b"end of the flood\n"):
            (studio.folder / "go").touch()

    return listen


@pytest.mark.real
def test_program_that_truncates_its_output_after_a_flood_has_a_whole_transcript(
    studio: Studio,
) -> None:
    """The hole was in the part that the program truncated."""
    body = flood(BLOCKS, 1) + TRUNCATES + "os.write(1, b'all that is left\\n')"
    listener = go_after_the_flood(studio)
    result = studio.python(body, "file", listener, limit=MEGABYTE)
    assert result.stdout.tail.endswith(b"end of the flood\nall that is left\n")
    assert studio.transcripts["stdout"].read_bytes() == b"all that is left\n"
    assert result.kept is not None
    assert result.kept["stdout"].is_whole
    assert result.kept["stdout"].bytes == len(b"all that is left\n")
    assert not studio.events_of(TranscriptTrimmed)


@pytest.mark.real
def test_program_that_truncates_and_floods_again_stays_within_the_limit(studio: Studio) -> None:
    body = flood(BLOCKS, 1) + TRUNCATES + flood(BLOCKS // 2, 1)
    listener = go_after_the_flood(studio)
    result = studio.python(body, "file", listener, limit=MEGABYTE)
    skip_without_holes(studio)
    check_transcripts(studio, result, MEGABYTE, stdout=BLOCKS // 2 * 16384 * 16, stderr=0)


@pytest.mark.real
@BOTH_CAPTURES
def test_deleted_transcript_is_still_followed(studio: Studio, capture: Capture) -> None:
    delete = f"rm -r {state_of(studio.folder)}"
    body = f"echo before; {waits_for(1)}; {delete}; echo after; {waits_for(2)}; echo end"
    result = studio.sh(body, capture, acknowledge(studio))
    assert result.exit == Exited(0)
    assert studio.output("stdout") == result.stdout.tail == b"before\nafter\nend\n"
    assert not (state_of(studio.folder)).exists()


@pytest.mark.long
@BOTH_CAPTURES
def test_promise_counts_although_the_transcript_was_deleted(
    workspace: Workspace, nursery: Nursery, capture: Capture
) -> None:
    agent = workspace.agent(f"rm -rf $STATE; {SUCCESS}")
    done = nursery.start(workspace, "work", "--ai-cmd", agent, "--capture", capture).finish()
    assert done.code == 0, done.err


# -- delay ---------------------------------------------------------------------------------

PRINTER = f"""
import os, time
for _ in range(15):
    os.write(1, b"at %.6f\\n" % time.time())
    time.sleep(0.07)
print({TAG.decode()!r})
"""


def delays(
    workspace: Workspace, nursery: Nursery, capture: Capture, before: tuple[str, ...] = ("env",)
) -> list[float]:
    """The delay of each line, from the agent's write to the output of rooda."""
    agent = workspace.python_agent(PRINTER)
    running = nursery.start(
        workspace, "work", "--ai-cmd", agent, "--verbose", "--capture", capture, before=before
    )
    assert running.process.stdout is not None
    found = []
    for line in running.process.stdout:
        now = time.time()
        if line.startswith("at "):
            found.append(now - float(line.split()[1]))
    done = running.finish()
    assert done.code == 0, done.err
    assert len(found) == 15
    return found


@pytest.mark.real(rows=1)
@BOTH_CAPTURES
def test_line_is_shown_within_100_ms(
    workspace: Workspace, nursery: Nursery, capture: Capture
) -> None:
    assert statistics.median(delays(workspace, nursery, capture)) < 0.1


@pytest.mark.long
def test_line_is_shown_within_100_ms_without_inotify(
    workspace: Workspace, nursery: Nursery
) -> None:
    allowed = Path("/proc/sys/user/max_inotify_instances")
    if not allowed.exists():
        pytest.skip("inotify can't be disabled here")
    before = ("unshare", "-Ur", "sh", "-c", f'echo 0 > {allowed}; exec "$@"', "sh")
    test = subprocess.run([*before, "true"], capture_output=True, text=True, check=False)
    if test.returncode or test.stderr:
        pytest.skip(f"inotify can't be disabled here: {test.stderr.strip()}")
    found = delays(workspace, nursery, "file", before)
    assert statistics.median(found) < 0.1
    assert max(found) > 0.02, "inotify was still active, so this test proves nothing"
