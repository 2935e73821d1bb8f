"""Recognise lines that a tool quotes from files and messages: they are nobody's output."""

import re

_HUNK = re.compile(r"@@ -\d+(?:,(\d{1,7}))? \+\d+(?:,(\d{1,7}))? @@.*")
_DATE = re.compile(
    r"(?:Author|Commit)?Date: +(?:[A-Z][a-z]{2} [A-Z][a-z]{2} +\d|\d{4}-\d\d-\d\d).*"
)
_MESSAGE_INDENT = 4


class Quotations:
    """Follows hunks of a diff, and the messages in a log of commits.

    A hunk says how many lines it has. All of them begin in the column of its heading, with a
    sign or a blank, so one that was cut ends with the first line that doesn't.
    """

    def __init__(self) -> None:
        self._column = 0
        self._old = self._new = 0
        self._in_message = False

    def cover(self, text: str, indent: int) -> bool:
        """Whether the next line belongs to a quotation."""
        if (self._old > 0 or self._new > 0) and self._goes_on(text, indent):
            return True
        self._old = self._new = 0
        if self._in_message and (not text or indent >= self._column + _MESSAGE_INDENT):
            return True
        self._in_message = False
        self._begin(text, indent)
        return False

    def _goes_on(self, text: str, indent: int) -> bool:
        sign = text[:1] if indent <= self._column else " "
        if sign not in {" ", "+", "-", "\\", ""} or (text and indent < self._column):
            return False
        self._old -= sign in {" ", "-", ""}
        self._new -= sign in {" ", "+", ""}
        return True

    def _begin(self, text: str, indent: int) -> None:
        hunk = _HUNK.fullmatch(text) if text.startswith("@@") else None
        if hunk is not None:
            self._old, self._new = (int(lines or 1) for lines in hunk.groups())
            self._column = indent
        elif "Date: " in text[:12] and _DATE.fullmatch(text):
            self._in_message = True
            self._column = indent
