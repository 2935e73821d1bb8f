"""JUnit XML documents: the variants that runners write, and hostile documents."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rooda.world.testresults.junit_xml import LARGEST, read_reports, read_xml
from rooda.world.testresults.read import read_outputs
from rooda.world.testresults.results import TestDetail, TestStatus
from support.outputs import Counts, counts
from support.tables import each_row


@each_row(
    "document,expected",
    [
        pytest.param("<testsuites/>", (0, 0, 0, 0), id="nothing"),
        pytest.param('<testsuite><testcase name="a"/></testsuite>', (1, 1, 0, 0), id="one"),
        pytest.param(
            "<testsuite><testcase><failure/><error/></testcase></testsuite>",
            (1, 0, 1, 0),
            id="failure and error of one test count once",
        ),
        pytest.param(
            "<testsuite><testcase><skipped/></testcase></testsuite>", (1, 0, 0, 1), id="skipped"
        ),
        pytest.param(
            '<testsuite><testcase status="notrun"/><testcase result="skipped"/></testsuite>',
            (2, 0, 0, 2),
            id="GoogleTest's attributes",
        ),
        pytest.param(
            "<testsuite><testcase><flakyFailure/></testcase></testsuite>",
            (1, 1, 0, 0),
            id="flaky tests of Surefire",
        ),
        pytest.param(
            '<r xmlns="x"><testsuite><testcase/></testsuite></r>', (1, 1, 0, 0), id="a namespace"
        ),
        pytest.param(
            "<testsuite><testcase><skipped type='pytest.xfail'/></testcase></testsuite>",
            (1, 0, 0, 0),
            id="expected failures of pytest",
        ),
        pytest.param(
            "<testsuite><testcase status='failed'/><testcase status='run'/></testsuite>",
            (2, 1, 1, 0),
            id="failed by attribute only",
        ),
        pytest.param(
            "<testsuites><testsuite name='a'><error message='no'/></testsuite>"
            "<testsuite name='b'><testcase/></testsuite></testsuites>",
            (2, 1, 1, 0),
            id="suite that did not run",
        ),
        pytest.param(
            "<testsuites tests='5' failures='1' errors='1' skipped='1'><testsuite tests='5'/>"
            "</testsuites>",
            (5, 2, 2, 1),
            id="totals without cases",
        ),
        pytest.param(
            '\n> a@1.0.0 test\n> mocha -R xunit\n\n<?xml version="1.0"?>\n'
            "<testsuite><testcase/></testsuite>\nnpm error code 1\n",
            (1, 1, 0, 0),
            id="XML between other output",
        ),
        pytest.param(
            "\ufeff<testsuite><testcase/></testsuite>", (1, 1, 0, 0), id="byte order mark"
        ),
        pytest.param("<html><testcase/></html>", None, id="no report"),
        pytest.param("<testsuite><testcase>", None, id="broken"),
        pytest.param("", None, id="empty"),
        pytest.param(
            '<!DOCTYPE x [<!ENTITY a "b">]><testsuite><testcase name="&a;"/></testsuite>',
            None,
            id="a doctype",
        ),
        pytest.param(
            "<testsuite><testcase><failure><![CDATA[<!DOCTYPE>]]></failure></testcase></testsuite>",
            (1, 0, 1, 0),
            id="doctype in a message",
        ),
    ],
)
def test_each_xml_document_gives_its_counts(document: str, expected: Counts | None) -> None:
    assert counts(read_xml(document.encode())) == expected


@each_row(
    "suite,case,name",
    [
        ("pytest", 'classname="tests.test_a" name="test_b[1]"', "tests/test_a.py::test_b[1]"),
        ("pytest", 'classname="test_a.TestX" name="test_b"', "test_a.py::TestX::test_b"),
        ("x.CalcTest", 'classname="x.CalcTest" name="wrong"', "wrong"),
        ("all", 'classname="x.CalcTest" name="wrong"', "x.CalcTest.wrong"),
        ("all", 'classname="test" name="wrong"', "wrong"),
        ("all", 'classname="" name="wrong"', "wrong"),
    ],
)
def test_failed_test_has_the_name_that_the_runner_prints(suite: str, case: str, name: str) -> None:
    document = (
        f'<testsuite name="{suite}"><testcase {case}><failure message="no"/></testcase></testsuite>'
    )
    results = read_xml(document.encode())
    assert results is not None
    assert results.details == (TestDetail(name, TestStatus.FAILED, error="no"),)


def test_failure_text_is_the_message_without_a_message_attribute() -> None:
    results = read_xml(
        b"<testsuite><testcase name='a'><error type='x'>\n  no\n</error><system-out>x</system-out>"
        b"</testcase></testsuite>"
    )
    assert results is not None
    assert results.details == (TestDetail("a", TestStatus.ERROR, error="no"),)


def test_too_large_xml_is_not_parsed() -> None:
    assert read_xml(b"<testsuite>" + b" " * (LARGEST - 100) + b"</testsuite>") is not None
    assert read_xml(b"<testsuite>" + b" " * LARGEST + b"</testsuite>") is None


@pytest.mark.long
@each_row(
    "head,piece",
    [
        pytest.param("<testsuite>", "<a/>", id="elements"),
        pytest.param("<testsuite>", "<testcase/>", id="cases"),
        pytest.param("<testsuite>", "<testcase><failure/></testcase>", id="failures"),
        pytest.param("<testsuite>", "<a>", id="depth"),
        pytest.param("<testsuite><testcase><failure>", "&lt;\n", id="text"),
        pytest.param('<testsuite name="', "a", id="long attribute"),
        pytest.param("<testsuite><!--", "a", id="long comment"),
        pytest.param("<testsuite>", "<!-- tests 5 -->", id="comments"),
        pytest.param('<!DOCTYPE a [<!ENTITY e "e">]><testsuite>', "&e;", id="entities"),
    ],
)
def test_hostile_xml_takes_linear_time(head: str, piece: str) -> None:
    def seconds(size: int) -> float:
        data = (head + piece * (size // len(piece))).encode()
        start = time.process_time()
        read_xml(data)
        return time.process_time() - start

    assert seconds(LARGEST // 2) < 8 * seconds(LARGEST // 8) + 0.2


@given(st.binary(max_size=500))
def test_arbitrary_bytes_raise_no_error(data: bytes) -> None:
    read_xml(b"<testsuite>" + data)


# Report files: which files count, and hostile files in their place.


LONG_AGO = 1_000_000_000.0
PASSED = '<testsuite name="{0}"><testcase name="{0} works"/></testsuite>'
FAILED = '<testsuite name="{0}"><testcase name="{0} works"><failure/></testcase></testsuite>'


def write(path: Path, text: str | bytes = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def passed(path: Path) -> Path:
    """Write a unique report of one passed test."""
    return write(path, PASSED.format(path.name))


# -- which files -----------------------------------------------------------------------------------


@each_row(
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
def test_pattern_matches_only_visible_files_below_the_folder(
    tmp_path: Path, pattern: str, expected: set[str]
) -> None:
    names = ["report.xml", "build/a.xml", "build/test-results/test/TEST-x.xml"]
    names += [".cache/hidden.xml", "node_modules/x/package.xml"]
    for name in names:
        write(tmp_path / name, FAILED.format(name))
    results = read_reports([pattern], tmp_path, LONG_AGO)
    found = {detail.name.removesuffix(" works") for detail in results.details} if results else set()
    assert found == expected


def test_absolute_pattern_matches_only_below_the_folder(tmp_path: Path) -> None:
    passed(tmp_path / "in" / "a.xml")
    passed(tmp_path / "out" / "b.xml")
    patterns = [str(tmp_path / "in" / "*.xml"), str(tmp_path / "out" / "*.xml")]
    assert counts(read_reports(patterns, tmp_path / "in", LONG_AGO)) == (1, 1, 0, 0)


def test_reports_add_up_and_copies_count_once(tmp_path: Path) -> None:
    passed(tmp_path / "a.xml")
    write(tmp_path / "b.xml", FAILED.format("b"))
    write(tmp_path / "copy" / "b.xml", FAILED.format("b"))
    results = read_reports(["*.xml", "a.xml", "**/*.xml"], tmp_path, LONG_AGO)
    assert counts(results) == (2, 1, 1, 0)
    assert results is not None
    assert results.details == (TestDetail("b works", TestStatus.FAILED),)


def test_result_is_none_without_reports(tmp_path: Path) -> None:
    assert read_reports([], tmp_path, LONG_AGO) is None
    assert read_reports(["*.xml"], tmp_path / "nothing", LONG_AGO) is None


def test_reports_older_than_the_iteration_are_ignored(tmp_path: Path) -> None:
    old, new = passed(tmp_path / "old.xml"), passed(tmp_path / "new.xml")
    start = time.time()
    os.utime(old, (start, start - 0.5))
    os.utime(new, (start, start + 0.5))
    assert counts(read_reports(["*.xml"], tmp_path, start)) == (1, 1, 0, 0)


def test_report_written_right_after_the_start_counts(tmp_path: Path) -> None:
    """The kernel's file clock can lag behind the system clock."""
    for number in range(200):
        start = time.time()
        passed(tmp_path / f"{number}.xml")
        assert read_reports([f"{number}.xml"], tmp_path, start) is not None


