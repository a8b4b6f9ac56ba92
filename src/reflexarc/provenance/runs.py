"""What a message gives by its place: the fields of a run of short parts ("12 Elm Street, Oslo, NO")
and the values of labelled lines ("- **City:** Oslo"); and names that begin with a number.
"""

import re
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

_MAX_CHARS = 6_000
_MAX_RUNS = 8
_MAX_LABELS = 40
_MAX_NUMBERED = 12
_FEWEST, _MOST = 3, 8
_LONGEST = 40
_PART = r"[^,;:!?\n|(){}\[\]\"“”]{1,40}"
_RUN = re.compile(rf"{_PART}(?:, ?{_PART}){{{_FEWEST - 1},{_MOST - 1}}}")
_BETWEEN = re.compile(r"[;:!?\n|(){}\[\]\"“”]+")
_MAY_BE_NUMBERED = re.compile(r"\d[A-Za-z]? [A-Z]")
_NUMBERED = re.compile(
    r"(?<![\w#.,-])\d{1,6}[A-Za-z]? [A-Z][\w'.-]{1,20}(?: [A-Z][\w'.-]{0,20}){0,4}"
)
_LABELLED = re.compile(
    r"^[ \t]{0,12}(?:[-*•] |\d{1,2}[.)] )?[ \t]{0,4}\*{0,2}([A-Za-z][\w /'-]{1,30}?)\*{0,2}:"
    r"\*{0,2}[ \t]{1,4}(\S[^\n]{0,90})$",
    re.MULTILINE,
)
_NAME = re.compile(r"[A-Z0-9][\w'.-]{0,20}")
_MOST_WORDS = 6
_SENTENCE_ENDS = re.compile(r"\. |\.$| and | or | is | for | as | to | in | at | with | on | -")
_MARKS = "*_` \t"


class Placed(NamedTuple):
    """A value and the name of its place: `run:0of5`, `run:-1`, `label:city`, `numbered`."""

    place: str
    value: str


def placed(text: str) -> Iterator[Placed]:
    """What a message's first 6,000 characters give by place: at most some 120 values."""
    text = text[:_MAX_CHARS].replace("*", "")
    for run in islice(_runs(text), _MAX_RUNS):
        yield from _fields(run)
    if _MAY_BE_NUMBERED.search(text) is None:
        return
    for match in islice(_NUMBERED.finditer(text), _MAX_NUMBERED):
        yield Placed("numbered", match.group().rstrip("."))


def _runs(text: str) -> Iterator[str]:
    """What `_RUN` finds, which is asked only where commas enough stand between what parts no runs,
    and from where a first part could begin."""
    if text.count(",") < _FEWEST - 1:
        return
    for piece in _BETWEEN.split(text):
        if piece.count(",") >= _FEWEST - 1:
            for match in _RUN.finditer(piece, max(0, piece.index(",") - _LONGEST)):
                yield match.group()


def labelled(text: str) -> Iterator[Placed]:
    """The values of labelled lines, by their labels in lower case."""
    if ":" not in text:
        return
    for count, match in enumerate(_LABELLED.finditer(text[:_MAX_CHARS])):
        if count >= _MAX_LABELS:
            break
        value = match.group(2).strip(_MARKS).rstrip(".")
        if value:
            yield Placed(f"label:{match.group(1).strip().lower()}", value)


def _fields(run: str) -> Iterator[Placed]:
    parts = [part.strip(_MARKS) for part in run.split(",")]
    words = parts[0].split(" ")
    begins = len(words)
    while begins and len(words) - begins < _MOST_WORDS and _NAME.fullmatch(words[begins - 1]):
        begins -= 1
    parts[0] = " ".join(words[begins:])
    ends = _SENTENCE_ENDS.search(parts[-1])
    if ends:
        parts[-1] = parts[-1][: ends.start()]
    if not all(0 < len(part) <= _LONGEST for part in parts):
        return
    for at, part in enumerate(parts):
        yield Placed(f"run:{at}of{len(parts)}", part)
        yield Placed(f"run:{at - len(parts)}", part)
