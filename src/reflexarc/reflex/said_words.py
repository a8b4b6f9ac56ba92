"""Which words of a short text a message says: stems, worked out once for each text."""

from functools import lru_cache

from reflexarc.provenance.stems import name_stems, stems

LONGEST = 60
"""Characters of a text that has words of its own; what is longer is taken for prose."""
_MAX_WORDS = 240
_MAX_CHARS = 4_000


def said_words(message: str) -> frozenset[str]:
    """The stems of a message's last 4,000 characters."""
    return _said_words(message[-_MAX_CHARS:])


@lru_cache(maxsize=256)  # of newest messages: at most a megabyte
def _said_words(text: str) -> frozenset[str]:
    return frozenset(stems(text, _MAX_WORDS))


def own_words(text: str) -> frozenset[str]:
    """The stems of a short text; none of a long one."""
    return _words_of(text) if len(text) <= LONGEST else frozenset()


@lru_cache(maxsize=8192)  # of short texts: a few megabytes at most
def _words_of(text: str) -> frozenset[str]:
    return frozenset(stems(text, LONGEST)) or frozenset(
        word for word in name_stems(text) if len(word) > 1
    )
