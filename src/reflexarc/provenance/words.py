"""Tokens, word sets and shapes of text: the plain lexical ground everything else stands on."""

import re
from functools import lru_cache
from itertools import islice
from typing import Any, cast

from reflexarc.steps import canonical_json

_WORD = re.compile(r"[a-z0-9]{2,}")
# Punctuation within a token comes in short runs, so that a line of dashes costs no more than it is
# long: with a star in place of {0,8} the search would be quadratic.
_TOKEN = re.compile(r"[#/\w](?:[@.\-'/:#+]{0,8}\w)+|\w")
_UPPER = re.compile(r"[A-Z]+")
_LOWER = re.compile(r"[a-z]+")
_DIGITS = re.compile(r"\d+")
_DRAWN = re.compile(
    r"(?<![A-Za-z0-9])(?!\d+T\d+)(?:[A-Za-z]+\d+[A-Za-z]|\d+[A-Za-z]+\d)[A-Za-z0-9]*"
)
_SHORTEST_DRAWN = 5
_SHORTEST_PLURAL = 4
_LONG_PLURALS = ("ches", "shes", "xes", "sses")
_LONGEST_SHAPED = 40
_READ_AT_ONCE = 8_000


def word_set(text: str) -> frozenset[str]:
    """The distinct lower-case words (two characters or more) of a text."""
    return frozenset(_WORD.findall(text.lower()))


def said_words(text: str) -> frozenset[str]:
    """The words of a text, and of those that look like plurals of English the singulars too: who
    says "two lamps" means things called "lamp"."""
    words = word_set(text)
    return words.union([_singular(word) for word in words if word[-1] == "s"])


def _singular(word: str) -> str:
    if len(word) < _SHORTEST_PLURAL or word[-2] in "su":
        return word  # glass, bus
    if word.endswith("ies"):
        return f"{word[:-3]}y"
    return word[:-2] if word.endswith(_LONG_PLURALS) else word[:-1]


def tokens(text: str, limit: int) -> list[str]:
    """The first `limit` tokens of a text; ids, e-mail addresses, paths and dates stay whole."""
    if len(text) <= _READ_AT_ONCE:  # at once is twice as fast, but reads beyond the limit
        return [token.strip(".,'\"") for token in _TOKEN.findall(text)[:limit]]
    found = islice(_TOKEN.finditer(text), limit)
    return [match.group().strip(".,'\"") for match in found]


def shape(token: str) -> str:
    """The kind of a token: runs of capitals become A, of small letters a, digits 9s (six at most);
    what goes from letters to digits and back, as ids that are drawn do, becomes X or x. Letters of
    every script are letters.

    >>> shape("#W2378156"), shape("2024-05-16"), shape("yusuf_rossi_9620"), shape("rq-57f8b495")
    ('#A999999', '9999-99-99', 'a_a_9999', 'a-x')
    """
    return "long" if len(token) > _LONGEST_SHAPED else _shape(token)


@lru_cache(maxsize=16384)  # of short tokens: a few megabytes at most
def _shape(token: str) -> str:
    parts: list[str] = []
    at = 0
    for match in _DRAWN.finditer(token):
        run = match.group()
        if len(run) >= _SHORTEST_DRAWN:
            parts += [_runs(token[at : match.start()]), "X" if run.isupper() else "x"]
            at = match.end()
    return "".join([*parts, _runs(token[at:])])


def _runs(token: str) -> str:
    if not token.isascii():
        # Letters of every script stand for any: a shape names a slot, and must not hold a name.
        token = "".join(
            [
                sign if sign.isdecimal() or not sign.isalnum() else "A" if sign.isupper() else "a"
                for sign in token
            ]
        )
    token = _LOWER.sub("a", _UPPER.sub("A", token))
    return _DIGITS.sub(lambda run: "9" * min(len(run.group()), 6), token)


def plain_text(value: Any) -> str:
    """A JSON value as the text a message would show: `5`, `5.0` and `"5"` are all `5`."""
    if type(value) is str:
        return value
    if type(value) is list:
        parts = cast("list[Any]", value)
        # Lists of ids are compared by the hundred: joining is ten times faster than JSON.
        return "[" + "\x1f".join([plain_text(part) for part in parts])
    if type(value) is int:
        return str(value)
    return canonical_json(value)
