"""Collects the content of a CLI's events in bounded memory."""

import math
from collections.abc import Mapping

from msgspec.structs import replace

from rooda.base.controls import clean
from rooda.world.agents.agent_report import Fault, Said, SaidKind, Tokens, Usage
from rooda.world.agents.failure_kinds import FailureKind
from rooda.world.agents.faults import LONGEST_MESSAGE, brief, classify
from rooda.world.agents.speech_buffers import SpeechTail

_LONGEST_DETAIL = 200
# The arguments that best describe what a tool does, best first.
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
_LONGEST_LINE = 4000  # characters of a readable line
_LONGEST_CLOSING = 16 * 1024  # characters of the beginning of the last message

# Context size of a model in tokens, by the beginning of its name. The longest match counts.
_CONTEXT_WINDOWS = {
    "claude": 200_000,
    "gemini": 1_048_576,
    "gpt-4.1": 1_047_576,
    "gpt-4o": 128_000,
    "gpt-5": 272_000,
    "o3": 200_000,
    "o4": 200_000,
    "qwen3-coder": 262_144,
    "qwen3-coder-plus": 1_000_000,
    "qwen3-coder-flash": 1_000_000,
    "kimi-k2": 262_144,
    "grok-code": 256_000,
    "deepseek": 128_000,
    "glm-4.5": 131_072,
    "glm-4.6": 200_000,
}
_MILLION = 1_000_000


