"""What was read of a conversation's messages, kept so that reading it again gives the very same.

Learning goes through each session four times: for what is private, for what is counted, for the
rows of members, to judge them. Reading messages is most of what that costs, and says the same each
time; what is worked out later about an entry or a record is shared, too.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

T = TypeVar("T")


class Room:
    """How many more values the tapes of some sessions may keep."""

    __slots__ = ("left",)

    def __init__(self, left: int) -> None:
        self.left = left


class Tape:
    """What contexts read, one after the other, of one and the same conversation, in its order.

    Where there is no more room, what comes later is read again each time."""

    __slots__ = ("_at", "_full", "_read", "_room")

    def __init__(self, room: Room) -> None:
        self._room = room
        self._read: list[tuple[str, Any]] = []
        self._at = 0
        self._full = False

    def rewind(self) -> None:
        """From here on a new context reads the conversation, from its first message."""
        self._at = 0

    def once(self, text: str, read: Callable[[], T], size: Callable[[T], int]) -> T:
        """What `read` gave of a message's text when it was first read. Raises RuntimeError where
        another text is read than stood here then."""
        if self._at < len(self._read):
            known, found = self._read[self._at]
            if known != text:
                raise RuntimeError("a tape is of one conversation: give another one another tape")
            self._at += 1
            return cast(T, found)
        made = read()
        if not self._full:
            self._room.left -= size(made)
            self._full = self._room.left < 0
            if not self._full:
                self._read.append((text, made))
                self._at += 1
        return made
