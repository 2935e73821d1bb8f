"""Reads the output of a running CLI through the adapter of the CLI."""

from typing import Any

from msgspec.structs import replace

from rooda.base.controls import clean, one_line
from rooda.world.agents.adapter import Adapter, LastOutput
from rooda.world.agents.agent_notes import AgentNotes
from rooda.world.agents.agent_report import AgentReport, Fault, Form, Said, SaidKind, Usage
from rooda.world.agents.faults import known_error
from rooda.world.agents.json_events import Event, parse_event
from rooda.world.agents.speech_buffers import LineBuffer
from rooda.world.process.capture.buffers import TailBuffer

_LAST_WORDS = 64 * 1024  # bytes to keep from the end of each stream
_LONGEST_NOTE = 1000  # bytes to show of a line that is not an event
_BEGINNING = 4096  # bytes to keep from the beginning of standard error
_MOST_TRIES = 24  # attempts to parse a document that may be complete


class OutputReader:
    """Reads one run of a CLI: accepts the pieces of both streams and reports their meaning.

    `folder` is the working directory of the CLI. `model` is the model on the command line.
    `limit` is the number of bytes of the assistant's text to keep.
    """

    def __init__(
        self,
        adapter: Adapter,
        form: Form,
        *,
        folder: str = "",
        model: str | None = None,
        limit: int = 10 * 1024 * 1024,
    ) -> None:
        self._adapter = adapter
        self._form = form
        self._asked_for = model
        self._notes = AgentNotes(folder, limit)
        self._lines = LineBuffer()
        self._events = 0
        self._tries = 0
        self._shows_text = False
        self._held = b""
        self._beginning = b""
        self._ends = {"stdout": TailBuffer(_LAST_WORDS), "stderr": TailBuffer(_LAST_WORDS)}

    @property
    def is_result_in(self) -> bool:
        """Whether the CLI has reported its result and has not continued to work."""
        return self._notes.is_result_in

    @property
    def usage(self) -> Usage:
        """The usage so far. The model is that of the command line if the CLI names none."""
        return self._notes.usage(self._asked_for)

    def feed(self, stream: str, data: bytes) -> list[Said]:
        """Read a piece of a stream; return its readable lines.

        The list is empty if the output is text from the start, because the user sees it unchanged.
        """
        self._ends[stream].append(data)
        if stream == "stderr" and len(self._beginning) < _BEGINNING:
            self._beginning += data[:_BEGINNING]
        if stream != "stdout":
            return []
        if self._form is Form.TEXT:
            return self._show_text(data)
        return self._detect_form(data) if self._form is Form.UNKNOWN else self._read(data)

    def _read(self, data: bytes) -> list[Said]:
        if self._form is Form.DOCUMENT:
            self._add_to_document(data)
        else:
            for line in self._lines.feed(data):
                self._take_line(line)
        return self._notes.take_said()

    def finish(self) -> list[Said]:
        """Read the rest after the end of the output; return the readable lines."""
        said = self._detect_form(b"\n") if self._form is Form.UNKNOWN else []
        if self._form is Form.DOCUMENT and not self._events:
            self._take_document(self._lines.peek())
        elif self._form is Form.EVENTS:
            self._take_line(self._lines.finish())
        elif self._shows_text and self._lines.pending:
            said += self._show_text(b"\n")
        self._notes.end_message()
        return said + self._notes.take_said()

    def report(self, exit_code: int | None, *, had_last_words: bool = True) -> AgentReport:
        """Return the report about the CLI after its end.

        `exit_code` is None if there is none. `had_last_words` is False if a signal killed the CLI,
        because the CLI could not print an error then.
        """
        notes, speaks = self._notes, self._events > 0
        printed = self._printed(exit_code)
        fault = notes.final_fault()
        if fault is None and notes.ended_well is not True and had_last_words:
            fault = self._last_words(printed)
        return AgentReport(
            spoken=notes.speech.tail(),
            closing=notes.closing,
            truncated=notes.speech.truncated,
            speaks_events=speaks,
            answered=self._answered(printed),
            is_mute=self._is_mute,
            is_complete=notes.is_result_in if speaks else not self._broke_off(printed),
            ended_well=notes.ended_well if speaks else None,
            complaint=notes.complaint or (fault.evidence if fault else ""),
            retrying=notes.retrying,
            fault=fault,
            usage=self.usage if speaks else self._text_usage(printed),
        )

    @property
    def form(self) -> Form:
        """The actual form of the output: text if no event was printed."""
        return self._form if self._events else Form.TEXT

    @property
    def _is_mute(self) -> bool:
        return not self._events and self._form in (Form.EVENTS, Form.DOCUMENT)

    def _last_words(self, printed: LastOutput) -> Fault | None:
        """Return the failure that the CLI reports outside of its events."""
        adapter = self._adapter
        if self._events:
            return adapter.last_words(printed)
        if printed.failed:
            return adapter.last_words(printed) or adapter.error_as_answer(printed)
        if self._is_mute:  # the CLI failed despite exit code 0: its text is an error
            return adapter.last_words(replace(printed, failed=True)) or known_error(printed.stdout)
        return adapter.error_as_answer(printed)

    def _answered(self, printed: LastOutput) -> bool:
        if self._events:
            return not self._notes.speech.is_blank
        if self._broke_off(printed):
            return False
        on_stderr = self._adapter.facts.speaks_on_stderr and printed.stderr.strip()
        return bool(printed.stdout.strip() or on_stderr)

    def _broke_off(self, printed: LastOutput) -> bool:
        """Return whether the output ends inside its first event."""
        is_json = printed.stdout.lstrip()[:1] in ("{", "[")
        return is_json and not self._events and self._form is not Form.TEXT

    def _text_usage(self, printed: LastOutput) -> Usage:
        usage = self._adapter.text_usage(printed)
        return usage if usage.model else replace(usage, model=self._asked_for)

    def _printed(self, exit_code: int | None) -> LastOutput:
        stdout, stderr = self._ends["stdout"].tail(), self._ends["stderr"].tail()
        return LastOutput(
            _text(stdout), _text(stderr), _text(self._beginning), exit_code != 0, self.form
        )

    def _show_text(self, data: bytes) -> list[Said]:
        """Return the lines of output that is text although JSON was expected."""
        if not self._shows_text:
            return []
        return [Said(SaidKind.TEXT, one_line(_text(line))) for line in self._lines.feed(data)]

    def _detect_form(self, data: bytes) -> list[Said]:
        """Detect the form of the output from its first character that is not white space."""
        self._held = (self._held + data).lstrip()
        held = self._held
        if held and held[:1] not in (b"{", b"["):
            self._form = Form.TEXT
            self._shows_text = True
            return self._show_text(self._held)
        first, newline, _ = held.partition(b"\n")
        if not newline and len(held) < _LAST_WORDS:
            return []  # wait for the rest of the first line
        self._form = Form.DOCUMENT if first.strip() in (b"{", b"[") else Form.EVENTS
        held, self._held = self._held, b""
        return self._read(held)

    # -- events ----------------------------------------------------------------------------

    def _take_line(self, line: bytes) -> None:
        line = line.strip()
        if not line:
            return
        found = parse_event(line) if line[:1] in (b"{", b"[") else None
        if not self._take(found):
            # Not an event of the CLI but a warning of its runtime, or output of another program.
            self._notes.note(line[:_LONGEST_NOTE].decode("utf-8", "replace"))

    def _take(self, found: Any) -> bool:
        events = found if isinstance(found, list) else [found]
        known = [event for event in events if isinstance(event, dict) and _is_event(event)]
        for event in known:
            self._events += 1
            self._adapter.read(event, self._notes)
        return bool(known)

    def _add_to_document(self, data: bytes) -> None:
        # Line breaks in a document have no meaning, so treat it as one long line.
        for _ in self._lines.feed(data.replace(b"\n", b" ")):
            pass
        if data.rstrip()[-1:] in (b"}", b"]") and self._tries < _MOST_TRIES and not self._events:
            self._tries += 1
            self._take_document(self._lines.peek())

    def _take_document(self, text: bytes) -> None:
        # Other output may precede the document.
        starts = sorted(at for at in (text.find(b"{"), text.find(b"[")) if at != -1)
        any(self._take(parse_event(text[start:].strip())) for start in starts)


def _is_event(found: Event) -> bool:
    return "type" in found or "session_id" in found


def _text(data: bytes) -> str:
    return clean(data.decode("utf-8", "replace"))
