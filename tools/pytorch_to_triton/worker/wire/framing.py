"""Messages on a socket: JSON, each behind a key that only its two ends know and its length.

Imported by both sides of the border; the standard library only.
"""

import json
import struct
from typing import Any

from .as_json import encoded

KEY_BYTES = 16
_LENGTH = struct.Struct("!I")


class Garbled(Exception):
    """What came is no message from the other end."""


class Framing:
    """Packs the messages of one end of a socket, and unpacks those of the other.

    A kernel under validation runs in the job's process, where it may write to any descriptor. The key lies in
    no file and in no global: without it nothing that it writes is taken for a message.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._unread = bytearray()

    def pack(self, message: Any) -> bytes:
        """A message as it is sent. Raises ValueError for NaN and infinities."""
        text = encoded(message).encode()
        return self._key + _LENGTH.pack(len(text)) + text

    def feed(self, data: bytes) -> None:
        """Take bytes as they come."""
        self._unread += data

    def take(self) -> Any:
        """The next message that has come whole, None if there is none. Raises Garbled."""
        if not self._unread.startswith(self._key[: len(self._unread)]):
            raise Garbled
        start = KEY_BYTES + _LENGTH.size
        if len(self._unread) < start:
            return None
        (length,) = _LENGTH.unpack_from(self._unread, KEY_BYTES)
        text = bytes(self._unread[start : start + length])
        if len(text) < length:
            return None
        del self._unread[: start + length]
        return json.loads(text)
