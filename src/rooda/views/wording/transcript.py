"""A whole transcript as a person reads it, piece by piece: the memory is bounded."""

from collections.abc import Iterable, Iterator

from rooda.base.controls import clean
from rooda.base.secrets.masking import MASK_NOTHING, Masker
from rooda.world.agents.agent_report import Form, Said, SaidKind
from rooda.world.agents.output_reader import OutputReader
from rooda.world.agents.registry import KNOWN

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
