"""Report files: which of them count, and what an agent may have put in their place."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from rooda.testresults.junit_xml import LARGEST
from rooda.testresults.read import read_outputs
from rooda.testresults.report_files import matching, read_reports
from rooda.testresults.results import TestDetail, TestStatus
from support.outputs import counts

LONG_AGO = 1_000_000_000.0
PASSED = '<testsuite name="{0}"><testcase name="{0} works"/></testsuite>'
FAILED = '<testsuite name="{0}"><testcase name="{0} works"><failure/></testcase></testsuite>'


def write(path: Path, text: str | bytes = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def passed(path: Path) -> Path:
    """A report of one test that passed, like no other report."""
    return write(path, PASSED.format(path.name))


# -- which files -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "pattern,expected",
    [
        ("report.xml", {"report.xml"}),
        ("./report.xml", {"report.xml"}),
        ("*.xml", {"report.xml"}),
        ("build/*.xml", {"build/a.xml"}),
        ("build/test-results/*/TEST-*.xml", {"build/test-results/test/TEST-x.xml"}),
        ("build/**/*.xml", {"build/a.xml", "build/test-results/test/TEST-x.xml"}),
        ("**/TEST-?.xml", {"build/test-results/test/TEST-x.xml"}),
        ("**/TEST-[xy].xml", {"build/test-results/test/TEST-x.xml"}),
        ("**/**/a.xml", {"build/a.xml"}),
        ("build/**", {"build/a.xml", "build/test-results/test/TEST-x.xml"}),
        (".cache/*.xml", {".cache/hidden.xml"}),
        ("**/hidden.xml", set()),
        ("**/package.xml", set()),
        ("build", set()),
        ("nothing/*.xml", set()),
        ("", set()),
        ("\0", set()),
        ("../*/report.xml", set()),
        ("build/../report.xml", set()),
        ("/**/*.xml", set()),
    ],
)
def test_a_pattern_finds_files_below_the_folder(
    tmp_path: Path, pattern: str, expected: set[str]
) -> None:
    names = ["report.xml", "build/a.xml", "build/test-results/test/TEST-x.xml"]
    names += [".cache/hidden.xml", "node_modules/x/package.xml"]
    for name in names:
        write(tmp_path / name, FAILED.format(name))
    results = read_reports([pattern], tmp_path, LONG_AGO)
    found = {detail.name.removesuffix(" works") for detail in results.details} if results else set()
    assert found == expected


def test_a_pattern_may_be_absolute_if_it_stays_below_the_folder(tmp_path: Path) -> None:
    passed(tmp_path / "in" / "a.xml")
    passed(tmp_path / "out" / "b.xml")
    patterns = [str(tmp_path / "in" / "*.xml"), str(tmp_path / "out" / "*.xml")]
    assert counts(read_reports(patterns, tmp_path / "in", LONG_AGO)) == (1, 1, 0, 0)


def test_reports_add_up_each_counted_once(tmp_path: Path) -> None:
    passed(tmp_path / "a.xml")
    write(tmp_path / "b.xml", FAILED.format("b"))
    write(tmp_path / "copy" / "b.xml", FAILED.format("b"))
    results = read_reports(["*.xml", "a.xml", "**/*.xml"], tmp_path, LONG_AGO)
    assert counts(results) == (2, 1, 1, 0)
    assert results is not None
    assert results.details == (TestDetail("b works", TestStatus.FAILED),)


def test_no_reports_are_no_result(tmp_path: Path) -> None:
    assert read_reports([], tmp_path, LONG_AGO) is None
    assert read_reports(["*.xml"], tmp_path / "nothing", LONG_AGO) is None


def test_only_files_written_since_count(tmp_path: Path) -> None:
    old, new = passed(tmp_path / "old.xml"), passed(tmp_path / "new.xml")
    start = time.time()
    os.utime(old, (start, start - 0.5))
    os.utime(new, (start, start + 0.5))
    assert counts(read_reports(["*.xml"], tmp_path, start)) == (1, 1, 0, 0)


def test_a_file_written_right_after_the_start_counts(tmp_path: Path) -> None:
    """The kernel's clock for files may still show the moment before."""
    for number in range(200):
        start = time.time()
        passed(tmp_path / f"{number}.xml")
        assert read_reports([f"{number}.xml"], tmp_path, start) is not None


@pytest.mark.parametrize("ago,expected", [(0, (1, 1, 0, 0)), (1, None)])
def test_a_file_time_without_fractions_may_be_as_old_as_the_second(
    tmp_path: Path, ago: int, expected: tuple[int, int, int, int] | None
) -> None:
    report = passed(tmp_path / "a.xml")
    os.utime(report, (0, 1_700_000_000 - ago))
    assert counts(read_reports(["*.xml"], tmp_path, 1_700_000_000.9)) == expected


def test_reports_are_the_result_and_output_only_where_there_are_none(tmp_path: Path) -> None:
    printed = b"=== 1 failed, 6 passed in 0.10s ===\n"
    passed(tmp_path / "report.xml")
    for pattern, expected in (("report.xml", (1, 1, 0, 0)), ("other.xml", (7, 6, 1, 0))):
        results = read_reports([pattern], tmp_path, LONG_AGO) or read_outputs(printed)
        assert counts(results) == expected


