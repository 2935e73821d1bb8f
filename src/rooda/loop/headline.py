"""The headline of an iteration: one line of the agent's words that says what it did. Pure."""

import re
from collections.abc import Iterator

from rooda.base.controls import clean
from rooda.loop.progress import without_signals

LONGEST = 200  # characters
_READ = 16 * 1024  # characters of a text
_SHORT = 12  # a sentence like `Done.` says too little: the next one is added
# `## Summary of the work`, `**Summary:** ...`, `Summary: ...`
_SECTION = re.compile(
    r"^[ \t]*(?:#{1,6}[ \t][^\w\n]*summary\b[^\n]*"
    r"|(?:\*\*|__)summary\b[^\n*_]*(?:\*\*|__)[ \t]*:?|summary[ \t]*:)",
    re.IGNORECASE | re.MULTILINE,
)
_FENCE = re.compile(r"^\s*(?:```|~~~)")
# A line across, a row of a table, or JSON of a CLI that rooda does not know.
_RULE = re.compile(r"^\s*(?:[-*_=]\s*){3,}$|^\s*\||^\s*(?:\{\s*\"|\[\s*[{\"])")
_HEADING = re.compile(r"^\s*#{1,6}\s+")
_ITEM = re.compile(r"^\s*(?:[-*+\u2022]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?")
_QUOTE = re.compile(r"^\s*>+\s?")
_LINK = re.compile(r"!?\[([^\]\n]{0,500})\]\([^)\n]{0,500}\)")
_STRONG = re.compile(r"\*\*|__|~~|`")
_EMPHASIS = re.compile(r"(?<![\w*])\*(?=\S)([^*\n]{1,500}?)(?<=\S)\*(?![\w*])")
# The end of a sentence; `e.g.`, `v1.2` and `a.py` have none. A search begins at the first of
# several dots only: a long row of them would take seconds.
_END = re.compile(
    r"(?<![.!?\u2026])(?<!\be\.g)(?<!\bi\.e)(?<!\betc)(?<!\bvs)(?<!\bcf)"
    r"[.!?\u2026]+[\"')\]]*(?=\s|$)"
)


def headline_of(summary: str | None, *texts: str) -> str:
    """Return the first sentence of the agent's summary, else of the first text that has words.

    A `Summary` section of the first text counts as a summary. The result is "" without any words.
    """
    closing = texts[0][:_READ] if texts else ""
    sections = list(_SECTION.finditer(closing))
    section = closing[sections[-1].end() :] if sections else ""
    for text in (section, summary or "", *texts):
        if found := _first_sentence(without_signals(clean(text[:_READ]))):
            return found
    return ""


def _first_sentence(text: str) -> str:
    paragraphs = _paragraphs(text)
    found = next(paragraphs, "")
    # `I made these changes:` only introduces what follows.
    while found.endswith(":") and (following := next(paragraphs, "")):
        found = following
    return _shortened(_cut(found))


def _cut(paragraph: str) -> str:
    """Return the first sentence of a paragraph, with the second if the first is very short."""
    for end in _END.finditer(paragraph):
        if end.end() >= _SHORT or paragraph.endswith(":"):
            return paragraph[: end.end()]
    return paragraph


def _shortened(sentence: str) -> str:
    if sentence.endswith((".", ":")) and not sentence.endswith(".."):
        sentence = sentence[:-1]
    if len(sentence) <= LONGEST:
        return sentence
    return sentence[: LONGEST - 1].rstrip() + "\u2026"


def _paragraphs(text: str) -> Iterator[str]:
    """Yield the paragraphs and list items without Markdown; a text of headings yields the first."""
    lines: list[str] = []
    heading, is_code, is_empty = "", False, True
    for line in [*text.splitlines(), ""]:
        if _FENCE.match(line):
            is_code = not is_code
        is_item = _ITEM.match(line) is not None
        is_text = not (
            is_code
            or not line.strip()
            or _FENCE.match(line)
            or _RULE.match(line)
            or _HEADING.match(line)
        )
        if (is_item or not is_text) and lines:
            if words := _plain(" ".join(lines)):
                is_empty = False
                yield words
            lines = []
        if is_text:
            lines.append(line)
        elif not heading and not is_code and _HEADING.match(line):
            heading = _plain(line)
    if is_empty and heading:
        yield heading


def _plain(words: str) -> str:
    """Return the words on one line without Markdown; "" if there are none."""
    for marker in (_QUOTE, _ITEM, _HEADING):
        words = marker.sub("", words, count=1)
    words = _EMPHASIS.sub(r"\1", _STRONG.sub("", _LINK.sub(r"\1", words)))
    words = " ".join(words.split())
    return words if re.search(r"\w", words) else ""
