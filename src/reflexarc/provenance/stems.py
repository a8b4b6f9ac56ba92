"""Stems of words: so that "deleted", "delete" and `deleteItem` are one word. English endings only;
words of another language keep theirs, and still equal themselves."""

import re
from functools import lru_cache
from itertools import islice

_LONGEST = 40
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+|[^\W\d_A-Za-z]+")
_ENDINGS = (
    "ations", "ation", "ments", "ment", "ings", "ing", "ions", "ion", "ers", "ies", "ied",
    "er", "ed", "es", "ly", "s", "e", "y",
)  # fmt: skip
_LEAST_STEM = 3
_READ_AT_ONCE = 8_000
_COMMON = frozenset(
    word
    for line in (
        "the of to and in is for that it on be with as at by this an or from are can you my your",
        "me we our us so if then please could would will need want just also do not no have has",
        "had was were been there their they them its which what when where who how any all some",
        "like let make sure i'm i've id get set use using used new one these those than more about",
        "into out up it's don't here should may must while after before once next",
    )
    for word in line.split()
)
"""Words of sentences that say nothing of a tool. Kept where they are all a name has."""


@lru_cache(maxsize=16384)  # of short words: a few megabytes at most
def stem(word: str) -> str:
    """A lower-case word without its ending, at least three letters of it."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _LEAST_STEM:
            short = word[: -len(ending)]
            if len(short) > _LEAST_STEM and short[-1] == short[-2]:
                short = short[:-1]  # planned, plotting
            return short
    return word


def stems(text: str, limit: int) -> list[str]:
    """The stems of the first `limit` words of a text, in order; camelCase and snake_case are split,
    words of sentences left out."""
    if len(text) <= _READ_AT_ONCE:  # at once is faster, but reads beyond the limit
        words = _WORD.findall(text)[:limit]
    else:
        words = [match.group() for match in islice(_WORD.finditer(text), limit)]
    return [found for word in words if len(word) <= _LONGEST and (found := _telling(word))]


@lru_cache(maxsize=16384)  # of short words: a few megabytes at most
def _telling(word: str) -> str:
    """The stem of a word as it was written; nothing of one that says nothing."""
    lower = word.lower()
    return stem(lower) if len(lower) > 1 and lower not in _COMMON else ""


def is_common(word: str) -> bool:
    """Whether a word is one of those of sentences that say nothing of a tool."""
    return word.lower() in _COMMON


def name_stems(name: str) -> list[str]:
    """The stems of the parts of a name, all of them."""
    return [stem(m.group().lower()) for m in _WORD.finditer(name[:200])]
