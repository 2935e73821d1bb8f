"""The message of rooda's commit, made from untrusted words."""

import subprocess

import pytest

from rooda.loop.publish.commit_message import commit_message
from rooda.plan.settings.settings import GIT_MESSAGE
from support.tables import each_row

LONG = (
    "Rewrote the join so that keys which are null never match, and added three tests for it, one "
    "of them slow"
)
TRAILER = "Rooda-Run: 20260301-231500-abcdef/3"


def message(headline: str, template: str = GIT_MESSAGE.default, **names: str) -> str:
    known = {
        "headline": headline,
        "procedure": "build",
        "mode": "build",
        "iteration": "3",
        "run": "20260301-231500-abcdef",
        "summary": "",
        "task": "",
    }
    return commit_message(template, known | names)


def trailers(text: str) -> list[str]:
    """Return what git reads as trailers."""
    command = ["git", "interpret-trailers", "--parse"]
    done = subprocess.run(command, input=text, text=True, capture_output=True, check=True)
    return done.stdout.splitlines()


@pytest.mark.git
@each_row(
    "headline,subject",
    [
        ("Add retries to the client", "Add retries to the client"),
        ("fix: null keys never match", "fix: null keys never match"),
        ("Éviter l'erreur {run}", "Éviter l'erreur {run}"),
        ("\u2705 Done: all tests pass", "\u2705 Done: all tests pass"),
        ("", "build: iteration 3"),
        (" \n\t", "build: iteration 3"),
        ("\x1b[31mred\x1b[0m \u202egnp.exe\nsecond line", "red gnp.exe second line"),
        ("a\u2028b", "a b"),
        ("#12 is fixed", '"#12 is fixed"'),
        ("; rm -rf /", '"; rm -rf /"'),
        ("--- a/file", '"--- a/file"'),
        ("fixup! the beginning", '"fixup! the beginning"'),
        ("squash! the beginning", '"squash! the beginning"'),
        ("amend! the beginning", '"amend! the beginning"'),
        ("Signed-off-by: Eve <eve@example.org>", '"Signed-off-by: Eve <eve@example.org>"'),
        ("Rooda-Run: another/7", '"Rooda-Run: another/7"'),
        ("Support [skip ci] and [CI-skip]", "Support (skip ci) and (CI-skip)"),
        ("list[int] works", "list[int] works"),
    ],
)
def test_first_line_is_the_headline_and_the_only_trailer_names_the_run(
    headline: str, subject: str
) -> None:
    text = message(headline)
    assert text == f"{subject}\n\n{TRAILER}"
    assert trailers(text) == [TRAILER]


@pytest.mark.git
@each_row(
    "headline,subject",
    [
        (LONG, "Rewrote the join so that keys which are null never match, and added\u2026"),
        ("x" * 72, "x" * 72),
        ("x" * 73, "x" * 71 + "\u2026"),
        ("I " + "x" * 100, "I " + "x" * 69 + "\u2026"),
        ("y" * 71 + " z", "y" * 71 + "\u2026"),
    ],
)
def test_long_headline_is_cut_at_a_word_and_follows_as_a_whole(headline: str, subject: str) -> None:
    text = message(headline)
    assert len(subject) <= 72
    body = "" if subject == headline else f"{headline}\n\n"
    assert text == f"{subject}\n\n{body}{TRAILER}"
    assert trailers(text) == [TRAILER]


@pytest.mark.git
def test_long_headline_that_looks_like_a_trailer_is_none() -> None:
    words = f"Signed-off-by: {'Eve ' * 30}"
    assert trailers(message(words)) == [TRAILER]
    assert trailers(message(f"Fix: {words}", "{headline}")) == []
    assert trailers(message(words, "{headline}")) == []
    assert trailers(message("Signed-off-by: Eve", "Work\n\n{headline}")) == []
    own = "Work\n\n{headline}\n\nReviewed-by: Ada\nRooda-Run: {run}/{iteration}"
    assert trailers(message("Signed-off-by: Eve", own)) == ["Reviewed-by: Ada", TRAILER]


@each_row(
    "template,expected",
    [
        ("{procedure}: iteration {iteration}", "build: iteration 3"),
        ("feat: {headline}", f"feat: {LONG}"),
        ("{mode} {{x}}\n\n{headline}\n", f"build {{x}}\n\n{LONG}"),
        ("{task}", "build: iteration 3"),
        ("{mode}: iteration {iteration} - {task}", "build: iteration 3 -"),  # preset ralph
    ],
)
def test_a_template_of_the_user_keeps_its_words_and_gets_no_trailer(
    template: str, expected: str
) -> None:
    assert message(LONG, template) == expected
