"""The normalised form of a system prompt: what stays when its numbers and names change."""

import re
from collections.abc import Iterable
from functools import lru_cache

import xxhash

_VARIABLE = re.compile(
    r"(?<![\w.+-])[\w.+-]++@[\w-]+\.[\w.]+"  # e-mail addresses
    r"|\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b"  # UUIDs
    r"|\b\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}(?:T(?=\d))?"  # dates
    r"|\b\d{1,2}:\d{2}(?::\d{2})?(?:\.\d+)?Z?\b"  # times of day
    r"|\d{5,}"  # ids
)
_MAY_VARY = re.compile(r"[\d@]")
_KEPT_CHARS = 50_000


def prompt_lines(role: str, text: str) -> tuple[str, ...]:
    """The normalised lines of a system message, hashed, its role first: dates, times, ids of five
    digits or more, e-mail addresses and UUIDs set aside, white space folded. Other numbers stay:
    "at most 5 orders" is not "at most 0 orders"."""
    return _read_often(role, text) if len(text) <= _KEPT_CHARS else _read(role, text)


def _read(role: str, text: str) -> tuple[str, ...]:
    lines = [role]
    for line in text.splitlines():
        # Nothing of `_VARIABLE` goes over the end of a line, or is found in one without these.
        plain = _VARIABLE.sub("0", line) if _MAY_VARY.search(line) or line.count("-") > 3 else line
        lines.append(" ".join(plain.split()))
    return tuple(
        xxhash.xxh3_64_hexdigest(line.encode("utf-8", "surrogatepass")) for line in lines if line
    )


_read_often = lru_cache(maxsize=32)(_read)  # of what every conversation begins with


def lines_hash(lines: Iterable[str]) -> str:
    """One hash of a whole prompt, from the hashes of its lines."""
    return xxhash.xxh3_64_hexdigest("".join(lines).encode())
