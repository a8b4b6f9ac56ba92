"""How one message looks: hashes of its words, of the places of its values and of their shapes.

No word and no value stays: only what is equal can be recognised. `familiarity.py` compares.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import xxhash

from reflexarc.provenance import Entry
from reflexarc.reflex.injection import signs

USER = ""
"""Stands for a tool's name where a user speaks."""
CALL = "\0call"
"""The same for a call: its words are no surprise in what comes back."""

_MAX_WORDS_CHARS = 20_000
_MAX_SEGMENTS = 200
_LONG_TEXT = 60
_LONGEST_ERROR = 200
_ERROR = re.compile(r"\s*(?:error|failed|failure|invalid|not found)\b", re.IGNORECASE)
_WORD = re.compile(r"[^\W\d_]+")
# Written without spaces between words: each character counts as one.
_WORDLESS = re.compile(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uac00-\ud7af]")
_LETTERS = re.compile(r"[a-zA-Z]+")
_FOREIGN = re.compile(r"[^\W\d_a-zA-Z]+")
_DIGITS = re.compile(r"\d+")
_NAMES = re.compile(r"a(?:[ ',.&-]{1,2}a)+")


class Seen:
    """A message of a user or a tool, as a context keeps it to be looked at. `entries` are the
    values found in a result."""

    __slots__ = ("entries", "text", "tool")

    def __init__(self, tool: str, text: str, entries: Sequence[Entry] = ()) -> None:
        self.tool = tool
        self.text = text
        self.entries = entries


class Memo:
    """How far a context was judged, by whom, and what came of it."""

    __slots__ = ("fault", "owner", "read", "said", "surprise")

    def __init__(self) -> None:
        self.owner: object = None
        self.read = 0
        self.surprise = 0.0
        self.said: set[int] = set()
        self.fault: str | None = None


class Look:
    """`segments`: hashes of the words of a message's pieces of free text; `kind`: of the kind of
    text a result is, `form`: of that and the tool; `places`: of the places of its values;
    `shapes`: of places with what stands there, and the place of each; `cues`: hashes of signs of
    instructions.

    A place is a path, whatever the tool: tools of one system show the same objects."""

    __slots__ = ("cues", "form", "kind", "places", "segments", "shapes", "tool")

    def __init__(self, tool: str) -> None:
        self.tool = tool
        self.segments: list[frozenset[int]] = []
        self.kind = 0
        self.form = 0
        self.places: set[int] = set()
        self.shapes: dict[int, int] = {}
        self.cues: frozenset[int] = frozenset()

    def features(self) -> Iterator[int]:
        """Every hash that may become known."""
        for segment in self.segments:
            yield from segment
        yield self.kind
        yield self.form
        yield from self.places
        yield from self.shapes
        if self.tool not in (USER, CALL):
            yield from self.cues


def look_of(seen: Seen) -> Look:
    """Bounded: words of the first 20,000 characters, the values a context keeps of a result;
    signs of instructions are looked for in all of it."""
    look = Look(seen.tool)
    # What a user says or a call gives may come back in a result: signs of orders too.
    look.cues = frozenset(_hash(f"cue\0{sign}") for sign in signs(seen.text))
    if seen.tool in (USER, CALL):
        look.segments.append(_words(seen.text[:_MAX_WORDS_CHARS]))
        return look
    kind = _kind(seen.text)
    look.kind = _hash(f"kind\0{kind}")
    # One system reports its errors alike, whichever tool was called.
    look.form = _hash(f"form\0{'' if kind == 'error' else seen.tool}\0{kind}")
    if kind in ("text", "markup", "mixed", "error"):
        for line in seen.text[:_MAX_WORDS_CHARS].splitlines()[:_MAX_SEGMENTS]:
            look.segments.append(_words(line))
    if kind in ("text", "markup", "mixed"):
        look.shapes[_hash(f"size\0{seen.tool}\0{len(seen.text).bit_length()}")] = look.form
    if kind != "error":
        _values(look, seen.entries, texts=kind.startswith("json"))
    return look


def _values(look: Look, entries: Sequence[Entry], *, texts: bool) -> None:
    places: dict[str, int] = {}
    shapes: set[tuple[str, str]] = set()
    chars = 0
    for entry in entries:
        slot, value = entry.slot, entry.value
        token = slot.startswith("tx:")
        place = places.get(slot)
        if place is None:
            path = slot.split(":", 2)[2]
            place = places[slot] = _hash(f"place\0{path or slot}")
            if token:
                look.shapes[place] = look.form
            else:
                look.places.add(place)
        if token:
            continue
        form = form_of(value)
        if (slot, form) not in shapes:
            shapes.add((slot, form))
            look.shapes[_hash(f"shape\0{place}\0{form}")] = place
        if texts and isinstance(value, str) and " " in value and chars < _MAX_WORDS_CHARS:
            chars += len(value)
            if len(look.segments) < _MAX_SEGMENTS:
                look.segments.append(_words(value))


def form_of(value: Any) -> str:
    """The coarse form of a value: `A number`, `#a9`, `a_a_9`, names, a text."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return _form(value) if len(value) <= _LONG_TEXT else "text"
    return type(value).__name__


@lru_cache(maxsize=16384)  # of values up to 60 characters: a few megabytes at most
def _form(text: str) -> str:
    if text.count(" ") >= 4:
        return "text" if text.isascii() else "foreign text"
    plain = _LETTERS.sub("a", text)
    if not text.isascii():
        plain = _FOREIGN.sub("L", plain)
    plain = _NAMES.sub("a+", _DIGITS.sub("9", plain))
    return plain[:24]


def _kind(text: str) -> str:
    if len(text) <= _LONGEST_ERROR and _ERROR.match(text):
        return "error"
    first, last = text.lstrip()[:1], text.rstrip()[-1:]
    if first in ("{", "["):
        if last != ("}" if first == "{" else "]"):
            return "mixed"
        return "json" if first == "{" else "json list"
    return {"": "empty", "<": "markup"}.get(first, "text")


def _words(text: str) -> frozenset[int]:
    lower = text.lower()
    if not lower.isascii() and _WORDLESS.search(lower):
        # One character can recur; the runs of two tell more than single ones do.
        found = [pair for run in _WORD.findall(lower) for pair in _pairs(run)]
        return frozenset([_word_hash(word) for word in found])
    return frozenset([_word_hash(word) for word in _WORD.findall(lower) if len(word) > 1])


def _pairs(run: str) -> list[str]:
    if not _WORDLESS.search(run) or len(run) < 2:
        return [run]
    return [run[at : at + 2] for at in range(len(run) - 1)]


@lru_cache(maxsize=32768)  # of words: a few megabytes at most
def _word_hash(word: str) -> int:
    return _hash(f"word\0{word}")


def _hash(text: str) -> int:
    return xxhash.xxh3_64_intdigest(text.encode("utf-8", "surrogatepass"))
