"""What values and records have in common with what was said last: found once while it is last."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence

from reflexarc.provenance import Record
from reflexarc.provenance.words import said_words, word_set

_LONGEST_NAMED = 200
_TAIL = 1500
_NOTHING = (0.0, 0.0, 0.0)
_LONGEST_LIST = 6_000
_NUMBERED = re.compile(r"\b(?:option|number|choice|variant|no\.?|#) ?(\d{1,2})\b")
_LISTED = re.compile(
    r"^[ \t]{0,8}(?:[-*] )?[*]{0,2}(\d{1,2})[.)][*]{0,2} +(.{1,400})", re.MULTILINE
)
_ORDINAL = re.compile(r"\b(first|second|third|fourth|fifth|sixth) (?:one|option|choice|item)\b")
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth")


Told = tuple[float, float, float, float]


class Text:
    """The newest message of one author, with what is looked up in it most."""

    __slots__ = ("asked", "lower", "said", "text", "words")

    def __init__(self, text: str) -> None:
        self.text = text
        self.lower = text.lower()
        self.words = word_set(text[-_TAIL:])
        self.said = said_words(text[-_TAIL:])
        # Signs of its words, and of those of its parts, as `choice.py` asks for them.
        self.asked: tuple[list[int], list[list[int]]] | None = None


EMPTY = Text("")


class Said:
    """The last message of the user and of System 2, and the words of all the user said; valid
    until either speaks again. Holds what it is asked: a context asks of what it holds itself."""

    __slots__ = (
        "_named", "_overlaps", "_spoken", "_told", "assistant", "meant", "recent", "shares", "talk",
        "user",
    )  # fmt: skip

    def __init__(
        self, user: Text, assistant: Text, talk: set[str], recent: Iterable[frozenset[str]]
    ) -> None:
        self.user = user
        self.assistant = assistant
        self.talk = talk
        self.recent = frozenset[str]().union(*recent)
        # Of a value's own words those that the user's last message has, as `said_features` asks.
        self.shares: dict[str, float] = {}
        self._named: dict[str, tuple[bool, bool]] = {}
        self._overlaps: dict[Record, tuple[float, float, float]] = {}
        self._told: dict[tuple[Record, ...], dict[Record, Told]] = {}
        self.meant = user.said | lines_meant(user.lower, assistant.text)
        self._spoken = talk | self.recent | self.meant

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
                    len(words & self.user.said) * weight,
                    len(words & self.talk) * weight,
                    len(words & self.assistant.said) * weight,
                )
            else:
                found = _NOTHING
            self._overlaps[record] = found
        return found

    def told(self, records: tuple[Record, ...]) -> dict[Record, Told]:
        """How well each of a message's records fits what was said of them: by the user last (lines
        of System 2's list that were chosen by number are meant, too), by the user at all, by System
        2 last, by both of late. The share of the words said that are the record's, words weighing
        more the fewer records have them: what all have in common tells nothing."""
        found = self._told.get(records)
        if found is None:
            found = self._told[records] = self._tell(records)
        return found

    def _tell(self, records: Sequence[Record]) -> dict[Record, Told]:
        fields = (self.meant, self.talk, self.assistant.said, self.recent)
        spoken = self._spoken
        heard = [record.words & spoken for record in records]
        having = Counter(word for words in heard for word in words)
        count = len(records) + 1
        weights = {word: math.log(count / n) for word, n in having.items()}
        # Summed so that the order of words, which differs from process to process, does not tell.
        totals = [
            math.fsum([weight for word, weight in weights.items() if word in field]) or 1.0
            for field in fields
        ]
        return {
            record: (
                math.fsum([weights[word] for word in words if word in fields[0]]) / totals[0],
                math.fsum([weights[word] for word in words if word in fields[1]]) / totals[1],
                math.fsum([weights[word] for word in words if word in fields[2]]) / totals[2],
                math.fsum([weights[word] for word in words if word in fields[3]]) / totals[3],
            )
            for record, words in zip(records, heard, strict=True)
        }


def lines_meant(asked: str, listed: str) -> frozenset[str]:
    """The words of the numbered lines of a list that an answer to it chooses by their numbers
    ("option 5", "the second one"); `asked` in lower case."""
    asked = asked[-_TAIL:]
    numbers = {int(number) for number in _NUMBERED.findall(asked)}
    numbers |= {_ORDINALS.index(word) + 1 for word in _ORDINAL.findall(asked)}
    if not numbers:
        return frozenset()
    lines = _LISTED.findall(listed[-_LONGEST_LIST:])
    return frozenset[str]().union(*(said_words(text) for at, text in lines if int(at) in numbers))
