"""What values and records have in common with what was said last: found once while it is last."""

from reflexarc.provenance import Record
from reflexarc.provenance.words import word_set

_LONGEST_NAMED = 200
_TAIL = 1500
_NOTHING = (0.0, 0.0, 0.0)


class Text:
    """The newest message of one author, with what is looked up in it most."""

    __slots__ = ("lower", "text", "words")

    def __init__(self, text: str) -> None:
        self.text = text
        self.lower = text.lower()
        self.words = word_set(text[-_TAIL:])


EMPTY = Text("")


class Said:
    """The last message of the user and of System 2, and the words of all the user said; valid
    until either speaks again. Holds what it is asked: a context asks of what it holds itself."""

    __slots__ = ("_named", "_overlaps", "assistant", "talk", "user")

    def __init__(self, user: Text, assistant: Text, talk: set[str]) -> None:
        self.user = user
        self.assistant = assistant
        self.talk = talk
        self._named: dict[str, tuple[bool, bool]] = {}
        self._overlaps: dict[Record, tuple[float, float, float]] = {}

    def named(self, text: str) -> tuple[bool, bool]:
        """Whether the user's last message, and System 2's, names a value."""
        found = self._named.get(text)
        if found is None:
            if 1 < len(text) <= _LONGEST_NAMED:
                lower = text.lower()
                found = (lower in self.user.lower, lower in self.assistant.lower)
            else:
                found = (False, False)
            self._named[text] = found
        return found

    def overlap(self, record: Record) -> tuple[float, float, float]:
        """The share of a record's words in the user's last message, in all the user said, in
        System 2's last message."""
        found = self._overlaps.get(record)
        if found is None:
            words = record.words
            if words:
                weight = 1.0 / (len(words) + 1)
                found = (
                    len(words & self.user.words) * weight,
                    len(words & self.talk) * weight,
                    len(words & self.assistant.words) * weight,
                )
            else:
                found = _NOTHING
            self._overlaps[record] = found
        return found
