"""`rooda show --output` and `--raw`: what the agent printed, to read or byte for byte."""

from collections.abc import Iterable, Iterator

import click
from msgspec import Struct

from rooda.base.problems import InvalidInput, Problem
from rooda.base.secrets.masking import ByteStream
from rooda.front.pager import is_terminal, print_paged
from rooda.front.recorded import Recorded
from rooda.record.rows import IterationRow, RunRow
from rooda.record.run_folders import iteration_folder
from rooda.record.transcript_files import named_streams
from rooda.views.model.build import adapter_of
from rooda.views.wording.transcript import readable
from rooda.world.agents.registry import TEXT

_TITLE = "=== iteration {} ===\n"


def print_output(record: Recorded, run: RunRow, number: int | None, *, is_raw: bool) -> None:
    """Print the output of one iteration, or of all; `is_raw`: the bytes as the agent wrote them.

    A terminal never gets control codes of an agent.
    """
    rows = record.iterations(run.run) if number is None else [record.iteration(run, number)]
    if not rows:
        problem = Problem(
            f"run {run.run} has no output yet", "Wait until its first iteration has started"
        )
        raise InvalidInput([problem])
    output = _Output(record, run, number is None, is_raw)
    if is_terminal():
        print_paged(output.for_people(rows), record.workspace)
        return
    for piece in output.for_programs(rows):
        click.echo(piece, nl=False)


class _Output(Struct, frozen=True):
    """The output of iterations of a run, piece by piece."""

    record: Recorded
    run: RunRow
    is_whole_run: bool
    is_raw: bool

    def for_people(self, rows: Iterable[IterationRow]) -> Iterator[str]:
        """Yield clean text."""
        for row in rows:
            if self.is_whole_run:
                yield _TITLE.format(row.number)
            yield from self._words(row)

    def for_programs(self, rows: Iterable[IterationRow]) -> Iterator[bytes]:
        """Yield bytes; the text of an agent that rooda does not know is as the agent wrote it."""
        end = b"\n"
        for row in rows:
            if self.is_whole_run and not self.is_raw:
                yield (b"" if end == b"\n" else b"\n") + _TITLE.format(row.number).encode()
            if self._adapter(row) == TEXT:
                found = self._bytes(row)
            else:
                found = (text.encode("utf-8", "replace") for text in self._words(row))
            for data in found:
                end = data[-1:] or end
                yield data

    def _bytes(self, row: IterationRow) -> Iterator[bytes]:
        """Yield the bytes of both streams; only secrets are masked."""
        streams: dict[str, ByteStream] = {}
        for name, data in self._pieces(row):
            if name not in streams:
                streams[name] = ByteStream(self.record.masker)
            yield streams[name].feed(data)
        yield from (stream.finish() for stream in streams.values())

    def _words(self, row: IterationRow) -> Iterator[str]:
        folder = str(self.record.workspace)
        return readable(self._pieces(row), self._adapter(row), folder, self.record.masker)

    def _adapter(self, row: IterationRow) -> str:
        return TEXT if self.is_raw else adapter_of(self.run, row)

    def _pieces(self, row: IterationRow) -> Iterator[tuple[str, bytes]]:
        """Yield what the agent printed on each stream, in order of arrival."""
        folder = iteration_folder(self.record.state, row.run, row.number, row.attempt)
        try:
            yield from named_streams(folder)
        except OSError as error:
            message = f"the output of iteration {row.number} is gone: {error.strerror}"
            if self.is_whole_run:
                click.echo(f"Warning: {message}", err=True)  # the others may be there
                return
            problem = Problem(message, f"Something has deleted it from {folder}")
            raise InvalidInput([problem]) from None