@pytest.mark.parametrize("ago,expected", [(0, (1, 1, 0, 0)), (1, None)])
def test_file_time_in_full_seconds_counts_from_the_start_of_the_second(
    tmp_path: Path, ago: int, expected: tuple[int, int, int, int] | None
) -> None:
    report = passed(tmp_path / "a.xml")
    os.utime(report, (0, 1_700_000_000 - ago))
    assert counts(read_reports(["*.xml"], tmp_path, 1_700_000_000.9)) == expected


def test_output_is_the_fallback_when_no_report_exists(tmp_path: Path) -> None:
    printed = b"=== 1 failed, 6 passed in 0.10s ===\n"
    passed(tmp_path / "report.xml")
    for pattern, expected in (("report.xml", (1, 1, 0, 0)), ("other.xml", (7, 6, 1, 0))):
        results = read_reports([pattern], tmp_path, LONG_AGO) or read_outputs(printed)
        assert counts(results) == expected


# -- hostile files in place of a report ------------------------------------------------------------


def link_to_a_file_outside(place: Path, outside: Path) -> None:
    place.symlink_to(passed(outside / "x.xml"))


def link_to_a_report_inside(place: Path, _: Path) -> None:
    place.symlink_to("good.xml")


def link_to_itself(place: Path, _: Path) -> None:
    place.symlink_to(place)


