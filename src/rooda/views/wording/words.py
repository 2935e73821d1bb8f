"""What an agent said and did, as a person reads it: from its transcript, in bounded memory."""

from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec import Struct

from rooda.base.controls import StreamCleaner, clean
from rooda.base.secrets.masking import MASK_NOTHING, Masker
from rooda.record.run_folders import iteration_folder
from rooda.record.transcript_files import pieces_of_end, size_of
from rooda.views.model.summary import IterationSummary
from rooda.world.agents.agent_report import Form, Said, SaidKind
from rooda.world.agents.output_reader import OutputReader
from rooda.world.agents.registry import KNOWN, TEXT
from rooda.world.state.folder import STDOUT
from rooda.world.state.record_place import RecordPlace

_MOST_READ = 16 * 1024 * 1024  # bytes of a transcript with events, from its end
_MOST_TEXT = 64 * 1024  # bytes of a transcript of text, from its end
_LONGEST_LINE = 2000  # characters
_MOST_LINES = 200
_MOST_TOOLS = 50  # different names


class ToolCall(Struct, frozen=True):
    """A tool that the agent used."""

    name: str
    about: str


class AgentWords(Struct, frozen=True):
    """The closing words of an agent, and the tools that it used.

    `steps` are the last tool calls, and `tools` counts all calls by name. `is_cut`: the transcript
    is too long to be read whole, so the counts are of its end. `is_gone`: there is none.
    """

    text: str = ""
    steps: tuple[ToolCall, ...] = ()
    tools: dict[str, int] = {}
    is_cut: bool = False
    is_gone: bool = False


def words_of(
    place: RecordPlace,
    run: str,
    one: IterationSummary,
    *,
    longest: int,
    steps: int,
    masker: Masker = MASK_NOTHING,
) -> AgentWords:
    """Return the words of an iteration: the end of its text, and its last tool calls."""
    path = iteration_folder(place.state, run, one.number, one.attempt) / STDOUT
    adapter = one.adapter if one.adapter in KNOWN else TEXT
    most = _MOST_TEXT if adapter == TEXT else _MOST_READ
    try:
        is_cut = size_of(path) > most
        pieces = pieces_of_end(path, most)
        kept = _Kept(longest, steps, masker)
        reader = None if adapter == TEXT else _reader(adapter, place.tree, is_cut=is_cut)
        for line in _lines(pieces) if reader is None else _said(pieces, reader, is_cut=is_cut):
            kept.add(line)
    except OSError:
        return AgentWords(is_gone=True)
    return kept.words(is_cut=is_cut)


def _reader(adapter: str, tree: Path, *, is_cut: bool) -> OutputReader:
    form = Form.EVENTS if is_cut else Form.UNKNOWN
    return OutputReader(KNOWN[adapter], form, folder=str(tree), limit=_MOST_TEXT)


def _said(pieces: Iterator[bytes], reader: OutputReader, *, is_cut: bool) -> Iterator[Said]:
    for piece in _from_next_line(pieces) if is_cut else pieces:
        yield from reader.feed("stdout", piece)
    yield from reader.finish()


