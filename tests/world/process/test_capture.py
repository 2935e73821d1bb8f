"""The tail, order and disk shares of two streams do not depend on how the output is cut up."""

from itertools import accumulate, pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rooda.loop.stages.promises import Prompt, Words, scan
from rooda.world.process.capture.buffers import StreamOrder, TailBuffer, combined
from rooda.world.process.capture.disk import BLOCK, hole, shares
from rooda.world.process.events import Stream
from support.properties import examples

MEGABYTE = 1024 * 1024
TAG = b"<promise>SUCCESS</promise>"
SUCCESS = f"echo '{TAG.decode()}'"
STREAMS: tuple[Stream, Stream] = ("stdout", "stderr")


# -- the tail, and the scan of it ----------------------------------------------------------


def cut(whole: bytes, places: list[int]) -> list[bytes]:
    """Cut the bytes into pieces, some of them empty."""
    inside = sorted(min(place, len(whole)) for place in places)
    return [whole[start:end] for start, end in pairwise([0, *inside, len(whole)])]


PROMPT = Prompt(
    b"# Task\nDo it. When nothing is left to do, print:\n\n<promise>SUCCESS</promise>\n\n"
    b"- Blocked: print <promise>FAILURE</promise> as the last line.\n"
)
# What may confuse a scan: halves of tags, echoes, colors, broken characters.
OUTPUT = st.lists(
    st.sampled_from(
        [
            TAG,
            b"<promise>FAILURE</promise>",
            b"<promise>SUC",
            b"CESS</promise>",
            b"Do it. When nothing is left to do, print:\n",
            b"- Blocked: print <promise>FAILURE</promise> as the last line.",
            b"> ",
            b"12: ",
            b"\n",
            b"\r\n",
            b"\x1b[1m",
            b"\x1b]0;title\x07",
            b"\xe2\x94",
            b"\xff\x00",
            b'{"text": "',
            b"\\n",
            b" ",
        ]
    )
    | st.binary(max_size=12),
    max_size=40,
).map(b"".join)
PLACES = st.lists(st.integers(0, 600), max_size=50)


@pytest.mark.real
@given(OUTPUT, PLACES, st.integers(1, 400), st.booleans(), st.sampled_from([PROMPT, Prompt(b"")]))
@examples(300)
def test_scan_of_a_tail_does_not_depend_on_the_pieces(
    whole: bytes,
    places: list[int],
    limit: int,
    last_line: bool,  # noqa: FBT001 - an example
    prompt: Prompt,
) -> None:
    words = Words("SUCCESS", "FAILURE", last_line_only=last_line)
    buffer = TailBuffer(limit)
    for piece in cut(whole, places):
        buffer.append(piece)
    captured = buffer.captured()
    assert captured.tail == whole[-limit:]
    assert captured.truncated == (len(whole) > limit)
    found = scan(captured.tail, words, prompt, truncated=captured.truncated)
    assert found == scan(whole[-limit:], words, prompt, truncated=len(whole) > limit)
    if not captured.truncated:
        assert found == scan(whole, words, prompt)


@given(st.binary(max_size=500), PLACES, st.integers(len(TAG) + 1, 200))
@examples()
def test_promise_at_the_end_is_found_in_any_pieces(
    before: bytes, places: list[int], limit: int
) -> None:
    buffer = TailBuffer(limit)
    for piece in cut(before + b"\n" + TAG, places):
        buffer.append(piece)
    captured = buffer.captured()
    words = Words("SUCCESS", "FAILURE")
    assert scan(captured.tail, words, PROMPT, truncated=captured.truncated).success


# -- the order of arrival ------------------------------------------------------------------

# The two streams have no byte in common, so that a test can separate a mixture of both.
ARRIVALS = st.lists(
    st.one_of(
        st.tuples(
            st.just("stdout"), st.binary(max_size=5).map(lambda b: bytes(x & 127 for x in b))
        ),
        st.tuples(
            st.just("stderr"), st.binary(max_size=5).map(lambda b: bytes(x | 128 for x in b))
        ),
    ),
    max_size=80,
)
Arrivals = list[tuple[Stream, bytes]]


def recorded(arrivals: Arrivals, order: StreamOrder) -> tuple[bytes, bytes]:
    """Add the arrivals to the order; return all bytes of each stream."""
    output: dict[Stream, bytes] = dict.fromkeys(STREAMS, b"")
    for stream, data in arrivals:
        order.add(stream, len(data))
        output[stream] += data
    return output["stdout"], output["stderr"]


def of_stdout(mixed: bytes) -> bytes:
    return bytes(byte for byte in mixed if byte < 128)


def of_stderr(mixed: bytes) -> bytes:
    return bytes(byte for byte in mixed if byte >= 128)


@given(ARRIVALS)
def test_combined_output_is_in_order_of_arrival(arrivals: Arrivals) -> None:
    order = StreamOrder()
    stdout, stderr = recorded(arrivals, order)
    assert combined(order, stdout, stderr) == b"".join(data for _, data in arrivals)


@given(ARRIVALS, st.integers(4, 20))
def test_coarse_order_loses_and_mixes_nothing(arrivals: Arrivals, most: int) -> None:
    order = StreamOrder(most)
    stdout, stderr = recorded(arrivals, order)
    mixed = combined(order, stdout, stderr)
    assert (of_stdout(mixed), of_stderr(mixed)) == (stdout, stderr)
    assert len(list(order.pieces())) <= most
    for stream, output in (("stdout", stdout), ("stderr", stderr)):
        assert sum(length for name, length in order.pieces() if name == stream) == len(output)


