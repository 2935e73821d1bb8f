"""Gather what a CLI's events tell, in bounded memory."""

import math
from collections.abc import Mapping
from dataclasses import replace

from rooda.agents.faults import LONGEST_MESSAGE, brief, classify
from rooda.agents.report import Fault, FaultKind, Said, SaidKind, Tokens, Usage
from rooda.agents.tail import Tail
from rooda.agents.windows import percent, window_of
from rooda.text.controls import clean

_LONGEST_DETAIL = 200
# What a tool is about, most telling first.
_DETAILS = (
    "file_path",
    "filePath",
    "path",
    "absolute_path",
    "notebook_path",
    "command",
    "cmd",
    "pattern",
    "query",
    "url",
    "description",
    "prompt",
)
_LONGEST_LINE = 4000  # characters, for a person to read


class Notes:
    """What is known of a CLI's run so far. The adapters write here, event by event."""

    def __init__(self, folder: str = "", limit: int = 10 * 1024 * 1024) -> None:
        self.speech = Tail(limit)  # the assistant's own text
        self.model: str | None = None
        self.session_id: str | None = None
        self.turns: int | None = None
        self.tokens: Tokens | None = None
        self.cost: float | None = None
        self.context_used: int | None = None
        self.window: int | None = None
        self.is_result_in = False
        self.ended_well: bool | None = None
        self.complaint = ""
        self.retrying = ""
        self.fault: Fault | None = None
        self.resets: float | None = None
        self._status: int | None = None  # of the last error
        self._folder = f"{folder.rstrip('/')}/" if folder else ""
        self._said: list[Said] = []
        self._line: list[str] = []
        self._length = 0
        self._in_turn = False

    # -- what it does ----------------------------------------------------------------------

    def say(self, message: str) -> None:
        """The assistant said a whole message."""
        if message:
            self.say_piece(message)
            self.end_message()

    def say_piece(self, piece: str) -> None:
        """The assistant said a piece of a message."""
        self._works()
        self._speak(piece)

    def _speak(self, piece: str) -> None:
        self.speech.add(piece.encode("utf-8", "replace"))
        self._line.append(piece)
        self._length += len(piece)
        if "\n" in piece:
            whole, _, rest = "".join(self._line).rpartition("\n")
            self._show(whole)
            self._line, self._length = [rest], len(rest)
        if self._length > _LONGEST_LINE:
            self._end_line()

    def end_message(self) -> None:
        """The message is complete."""
        self.speech.end_line()
        if self._length:
            self._end_line()

    def uses_tool(self, name: str, about: object = None) -> None:
        """The assistant uses a tool."""
        self._works()
        self.end_message()
        detail = self._detail(about)
        name = brief(name[:_LONGEST_DETAIL]) or "a tool"
        words = f"{name} {detail}" if detail else name
        self._said.append(Said(SaidKind.TOOL, words))

    def tool_ended(self) -> None:
        """A tool has ended, so the model is asked again."""
        self._in_turn = False

    def note(self, words: str) -> None:
        """The CLI says something that is no answer."""
        if words:
            self._said.append(Said(SaidKind.NOTE, brief(words)))

    def complains(self, words: str) -> None:
        """The CLI speaks of trouble that need not be its end."""
        self.note(words)
        self.complaint = brief(words)

    def retries(self, words: str) -> None:
        """The CLI tries a request again."""
        self.retrying = brief(words)
        self.note(f"retrying: {words}")

    # -- how it goes -----------------------------------------------------------------------

    def fails(
        self, message: str, status: int | None = None, *, retry_after: float | None = None
    ) -> None:
        """The CLI speaks of an error of its own."""
        self.end_message()
        self.complaint = brief(message)
        self._said.append(Said(SaidKind.ERROR, self.complaint))
        self._status = status
        kind = classify(message, status, retry_after)
        if kind is not None:
            words = message[:LONGEST_MESSAGE]
            self.fault = Fault(kind, self.complaint, words=words, retry_after=retry_after)

    def ends(self, *, well: bool, answer: str = "") -> None:
        """The CLI reports its result. A good one shows that earlier errors were overcome."""
        if well and answer and not self.speech.ends_with(answer.encode("utf-8", "replace")):
            self._speak(answer)
        self.end_message()
        self.is_result_in, self.ended_well = True, well
        self.retrying = ""
        if well:
            self.fault, self.complaint = None, ""

    def adds_tokens(self, tokens: Tokens) -> None:
        """A request has cost these."""
        self.tokens = tokens if self.tokens is None else self.tokens + tokens

    def adds_cost(self, cost: float | None) -> None:
        """A request has cost so many dollars."""
        if cost is not None:
            self.cost = cost if self.cost is None else self.cost + cost

    # -- what others see -------------------------------------------------------------------

    def take_said(self) -> list[Said]:
        """The readable lines since the last time."""
        said, self._said = self._said, []
        return said

    def the_fault(self) -> Fault | None:
        """The fault with all that is known of it. A limit that resets is one of usage."""
        if self.fault is None or self.resets is None:
            return self.fault
        if classify(self.fault.words, self._status, math.inf) is not FaultKind.LIMIT:
            return self.fault
        return replace(self.fault, kind=FaultKind.LIMIT, resets=self.resets)

    def usage(self, asked_for: str | None = None) -> Usage:
        """The numbers so far; `asked_for` is the model, where nothing names another."""
        model = self.model or asked_for
        window = self.window or (window_of(model) if model else None)
        return Usage(
            model,
            self.session_id,
            self.turns,
            self.tokens,
            self.cost,
            percent(self.context_used, window) if self.context_used and window else None,
        )

    def begins(self) -> None:
        """It goes to work (again), so whatever was the result before is none."""
        self.is_result_in, self.ended_well = False, None

    def asks(self) -> None:
        """It asks the model, as it says itself."""
        self._in_turn = False
        self._begin_turn()

    def _works(self) -> None:
        """It is at work, so whatever was wrong before was overcome."""
        self.begins()
        self.retrying = self.complaint = ""
        self.fault = None
        self._begin_turn()

    def _begin_turn(self) -> None:
        if not self._in_turn:
            self._in_turn = True
            self.turns = (self.turns or 0) + 1

    def _end_line(self) -> None:
        self._show("".join(self._line))
        self._line, self._length = [], 0

    def _show(self, words: str) -> None:
        self._said += [Said(SaidKind.TEXT, line) for line in clean(words).split("\n")]

    def _detail(self, about: object) -> str:
        if isinstance(about, Mapping):
            about = next((about[key] for key in _DETAILS if about.get(key)), "")
        if isinstance(about, list):
            about = " ".join(word for word in about if isinstance(word, str))
        return self._short(about) if isinstance(about, str) else ""

    def _short(self, words: str) -> str:
        shown = brief(words[: 4 * _LONGEST_DETAIL])
        if self._folder:
            shown = shown.replace(self._folder, "")
        return shown if len(shown) <= _LONGEST_DETAIL else f"{shown[: _LONGEST_DETAIL - 3]}..."
