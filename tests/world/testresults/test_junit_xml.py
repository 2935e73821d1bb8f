"""JUnit XML documents: the variants that runners write, and hostile documents."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rooda.world.testresults.junit_xml import LARGEST, read_xml
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
