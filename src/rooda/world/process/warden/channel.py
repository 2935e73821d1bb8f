"""Messages between rooda and its warden: tuples of plain values, and open files."""

import marshal
import socket
import struct
from collections.abc import Sequence

Message = tuple[object, ...]  # a name, and plain values: numbers, strings, tuples, lists, dicts

_LENGTH = struct.Struct("!I")
_READ = 256 * 1024
_LONGEST = 64 * 1024 * 1024  # no environment is as large
_MOST_FDS = 8


class ChannelClosed(Exception):  # noqa: N818 - what happened, not a mistake
    """The other side is gone."""


class Channel:
    """One end of the channel.

    Marshal fits: the same interpreter of the same installation is at both ends.
    """

    def __init__(self, end: socket.socket) -> None:
        self._socket = end
        self._pending = bytearray()
        self.files: list[int] = []  # received descriptors, oldest first

    def fileno(self) -> int:
        """For a selector."""
        return self._socket.fileno()

    def send(self, message: Message, files: Sequence[int] = ()) -> None:
        """Send one message, with descriptors if any. Raises ChannelClosed if the peer is gone."""
        body = marshal.dumps(message)  # type: ignore[arg-type]  # plain values, see `Message`
        data = memoryview(_LENGTH.pack(len(body)) + body)
        try:
            sent = socket.send_fds(self._socket, [data], files) if files else 0
            # Do not send an empty rest: the peer may have read the message and ended by now, and
            # the error would suggest that it had not read it.
            if sent < len(data):
                self._socket.sendall(data[sent:])
        except OSError as error:
            raise ChannelClosed(str(error)) from None

    def receive(self) -> list[Message]:
        """Every message that is complete after one read. Raises ChannelClosed at the end."""
        try:
            data, files, _, _ = socket.recv_fds(self._socket, _READ, _MOST_FDS)
        except BlockingIOError:
            return []
        except OSError as error:
            raise ChannelClosed(str(error)) from None
        self.files += files
        if not data:
            raise ChannelClosed("end of file")
        self._pending += data
        return self._complete()

    def close(self) -> None:
        """Close this end; the other side sees the end of the channel."""
        self._socket.close()

    def _complete(self) -> list[Message]:
        found: list[Message] = []
        while len(self._pending) >= _LENGTH.size:
            end = _LENGTH.size + _LENGTH.unpack_from(self._pending)[0]
            if end > _LONGEST:
                raise ChannelClosed("nonsense")
            if len(self._pending) < end:
                break
            found.append(_message(bytes(self._pending[_LENGTH.size : end])))
            del self._pending[:end]
        return found


def _message(data: bytes) -> Message:
    """The message in these bytes; another process may have got the peer's end and write garbage."""
    try:
        message = marshal.loads(data)  # noqa: S302 - see Channel
    except (ValueError, EOFError, TypeError):
        raise ChannelClosed("nonsense") from None
    if not isinstance(message, tuple) or not message:
        raise ChannelClosed("nonsense")
    return message
