"""TailBuffer: the head, the tail and the size of a stream, however the stream is cut up."""

import tracemalloc
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rooda.world.process.capture.buffers import HEAD, Captured, TailBuffer
from support.properties import examples

# Every four bytes are different, so that a shift by one byte is detected.
STREAM = b"".join(n.to_bytes(4, "big") for n in range(100_000))


def captured_from(pieces: list[bytes], limit: int) -> Captured:
    buffer = TailBuffer(limit)
    for piece in pieces:
        buffer.append(piece)
    return buffer.captured()


@given(pieces=st.lists(st.binary(max_size=40), max_size=60), limit=st.integers(1, 300))
@examples()
def test_small_pieces_give_the_same_capture_as_the_whole(pieces: list[bytes], limit: int) -> None:
    whole = b"".join(pieces)
    captured = captured_from(pieces, limit)
    assert captured == Captured(whole[:HEAD], whole[-limit:], len(whole))
    assert captured.truncated == (len(whole) > limit)


@given(
    size=st.integers(0, len(STREAM)),
    cuts=st.lists(st.integers(0, len(STREAM)), max_size=30),
    limit=st.integers(1, len(STREAM) + 10),
)
@examples()
def test_large_pieces_give_the_same_capture_as_the_whole(
    size: int, cuts: list[int], limit: int
) -> None:
    whole = STREAM[:size]
    places = [0, *sorted(cut for cut in cuts if cut < size), size]
    captured = captured_from([whole[start:end] for start, end in pairwise(places)], limit)
    assert captured == Captured(whole[:HEAD], whole[-limit:], size)


@pytest.mark.parametrize(
    "printed,dropped", [(0, 0), (1023, 0), (1024, 0), (1025, 1), (400_000, 398_976)]
)
def test_only_output_over_the_limit_is_truncated(printed: int, dropped: int) -> None:
    captured = captured_from([STREAM[:printed]], 1024)
    assert captured.truncated is (dropped > 0)
    assert captured.total - len(captured.tail) == dropped
    assert captured.tail == STREAM[:printed][-1024:]


def test_reading_the_tail_between_appends_changes_nothing() -> None:
    buffer = TailBuffer(1024)
    for start in range(0, len(STREAM), 50_000):
        buffer.append(STREAM[start : start + 50_000])
        assert buffer.captured().tail == STREAM[: start + 50_000][-1024:]


@pytest.mark.long
def test_single_bytes_cost_little_more_memory_than_the_limit() -> None:
    limit, printed = 30_000, 120_000
    buffer = TailBuffer(limit)
    tracemalloc.start()
    try:
        for position in range(printed):
            buffer.append(STREAM[position : position + 1])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 500_000  # thirty thousand objects of one byte each take three times that
    assert buffer.captured() == Captured(STREAM[:HEAD], STREAM[:printed][-limit:], printed)


def test_megabytes_cost_little_more_memory_than_the_limit() -> None:
    limit = 1_000_000
    buffer = TailBuffer(limit)
    tracemalloc.start()
    try:
        for _ in range(100):
            buffer.append(STREAM[:256_000])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 3 * limit
    assert buffer.captured().total == 25_600_000


@given(
    size=st.integers(0, len(STREAM)),
    cuts=st.lists(st.integers(0, len(STREAM)), max_size=10),
    limit=st.integers(1, 200_000),
    count=st.integers(0, 1000),
)
@examples()
def test_last_returns_the_last_bytes(size: int, cuts: list[int], limit: int, count: int) -> None:
    whole = STREAM[:size]
    buffer = TailBuffer(limit)
    for start, end in pairwise([0, *sorted(cut for cut in cuts if cut < size), size]):
        buffer.append(whole[start:end])
        buffer.tail()
    wanted = min(count, limit)
    assert buffer.last(wanted) == whole[len(whole) - min(wanted, size) :]
    assert buffer.truncated == (size > limit)
