"""Ids of calls, made to fit an upstream's rule and turned back again.

OpenAI's chat refuses ids of more than 40 characters, its responses of more than 64; Anthropic wants
letters, digits, `_` and `-`; Mistral nine letters and digits. An id that fits is left as it is.
"""

import hashlib
import re
from typing import NamedTuple

_ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


class IdRule(NamedTuple):
    """`fits` matches ids that are taken; those made are `prefix` and `drawn` letters and digits."""

    fits: re.Pattern[str]
    prefix: str
    drawn: int


CHAT_IDS = IdRule(re.compile(r"[\x20-\x7e]{1,40}"), "call_", 24)
RESPONSES_IDS = IdRule(re.compile(r"[\x20-\x7e]{1,64}"), "call_", 24)
MESSAGES_IDS = IdRule(re.compile(r"[A-Za-z0-9_-]{1,128}"), "toolu_", 24)
GEMINI_IDS = IdRule(re.compile(r"[\x20-\x7e]{1,128}"), "call_", 24)
MISTRAL_IDS = IdRule(re.compile(r"[A-Za-z0-9]{9}"), "", 9)


class IdMap:
    """One exchange's ids. The same id always becomes the same, in every exchange; two never become
    one."""

    def __init__(self, rule: IdRule) -> None:
        self._rule = rule
        self._out: dict[str, str] = {}
        self._back: dict[str, str] = {}

    def out(self, identity: str) -> str:
        """The id as the upstream takes it."""
        known = self._out.get(identity)
        if known is not None:
            return known
        fits = self._rule.fits.fullmatch(identity) is not None
        made = identity if fits else self._made(identity, 0)
        attempt = 0
        while self._back.get(made, identity) != identity:
            attempt += 1
            made = self._made(identity, attempt)
        self._out[identity] = made
        self._back[made] = identity
        return made

    def back(self, identity: str) -> str:
        """The id as the client knows it."""
        return self._back.get(identity, identity)

    def _made(self, identity: str, attempt: int) -> str:
        text = f"{attempt} {identity}".encode("utf-8", "surrogatepass")
        number = int.from_bytes(hashlib.blake2b(text, digest_size=24).digest(), "big")
        letters: list[str] = []
        for _ in range(self._rule.drawn):
            number, place = divmod(number, len(_ALPHABET))
            letters.append(_ALPHABET[place])
        return self._rule.prefix + "".join(letters)


def made_id(place: str, name: str, arguments: str) -> str:
    """An id for a call that came without one: the same for the same call in the same place. It fits
    every rule but Mistral's."""
    text = f"{place}\0{name}\0{arguments}".encode("utf-8", "surrogatepass")
    return "call_" + hashlib.blake2b(text, digest_size=12).hexdigest()