def named_pipe(place: Path, _: Path) -> None:
    os.mkfifo(place)


def folder_instead_of_a_file(place: Path, _: Path) -> None:
    place.mkdir()


def linked_folder(place: Path, outside: Path) -> None:
    passed(outside / "bad.xml")
    (place.parent / "linked").symlink_to(outside)


def folder_link_to_its_parent(place: Path, _: Path) -> None:
    (place.parent / "again").symlink_to(place.parent)


def empty_file(place: Path, _: Path) -> None:
    write(place)


def xml_document_of_another_kind(place: Path, _: Path) -> None:
    write(place, "<project><name>testsuite</name></project>")


def binary_file(place: Path, _: Path) -> None:
    write(place, bytes(range(256)) * 100)


NOT_REPORTS = [
    link_to_a_file_outside,
    link_to_a_report_inside,
    link_to_itself,
    named_pipe,
    folder_instead_of_a_file,
    linked_folder,
    folder_link_to_its_parent,
    empty_file,
    xml_document_of_another_kind,
    binary_file,
]


@each_row("put", NOT_REPORTS, ids=lambda put: put.__name__)
def test_files_that_are_not_reports_are_ignored(
    tmp_path: Path, put: Callable[[Path, Path], None]
) -> None:
    folder, outside = tmp_path / "work", tmp_path / "outside"
    outside.mkdir()
    passed(folder / "good.xml")
    put(folder / "bad.xml", outside)
    results = read_reports(["**/*.xml", "*/*.xml", "linked/bad.xml"], folder, LONG_AGO)
    assert counts(results) == (1, 1, 0, 0)
    assert results is not None
    assert results.all_passed()


LAUGHS = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 15))
BROKEN = {
    "truncated": '<testsuite><testcase name="a"/><testca',
    "billion laughs": f'<!DOCTYPE x [<!ENTITY a0 "ha">{LAUGHS}]><testsuite name="&a14;"/>',
    "external entity": '<!DOCTYPE x [<!ENTITY a SYSTEM "{outside}">]><testsuite>&a;</testsuite>',
    "external doctype": '<!DOCTYPE x SYSTEM "{outside}"><testsuite/>',
    "unknown encoding": '<?xml version="1.0" encoding="nothing"?><testsuite/>',
    "unclosed elements": "<testsuite>" + "<a>" * 100_000,
}


@each_row("kind", BROKEN)
def test_broken_report_adds_no_tests_and_is_an_error_detail(tmp_path: Path, kind: str) -> None:
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
    assert not results.all_passed()


@pytest.mark.parametrize("size", [LARGEST + 1, 1024**3])
def test_too_large_report_is_an_error_detail_and_is_not_parsed(tmp_path: Path, size: int) -> None:
    large = write(tmp_path / "large.xml", "<testsuite>")
    os.truncate(large, size)
    passed(tmp_path / "small.xml")
    start = time.process_time()
    results = read_reports(["*.xml"], tmp_path, LONG_AGO)
    assert time.process_time() - start < 0.5
    assert counts(results) == (1, 1, 0, 0)
    assert results is not None
    assert [detail.name for detail in results.details] == ["large.xml"]


@pytest.mark.long
def test_number_of_reports_and_their_total_size_are_limited(tmp_path: Path) -> None:
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