def _from_next_line(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Leave out the rest of a line whose beginning is missing."""
    for piece in pieces:
        _, newline, rest = piece.partition(b"\n")
        if newline:
            yield rest
            break
    yield from pieces


def _lines(pieces: Iterator[bytes]) -> Iterator[Said]:
    cleaner, rest = StreamCleaner(), ""
    for piece in pieces:
        *lines, rest = (rest + cleaner.feed(piece)).split("\n")
        for line in lines:
            yield Said(SaidKind.TEXT, line)
    for line in (rest + cleaner.finish()).split("\n"):
        yield Said(SaidKind.TEXT, line)


class _Kept:
    """Keeps the end of what was said."""

    def __init__(self, longest: int, steps: int, masker: Masker) -> None:
        self._longest = longest
        self._mask = masker.lines()
        self._lines: deque[str] = deque(maxlen=_MOST_LINES)
        self._before: list[str] = []
        self._steps: deque[ToolCall] = deque(maxlen=steps)
        self._tools: dict[str, int] = {}

    def add(self, said: Said) -> None:
        """Add a line."""
        match said.kind:
            case SaidKind.TOOL:
                name, _, about = self._mask(said.text).partition(" ")
                if name in self._tools or len(self._tools) < _MOST_TOOLS:
                    self._tools[name] = self._tools.get(name, 0) + 1
                self._steps.append(ToolCall(name, about))
                # Words before a tool call count only if there are none after the last call.
                if any(map(str.strip, self._lines)):
                    self._before = list(self._lines)
                self._lines.clear()
            case SaidKind.TEXT | SaidKind.ERROR:
                self._lines.append(_short(self._mask(said.text)))

    def words(self, *, is_cut: bool) -> AgentWords:
        """Return what is kept."""
        lines = list(self._lines) if any(map(str.strip, self._lines)) else self._before
        text = "\n".join(lines).strip()
        if len(text) > self._longest:
            text = "[...] " + text[-self._longest :].lstrip()
        ordered = dict(sorted(self._tools.items(), key=lambda pair: -pair[1]))
        return AgentWords(text, tuple(self._steps), ordered, is_cut)


def _short(line: str) -> str:
    return line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]} [...]"


# A whole transcript as a person reads it, piece by piece: the memory is bounded.


_KEPT = 64 * 1024  # bytes of the assistant's text that the reader keeps
_JSON = (b"{", b"[")


def readable(
    pieces: Iterable[tuple[str, bytes]],
    adapter: str,
    folder: str = "",
    masker: Masker = MASK_NOTHING,
) -> Iterator[str]:
    """Yield the agent's words as they are, and each tool call and error as one line.

    `pieces` are those of both streams. The text of an agent that prints no events is only cleaned.
    """
    transcript = _Transcript(adapter, folder, masker)
    for stream, data in pieces:
        yield transcript.feed(stream, data)
    yield transcript.finish()


class _Transcript:
    """Reads both streams of one iteration."""

    def __init__(self, adapter: str, folder: str, masker: Masker) -> None:
        self._reader = None
        if adapter in KNOWN:
            self._reader = OutputReader(KNOWN[adapter], Form.UNKNOWN, folder=folder, limit=_KEPT)
        self._streams = {"stdout": masker.cleaner(), "stderr": masker.cleaner()}
        self._said = masker.stream()
        self._is_decided = False
        self._is_mid_line = False
        self._is_mid_said = False

    def feed(self, stream: str, data: bytes) -> str:
        """Return what can be read after this piece."""
        if stream == "stdout" and not self._is_decided and (start := data.lstrip()[:1]):
            self._is_decided = True
            if start not in _JSON:
                self._reader = None  # it is text, which needs no reader
        if stream == "stdout" and self._reader is not None:
            return self._lines(self._reader.feed(stream, data))
        return self._text(self._streams[stream].feed(data))

    def finish(self) -> str:
        """Return the rest, up to the end of a line."""
        found = self._lines(self._reader.finish()) if self._reader is not None else ""
        found += self._text(self._said.finish())
        for stream in self._streams.values():
            found += self._text(stream.finish())
        return found + ("\n" if self._is_mid_line else "")

    def _text(self, text: str) -> str:
        if text:
            self._is_mid_said = False
            self._is_mid_line = not text.endswith("\n")
        return text

    def _lines(self, said: Iterable[Said]) -> str:
        found = self._said.feed("".join(f"{_line(one)}\n" for one in said))
        if found and self._is_mid_line and not self._is_mid_said:
            found = f"\n{found}"
        self._text(found)
        self._is_mid_said = self._is_mid_line
        return found


def _line(said: Said) -> str:
    """Return the agent's own words as they are, and the rest with a mark."""
    text = clean(said.text)
    return text if said.kind is SaidKind.TEXT else f"[{said.kind}] {text}"