def test_coarse_order_is_exact_for_recent_output() -> None:
    order = StreamOrder(64)
    arrivals: Arrivals = [(STREAMS[n % 2], b"%03d" % n) for n in range(1000)]
    mixed = combined(order, *recorded(arrivals, order))
    assert len(list(order.pieces())) <= 64
    found = [int(mixed[place : place + 3]) for place in range(0, len(mixed), 3)]
    assert all(abs(found[place] - place) <= 2 for place in range(970, 1000))


@given(ARRIVALS, st.integers(0, 60), st.integers(0, 60))
def test_tails_are_combined_in_the_order_of_the_whole(
    arrivals: Arrivals, out_kept: int, err_kept: int
) -> None:
    order = StreamOrder()
    stdout, stderr = recorded(arrivals, order)
    out_tail, err_tail = stdout[len(stdout) - out_kept :], stderr[len(stderr) - err_kept :]
    if out_kept > len(stdout):
        out_tail = stdout
    if err_kept > len(stderr):
        err_tail = stderr
    skip = {True: len(stdout) - len(out_tail), False: len(stderr) - len(err_tail)}
    expected = bytearray()
    for byte in b"".join(data for _, data in arrivals):
        if skip[byte < 128]:
            skip[byte < 128] -= 1
        else:
            expected.append(byte)
    assert combined(order, out_tail, err_tail) == expected


@given(ARRIVALS, st.sampled_from([8, 1000]))
def test_order_survives_dump_and_load(arrivals: Arrivals, most: int) -> None:
    order = StreamOrder(most)
    stdout, stderr = recorded(arrivals, order)
    loaded = StreamOrder.load(order.dump())
    assert list(loaded.pieces()) == list(order.pieces())
    assert combined(loaded, stdout, stderr) == combined(order, stdout, stderr)
    for one in (order, loaded):
        one.add("stderr", 3)
    assert list(loaded.pieces())[-1] == list(order.pieces())[-1]


@given(ARRIVALS, st.binary(max_size=7))
def test_truncated_dump_of_an_order_can_be_loaded(arrivals: Arrivals, torn: bytes) -> None:
    order = StreamOrder()
    stdout, stderr = recorded(arrivals, order)
    loaded = StreamOrder.load(order.dump() + torn)
    assert combined(loaded, stdout, stderr) == combined(order, stdout, stderr)


def test_bytes_missing_from_the_order_come_last() -> None:
    order = StreamOrder()
    order.add("stderr", 2)
    order.add("stdout", 2)
    assert combined(order, b"ab more", b"cd") == b"cdab more"
    assert combined(StreamOrder(), b"out", b"err") == b"outerr"


# -- transcript limit: the arithmetic ------------------------------------------------------

LEAST = 64 * 1024  # the least that `max_transcript` may be
LIMITS = st.integers(LEAST, 3 * MEGABYTE)
SIZES = st.integers(0, 8 * MEGABYTE)


@given(LIMITS, SIZES, SIZES)
def test_shares_are_fair_and_within_the_limit(limit: int, first: int, second: int) -> None:
    mine, other = shares(limit, first, second)
    assert mine + other <= limit
    assert shares(limit, second, first) in ((other, mine), (other - 1, mine + 1), (mine, other))
    if first + second <= limit:
        assert (mine, other) == (first, second)
    else:
        assert mine >= min(first, limit // 2)
        assert other >= min(second, limit // 2)
        assert mine + other >= limit - 1


@given(LIMITS, SIZES, SIZES)
def test_head_and_tail_are_kept_within_the_limit(limit: int, first: int, second: int) -> None:
    kept = 0
    for size, share in zip((first, second), shares(limit, first, second), strict=True):
        start, end = hole(size, share)
        assert start % BLOCK == end % BLOCK == 0
        assert 0 <= start <= end <= size
        left = size - (end - start)
        kept += left
        if size <= share:
            assert (start, end) == (0, 0)
        else:
            assert share - BLOCK < left <= share
            assert share // 2 - BLOCK < start <= share // 2
            assert size - end >= share // 2 - BLOCK
    assert kept <= limit


GROWTH = st.lists(
    st.tuples(st.integers(0, MEGABYTE), st.integers(0, MEGABYTE)), min_size=1, max_size=12
)


@given(LIMITS, GROWTH)
# With an odd limit the longer stream gets one byte more: here that is a block of its head.
@example(16384 * 5 - 1, [(50_000, 60_000), (20_000, 0)])
def test_larger_hole_covers_the_smaller_one(limit: int, growth: list[tuple[int, int]]) -> None:
    """Bytes that were punched out can't come back."""
    holes = [(0, 0), (0, 0)]
    for sizes in accumulate(growth, lambda a, b: (a[0] + b[0], a[1] + b[1])):
        for place, share in enumerate(shares(limit, *sizes)):
            start, end = hole(sizes[place], share)
            old_start, old_end = holes[place]
            if end - start <= old_end - old_start:
                continue
            holes[place] = (start, end)
            if old_end:
                assert start <= old_start, f"hole {start}-{end} after {old_start}-{old_end}"
                assert end >= old_end, f"hole {start}-{end} after {old_start}-{old_end}"
