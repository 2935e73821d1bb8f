"""The message of rooda's commit. An agent's words in it are one line that git gives no meaning."""

import re
from collections.abc import Mapping, Sequence

from rooda.base.controls import one_line
from rooda.base.templates import fill

_LONGEST_SUBJECT = 72  # characters of the first line
_SHORTEST_SUBJECT = 40  # a long word is cut before the line gets shorter than this
# Git would read such a beginning as a comment, as the end of the message or the start of a patch,
# or as a change to an earlier commit (`git rebase --autosquash`); people, as a trailer.
_MEANS_SOMETHING = re.compile(
    r"[-#;@!$%^&|:]|(?:fixup|squash|amend)!|diff -|Index: |[A-Za-z0-9]+(?:-[A-Za-z0-9]+)+[ \t]*:"
)
_TRAILER = re.compile(r"[A-Za-z0-9-]+[ \t]*[:=]|\(cherry picked from")
_BEGINS_LINE = re.compile(r"\n[ \t]*\{headline\}")
# Many services start no checks for a commit that contains one of these.
_SKIPS_CI = re.compile(r"\[((?:skip|no)[ -]\w+|\w+[ -]skip)\]", re.IGNORECASE)


def commit_message(template: str, names: Mapping[str, str]) -> str:
    """Return the template with its names filled in.

    If its first line is only `{headline}`, that line has at most 72 characters; a longer headline
    is shortened there, and follows as a paragraph. Without a headline, the procedure and the number
    of the iteration take its place.
    """
    default = f"{names['procedure']}: iteration {names['iteration']}"
    words = _harmless(names["headline"]) or default
    if template.strip().partition("\n")[0].strip() == "{headline}":
        words = _subject_and_body(words)
    elif _BEGINS_LINE.search(template.strip()):
        words = _no_trailer(words)
    return fill(template, {**names, "headline": words}).strip() or default


def with_work_of(message: str, failed: Sequence[int]) -> str:
    """Return the message with a paragraph below its first line that names failed iterations."""
    if not failed:
        return message
    subject, _, rest = message.partition("\n")
    words = f"with the work of {named_iterations(failed)} (failed)"
    return f"{subject}\n\n{words}\n{rest}".rstrip()


def named_iterations(numbers: Sequence[int]) -> str:
    """Return `iteration 12`, `iterations 12 and 13` or `iterations 3, 5 and 6`."""
    *others, last = map(str, numbers)
    return f"iterations {', '.join(others)} and {last}" if others else f"iteration {last}"


def _harmless(headline: str) -> str:
    """Return the headline on one line, in quotes if git would read its beginning as a command."""
    words = _SKIPS_CI.sub(r"(\1)", " ".join(one_line(headline).split()))
    return f'"{words}"' if words and _MEANS_SOMETHING.match(words) else words


def _no_trailer(words: str) -> str:
    """Return the words, in quotes if git would read a line of them as a trailer."""
    return f'"{words}"' if _TRAILER.match(words) else words


def _subject_and_body(words: str) -> str:
    """Return the words as the first line; if they are too long, shortened and then as a whole."""
    if len(words) <= _LONGEST_SUBJECT:
        return words
    start = words[:_LONGEST_SUBJECT]  # one more character than fits before the dots
    whole_words = start.rpartition(" ")[0].rstrip(" ,;:-(")
    subject = whole_words if len(whole_words) >= _SHORTEST_SUBJECT else start[:-1]
    return f"{subject}\u2026\n\n{_no_trailer(words)}"
