"""A log: the events that are important enough, in one format, with the time in one form; its file.

The words of an event are its own (`rooda.base.event`). The JSON schema is in
docs/reference/events.md.
"""

import errno
import json
import os
import re
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from rooda.base.colors import Color, Painter
from rooda.base.controls import BIDIRECTIONAL
from rooda.base.event import Event, LogLevel
from rooda.base.secrets.masking import Masker
from rooda.base.widths import cut
from rooda.loop.events.agent import AgentSaid
from rooda.loop.events.emitter import Stamped
from rooda.loop.events.iteration import IterationEnded
from rooda.world.files.beneath import Beneath
from rooda.world.git.work_tree import OUTSIDE, leads_out

# Events as views show them: without secrets.


class EventMasker:
    """Masks the texts of events. What agents say comes line by line, private keys too."""

    def __init__(self, masker: Masker) -> None:
        self._masker = masker
        self._said = masker.lines()

    def __call__(self, event: Event) -> Event:
        """Return the event without secrets."""
        if isinstance(event, AgentSaid):
            return replace(event, text=self._said(event.text))
        return self._masker.tree(event)


SCHEMA_VERSION = 1
_CONTROLS = re.compile(rf"[\x7f-\x9f{BIDIRECTIONAL}]")

TimeFormat = Callable[[Stamped], str | None]
# The forms of `log_timestamp_format`.
TIME_FORMATS: dict[str, TimeFormat] = {
    "time": lambda stamped: stamped.at.strftime("%H:%M:%S"),
    "time-ms": lambda stamped: stamped.at.isoformat(timespec="milliseconds")[11:23],
    "relative": lambda stamped: f"+{stamped.elapsed:.1f}s",
    "iso": lambda stamped: stamped.at.isoformat(timespec="milliseconds"),
    "none": lambda _: None,
}
AUTO_TIME = "auto"  # the user has not chosen a form: it depends on the format of the log
DEFAULT_TIMES = {"text": "time", "logfmt": "time-ms", "json": "iso"}
LOG_FILE_TIME = "iso"


class Log(Struct, frozen=True):
    """A listener that writes lines."""

    log_format: str
    time: TimeFormat
    threshold: LogLevel
    write: Callable[[str], None]
    paint: Painter = Painter()
    width: Callable[[], int] | None = None  # columns of the terminal, if it is one

    def __call__(self, stamped: Stamped) -> None:
        """Write the event's line, if it has one."""
        event = stamped.event
        level = event.text_log_level if self.log_format == "text" else event.log_level
        if level < self.threshold:
            return
        line = self.line(stamped)
        if line is not None:
            self.write(line + "\n")

    def line(self, stamped: Stamped) -> str | None:
        """Return the event as this log shows it."""
        time, event = self.time(stamped), stamped.event
        if self.log_format == "json":
            return json_line(stamped, time)
        words = self._text(event) if self.log_format == "text" else event.as_logfmt()
        if words is None or time is None:
            return words
        return f"{self.paint(Color.QUIET, f'[{time}]')} {words}"

    def _text(self, event: Event) -> str | None:
        """Return the event as text. A step that other formats log as info is a debug line here."""
        words = event.as_text() if self.threshold <= LogLevel.WARN else event.as_text_alone()
        if words is None:
            return None
        if event.text_log_level < event.log_level:
            words = f"{event.text_log_level.name}: {words}"
        if self.width is not None and isinstance(event, IterationEnded):
            detail = event.detail()
            words = words.replace(detail, cut(detail, self.width() - 1), 1)
        return painted(words, event, self.paint)


def painted(words: str, event: Event, paint: Painter) -> str:
    """Return the text of an event with its colors."""
    if not paint.is_on:
        return words
    first, newline, rest = words.partition("\n")
    for name in event.highlights:
        rest = rest.replace(name, paint(Color.NAME, name), 1)
    return (first if event.tone is None else paint(event.tone, first)) + newline + rest


def json_line(stamped: Stamped, time: str | None) -> str | None:
    """Return the event as a JSON object on one line; None if it is not logged."""
    event = stamped.event
    if not event.is_logged:
        return None
    head: dict[str, object] = {"schema_version": SCHEMA_VERSION}
    if time is not None:
        head["time"] = time
    head |= {
        "elapsed": round(stamped.elapsed, 3),
        "level": event.log_level.name.lower(),
        "event": event.event_name(),
    }
    if stamped.iteration is not None:
        head["iteration"] = stamped.iteration
    line = json.dumps(head | event.to_json(), ensure_ascii=False, default=_plain)
    # JSON allows these control characters as they are, but a terminal obeys them.
    return _CONTROLS.sub(lambda match: f"\\u{ord(match[0]):04x}", line)


def _plain(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


# Not blocking: a FIFO without a reader is an error and not a wait without end.
_APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK | os.O_CLOEXEC


class LogFile:
    """Appends to a file, and opens it again if the agent has deleted or replaced it.

    It follows no link that the agent has put in the place of the file or of a folder above it. The
    agent of an earlier run may have made one in one of the `trees`.

    Raises OSError if the file can't be written: the emitter reports that.
    """

    def __init__(
        self,
        path: Path,
        open_file: Callable[[], int] | None = None,
        trees: Sequence[Path] = (),
    ) -> None:
        self._path = path
        self._trees = trees
        self._target = os.path.realpath(path)
        self._is_link = path.is_symlink()  # the user's own link, as `/dev/stdout` is one
        self._open = open_file or self._open_again
        self._fd = self._open_first() if open_file is None else open_file()

    def write(self, text: str) -> None:
        """Append the text."""
        if not self._is_there():
            fd = self._open()  # first: if that fails, the old one stays open
            os.close(self._fd)
            self._fd = fd
        rest = text.encode("utf-8", "replace")
        while rest:
            rest = rest[os.write(self._fd, rest) :]

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)

    def _open_first(self) -> int:
        if leads_out(self._path, *self._trees):
            raise OSError(errno.ELOOP, OUTSIDE, str(self._path))
        return os.open(self._path, _APPEND, 0o600)

    def _open_again(self) -> int:
        """Open the same place as at the start. A link that is there now is not the user's."""
        if not self._is_link and self._path.is_symlink():
            self._path.unlink()
        if os.path.realpath(self._path) != self._target:
            raise OSError(errno.ELOOP, "a symbolic link now leads elsewhere", str(self._path))
        # The agent is at work, and may put a link there now: no link is followed on the way.
        with Beneath("/").above(self._target.removeprefix("/")) as (folder, name):
            return os.open(name, _APPEND | os.O_NOFOLLOW, 0o600, dir_fd=folder)

    def _is_there(self) -> bool:
        try:
            found = self._path.stat() if self._is_link else self._path.lstat()
            return os.path.samestat(os.fstat(self._fd), found)
        except OSError:
            return False
