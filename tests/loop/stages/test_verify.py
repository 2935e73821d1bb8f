"""Whether two checks failed in the same way."""

from pathlib import Path

import pytest

from rooda.loop.stages.verify import failure_digest, last_lines

HERE, THERE = Path("/slots/1/tree"), Path("/slots/27/tree")


def same(one: str, other: str) -> bool:
    return last_lines(one, HERE) == last_lines(other, THERE)


@pytest.mark.parametrize(
    "one,other",
    [
        ("1 failed, 3 passed in 0.12s", "1 failed, 3 passed in 12.50s"),
        ("===== 1 failed in 0.12s =====", "======= 1 failed in 61.20s ======="),
        ("Ran 3 tests in 0.001s", "Ran 3 tests in 0.017s"),
        ("Time:        0.5 s, estimated 1 s", "Time:        12 s, estimated 3 s"),
        ("--- FAIL: TestX (0.00s)", "--- FAIL: TestX (0.31s)"),
        ("Finished in 1 minute 2.3 seconds", "Finished in 2 minutes 14 seconds"),
        ("Total time: 1m23s", "Total time: 5s"),
        ("# duration_ms 63.1", "# duration_ms 7"),
        ("Time: 00:00.012, Memory: 6.00 MB", "Time: 00:01.400, Memory: 8.00 MB"),
        ("[INFO] Finished at: 2026-11-18T16:17:56Z", "[INFO] Finished at: 2026-11-19T01:02:03Z"),
        ("[12:01:02] failed", "[23:59:59] failed"),
        ("/h/2026-11-18T16_17_56_016Z-debug-0.log", "/h/2026-11-19T06_10_00_1Z-debug-0.log"),
        ("<X object at 0x7f1122334455>", "<X object at 0x7fffffffaaaa>"),
        ("==1234==ERROR: AddressSanitizer", "==99==ERROR: AddressSanitizer"),
        ("killed pid 1234", "killed pid 7"),
        ("no file /tmp/tmpab12cd/out.txt", "no file /tmp/tmpzz99xx/out.txt"),
        ("/tmp/pytest-of-me/pytest-12/test_a0/x", "/tmp/pytest-of-me/pytest-13/test_a0/x"),
        ("/var/folders/ab/c1_2/T/tmp.x1/a", "/var/folders/ab/c1_2/T/tmp.y2/a"),
        ("connect to 127.0.0.1:41234 failed", "connect to 127.0.0.1:35001 failed"),
        ("Randomized with seed 1234", "Randomized with seed 99"),
        (f"make: Leaving directory '{HERE}/sub'", f"make: Leaving directory '{THERE}/sub'"),
        ("\n".join(f"line {n}" for n in range(99)), "\n".join(f"line {n}" for n in range(50, 99))),
        ("a\n\n\nb\n", "a\nb"),
    ],
)
def test_times_places_and_addresses_make_no_difference(one: str, other: str) -> None:
    assert same(one, other)


@pytest.mark.parametrize(
    "one,other",
    [
        ("1 failed, 3 passed in 0.12s", "2 failed, 3 passed in 0.12s"),
        ("FAILED test_a.py::test_x", "FAILED test_a.py::test_y"),
        ("a.c:12:34: error: no x", "a.c:13:34: error: no x"),
        ("no file /tmp/tmpab12cd/a.txt", "no file /tmp/tmpab12cd/b.txt"),
        ("expected 5, got 6", "expected 5, got 7"),
        ("make: *** [Makefile:2: test] Error 1", "make: *** [Makefile:3: test] Error 1"),
        ("a\nb\nc", "b\nc"),
    ],
)
def test_other_tests_lines_and_numbers_make_a_difference(one: str, other: str) -> None:
    assert not same(one, other)


def test_digest_differs_with_exit_code_and_command_and_is_empty_without_output() -> None:
    digest = failure_digest(1, "make", "broken", HERE)
    assert digest == failure_digest(1, "make", "broken\n", THERE)
    assert digest != failure_digest(2, "make", "broken", HERE)
    assert digest != failure_digest(1, "make test", "broken", HERE)
    assert failure_digest(1, "make", " \n", HERE) == ""
