"""One value of a conversation, with the place it stands in."""

from collections.abc import Callable
from typing import Any, Literal

from reflexarc.provenance.words import plain_text, said_words

SourceKind = Literal[
    "tool_result", "user_message", "assistant_message", "system_prompt", "earlier_call", "constant"
]


class Origin:
    """The message a value came from: its index in the conversation, its text, its time."""

    __slots__ = ("_lower", "event", "kind", "message", "places", "text")

    def __init__(self, kind: SourceKind, message: int, event: int, text: str) -> None:
        self.kind: SourceKind = kind
        self.message = message
        self.event = event
        self.text = text
        self._lower: str | None = None
        # Where values stand in it, as it was found out (`cues.py`).
        self.places: dict[tuple[str, int], object] = {}

    @property
    def lower(self) -> str:
        if self._lower is None:
            self._lower = self.text.lower()
        return self._lower


class Record:
    """The scalar fields that stand beside a value in its object: what it is called, so to say.
    `text` may be given as a function of nothing: most records are never asked for it."""

    __slots__ = ("_text", "_words")

    def __init__(self, text: str | Callable[[], str]) -> None:
        self._text = text
        self._words: frozenset[str] | None = None

    @property
    def text(self) -> str:
        text = self._text
        if not isinstance(text, str):
            text = self._text = text()
        return text

    @property
    def words(self) -> frozenset[str]:
        if self._words is None:
            self._words = said_words(self.text[:1000])
        return self._words


NO_RECORD = Record("")


class Entry:
    """A value in a slot. `position` is its ordinal among its list, object or text; `at`: where in
    the text what it means stands, -1 where it stands there as it is (or nowhere)."""

    __slots__ = ("_text", "at", "origin", "position", "record", "slot", "value")

    def __init__(
        self, slot: str, value: Any, origin: Origin, position: int = 0, record: Record = NO_RECORD,
        at: int = -1,
    ) -> None:  # fmt: skip
        self.slot = slot
        self.value = value
        self.origin = origin
        self.position = position
        self.at = at
        self.record = record
        self._text: str | None = None

    @property
    def text(self) -> str:
        """The value as text, whatever its JSON type: what values are matched by."""
        if self._text is None:
            self._text = plain_text(self.value)
        return self._text
