"""The normalised form of a system prompt: what stays when its numbers and names change."""

import re
from collections.abc import Iterable

import xxhash

_VARIABLE = re.compile(
    r"[\w.+-]+@[\w-]+\.[\w.]+|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|\d+"
)
_SPACE = re.compile(r"\s+")


def prompt_lines(text: str) -> tuple[str, ...]:
    """The normalised lines of a system prompt, hashed: numbers, e-mail addresses and UUIDs set
    aside, white space folded."""
    lines = (_SPACE.sub(" ", _VARIABLE.sub("0", line)).strip() for line in text.splitlines())
    return tuple(
        xxhash.xxh3_64_hexdigest(line.encode("utf-8", "surrogatepass")) for line in lines if line
    )


def lines_hash(lines: Iterable[str]) -> str:
    """One hash of a whole prompt, from the hashes of its lines."""
    return xxhash.xxh3_64_hexdigest("".join(lines).encode())