class AgentNotes:
    """The state of one run of a CLI so far. The adapters update it with every event.

    `folder` is the working directory, which is removed from paths in readable lines. `limit` is
    the number of bytes of the assistant's text to keep.
    """

    def __init__(self, folder: str = "", limit: int = 10 * 1024 * 1024) -> None:
        self.speech = SpeechTail(limit)  # the assistant's own text
        self.model: str | None = None
        self.session_id: str | None = None
        self.turns: int | None = None
        self.messages: int | None = None
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
        self._status: int | None = None  # the HTTP status of the last error
        self._folder = f"{folder.rstrip('/')}/" if folder else ""
        self._said: list[Said] = []
        self._line: list[str] = []
        self._length = 0
        self._closing: list[str] = []  # the beginning of the last message
        self._closing_length = 0
        self._in_turn = False
        self._in_message = False

    # -- what the agent does ---------------------------------------------------------------

    def say(self, message: str) -> None:
        """Record a complete message of the assistant."""
        if message:
            self.say_piece(message)
            self.end_message()

    def say_piece(self, piece: str) -> None:
        """Record a piece of a message of the assistant."""
        self._works()
        self._speak(piece)

    def _speak(self, piece: str) -> None:
        if not self._in_message and piece and not piece.isspace():
            self._in_message = True
            self.messages = (self.messages or 0) + 1
            self._closing, self._closing_length = [], 0
        self.speech.add(piece.encode("utf-8", "replace"))
        self._keep_for_closing(piece)
        self._line.append(piece)
        self._length += len(piece)
        if "\n" in piece:
            whole, _, rest = "".join(self._line).rpartition("\n")
            self._show(whole)
            self._line, self._length = [rest], len(rest)
        if self._length > _LONGEST_LINE:
            self._end_line()

    def _keep_for_closing(self, piece: str) -> None:
        if self._in_message and self._closing_length < _LONGEST_CLOSING:
            self._closing.append(piece[:_LONGEST_CLOSING])
            self._closing_length += len(piece)

    @property
    def closing(self) -> str:
        """The beginning of the assistant's last message."""
        return "".join(self._closing)[:_LONGEST_CLOSING]

    def end_message(self) -> None:
        """Record that the message is complete."""
        self._in_message = False
        self.speech.end_line()
        if self._length:
            self._end_line()

    def uses_tool(self, name: str, about: object = None) -> None:
        """Record that the assistant uses a tool; `about` are the arguments of the tool."""
        self._works()
        self.end_message()
        detail = self._detail(about)
        name = brief(name[:_LONGEST_DETAIL]) or "a tool"
        words = f"{name} {detail}" if detail else name
        self._said.append(Said(SaidKind.TOOL, words))

    def tool_ended(self) -> None:
        """Record that a tool has ended; the next event belongs to a new turn."""
        self._in_turn = False

    def note(self, words: str) -> None:
        """Record a message of the CLI that is not part of the answer."""
        if words:
            self._said.append(Said(SaidKind.NOTE, brief(words)))

    def complains(self, words: str) -> None:
        """Record an error of the CLI that may not be fatal."""
        self.note(words)
        self.complaint = brief(words)

    def retries(self, words: str) -> None:
        """Record that the CLI retries a request."""
        self.retrying = brief(words)
        self.note(f"retrying: {words}")

    # -- errors, results and numbers -------------------------------------------------------

    def fails(
        self, message: str, status: int | None = None, *, retry_after: float | None = None
    ) -> None:
        """Record an error that the CLI reports about itself."""
        self.end_message()
        self.complaint = brief(message)
        self._said.append(Said(SaidKind.ERROR, self.complaint))
        self._status = status
        kind = classify(message, status, retry_after)
        if kind is not None:
            words = message[:LONGEST_MESSAGE]
            self.fault = Fault(kind, self.complaint, words=words, retry_after=retry_after)

    def ends(self, *, well: bool, answer: str = "") -> None:
        """Record the result that the CLI reports. A good result clears earlier errors."""
        if well and answer and not self.speech.ends_with(answer.encode("utf-8", "replace")):
            self._speak(answer)
        self.end_message()
        self.is_result_in, self.ended_well = True, well
        self.retrying = ""
        if well:
            self.fault, self.complaint = None, ""

    def adds_tokens(self, tokens: Tokens) -> None:
        """Add the tokens of one request."""
        self.tokens = tokens if self.tokens is None else self.tokens + tokens

    def adds_cost(self, cost: float | None) -> None:
        """Add the cost of one request in dollars."""
        if cost is not None:
            self.cost = cost if self.cost is None else self.cost + cost

    # -- results for the output reader -----------------------------------------------------

    def take_said(self) -> list[Said]:
        """Return the readable lines since the last call."""
        said, self._said = self._said, []
        return said

    def final_fault(self) -> Fault | None:
        """Return the failure. A limit includes its reset time if the CLI reported one."""
        if self.fault is None or self.resets is None:
            return self.fault
        if classify(self.fault.words, self._status, math.inf) is not FailureKind.LIMIT:
            return self.fault
        return replace(self.fault, kind=FailureKind.LIMIT, resets=self.resets)

    def usage(self, asked_for: str | None = None) -> Usage:
        """Return the usage so far; `asked_for` is the model to use if the events name none."""
        model = self.model or asked_for
        window = self.window or (context_window(model) if model else None)
        return Usage(
            model,
            self.session_id,
            self.turns,
            self.tokens,
            self.cost,
            self.messages,
            _percent(self.context_used, window) if self.context_used and window else None,
        )

    def begins(self) -> None:
        """Record that the CLI works (again), so an earlier result was not the last one."""
        self.is_result_in, self.ended_well = False, None

    def asks(self) -> None:
        """Record that the CLI sends a request to the model."""
        self._in_turn = False
        self._begin_turn()

    def _works(self) -> None:
        """Record that the agent works, so earlier errors did not stop it."""
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


def context_window(model: str) -> int | None:
    """Return the context size of a model in tokens, or None for an unknown model."""
    name = model.rpartition("/")[2].lower()
    if name.endswith("[1m]"):
        return _MILLION
    known = [start for start in _CONTEXT_WINDOWS if name.startswith(start)]
    return _CONTEXT_WINDOWS[max(known, key=len)] if known else None


def _percent(used: int, window: int) -> int:
    return min(100, round(100 * used / window))
