"""Messages between rooda and its warden: tuples of plain values, and open files."""

import marshal
import socket
import struct
from collections.abc import Sequence
from typing import Any

Message = tuple[Any, ...]

_LENGTH = struct.Struct("!I")
_READ = 256 * 1024
_LONGEST = 64 * 1024 * 1024  # no environment is as large
_MOST_FDS = 8


class Closed(Exception):  # noqa: N818 - what happened, not a mistake
    """The other side is gone."""


class Channel:
    """One end. Marshal is safe here: the same interpreter of the same installation is at both."""

    def __init__(self, end: socket.socket) -> None:
        self._socket = end
        self._pending = bytearray()
        self.files: list[int] = []  # descriptors that came along, oldest first

    def fileno(self) -> int:
        """For a selector."""
        return self._socket.fileno()

    def send(self, message: Message, files: Sequence[int] = ()) -> None:
        """Send one message, with descriptors if any. Raises Closed when nobody is there."""
        body = marshal.dumps(message)
        data = memoryview(_LENGTH.pack(len(body)) + body)
        try:
            sent = socket.send_fds(self._socket, [data], files) if files else 0
            # Nothing is sent after the last byte, not even nothing: who got the message may be gone
            # by then, and that is no reason to believe that nobody has read it.
            if sent < len(data):
                self._socket.sendall(data[sent:])
        except OSError as error:
            raise Closed(str(error)) from None

    def receive(self) -> list[Message]:
        """Every message that is complete after one read. Raises Closed at the end."""
        try:
            data, files, _, _ = socket.recv_fds(self._socket, _READ, _MOST_FDS)
        except BlockingIOError:
            return []
        except OSError as error:
            raise Closed(str(error)) from None
        self.files += files
        if not data:
            raise Closed("end of file")
        self._pending += data
        return self._complete()

    def close(self) -> None:
        """Let go; the other side sees the end of the channel."""
        self._socket.close()

    def _complete(self) -> list[Message]:
        found: list[Message] = []
        while len(self._pending) >= _LENGTH.size:
            end = _LENGTH.size + _LENGTH.unpack_from(self._pending)[0]
            if end > _LONGEST:
                raise Closed("nonsense")
            if len(self._pending) < end:
                break
            found.append(_message(bytes(self._pending[_LENGTH.size : end])))
            del self._pending[:end]
        return found


def _message(data: bytes) -> Message:
    """Somebody may have got hold of the other end and write whatever he likes."""
    try:
        message = marshal.loads(data)  # noqa: S302 - see above
    except (ValueError, EOFError, TypeError):
        raise Closed("nonsense") from None
    if not isinstance(message, tuple) or not message:
        raise Closed("nonsense")
    return message