# -- what an agent may have put there --------------------------------------------------------------


def a_link_to_a_file(place: Path, outside: Path) -> None:
    place.symlink_to(passed(outside / "x.xml"))


def a_link_to_a_report_inside(place: Path, _: Path) -> None:
    place.symlink_to("good.xml")


def a_link_to_itself(place: Path, _: Path) -> None:
    place.symlink_to(place)


def a_pipe(place: Path, _: Path) -> None:
    os.mkfifo(place)


def a_folder(place: Path, _: Path) -> None:
    place.mkdir()


def a_folder_that_is_a_link(place: Path, outside: Path) -> None:
    passed(outside / "bad.xml")
    (place.parent / "linked").symlink_to(outside)


def a_folder_that_leads_back(place: Path, _: Path) -> None:
    (place.parent / "again").symlink_to(place.parent)


def an_empty_file(place: Path, _: Path) -> None:
    write(place)


def another_document(place: Path, _: Path) -> None:
    write(place, "<project><name>testsuite</name></project>")


def bytes_of_any_kind(place: Path, _: Path) -> None:
    write(place, bytes(range(256)) * 100)


HARMLESS = [
    a_link_to_a_file,
    a_link_to_a_report_inside,
    a_link_to_itself,
    a_pipe,
    a_folder,
    a_folder_that_is_a_link,
    a_folder_that_leads_back,
    an_empty_file,
    another_document,
    bytes_of_any_kind,
]


@pytest.mark.parametrize("put", HARMLESS, ids=lambda put: put.__name__)
def test_what_is_no_report_is_left_out(tmp_path: Path, put: Callable[[Path, Path], None]) -> None:
    folder, outside = tmp_path / "work", tmp_path / "outside"
    outside.mkdir()
    passed(folder / "good.xml")
    put(folder / "bad.xml", outside)
    results = read_reports(["**/*.xml", "*/*.xml", "linked/bad.xml"], folder, LONG_AGO)
    assert counts(results) == (1, 1, 0, 0)
    assert results is not None
    assert results.all_passed


LAUGHS = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 15))
BROKEN = {
    "truncated": '<testsuite><testcase name="a"/><testca',
    "a billion laughs": f'<!DOCTYPE x [<!ENTITY a0 "ha">{LAUGHS}]><testsuite name="&a14;"/>',
    "an external entity": '<!DOCTYPE x [<!ENTITY a SYSTEM "{outside}">]><testsuite>&a;</testsuite>',
    "an external doctype": '<!DOCTYPE x SYSTEM "{outside}"><testsuite/>',
    "an unknown encoding": '<?xml version="1.0" encoding="nothing"?><testsuite/>',
    "elements without end": "<testsuite>" + "<a>" * 100_000,
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_report_counts_nothing_and_is_named(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "work"
    write(tmp_path / "outside.xml", "<testcase/>")
    broken = BROKEN[kind].replace("{outside}", f"file://{tmp_path}/outside.xml")
    write(folder / "bad.xml", broken)
    assert read_reports(["*.xml"], folder, LONG_AGO) is None
    passed(folder / "good.xml")
    results = read_reports(["*.xml"], folder, LONG_AGO)
    assert counts(results) == (1, 1, 0, 0)
    assert results is not None
    assert [detail.name for detail in results.details] == ["bad.xml"]
    assert not results.all_passed


@pytest.mark.parametrize("size", [LARGEST + 1, 1024**3])
def test_a_report_that_is_too_large_is_not_read(tmp_path: Path, size: int) -> None:
    large = write(tmp_path / "large.xml", "<testsuite>")
    os.truncate(large, size)
    passed(tmp_path / "small.xml")
    start = time.process_time()
    results = read_reports(["*.xml"], tmp_path, LONG_AGO)
    assert time.process_time() - start < 0.5
    assert counts(results) == (1, 1, 0, 0)
    assert results is not None
    assert [detail.name for detail in results.details] == ["large.xml"]


@pytest.mark.slow
def test_thousands_of_files_and_many_megabytes_are_bounded(tmp_path: Path) -> None:
    for number in range(5_200):
        passed(tmp_path / "many" / f"{number}.xml")
    for number in range(6):
        write(
            tmp_path / "much" / f"{number}.xml",
            f"<testsuite><a>{number}{'x' * 12_000_000}</a></testsuite>",
        )
    many = read_reports(["many/*"], tmp_path, LONG_AGO)
    assert counts(many) == (5_000, 5_000, 0, 0)
    assert many is not None
    assert len(many.details) == 1
    large = read_reports(["much/*"], tmp_path, LONG_AGO)
    assert large is not None
    assert [detail.name for detail in large.details] == ["much/4.xml"]


def test_a_tree_without_end_is_searched_only_so_far(tmp_path: Path) -> None:
    for number in range(20):
        passed(tmp_path / str(number) / "a.xml")
    assert len(matching(["**/*.xml"], tmp_path)) == 20
    assert len(matching(["**/*.xml"], tmp_path, most=25)) < 10
