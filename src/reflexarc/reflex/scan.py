"""What can be read in a file: every text of an artifact, and every run of printable bytes.

For proving that something is not there: what was purged, what is personal, what is a secret. Works
on any file; of an artifact everything is unpacked first.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec

from reflexarc.reflex.artifact import MAGIC, unpack
from reflexarc.reflex.sensitive import sensitive
from reflexarc.steps.errors import InputError

_RUN = re.compile(rb"[\x20-\x7e\x80-\xff]{6,}")
_HASHES = re.compile(r"header\.(?:learned_tasks|identity\.(?:schemas|prompt)\b|familiarity\b).*")
_SHAPES = re.compile(r"(?:usr|ast|tx):")
_SHORTEST = 2


class Finding(msgspec.Struct, frozen=True):
    """Something that should not be in a file: in which, where, of what kind (`value` where it was
    asked for), and how it begins."""

    file: str
    where: str
    kind: str
    begins: str


def texts_of(path: str | Path) -> Iterator[tuple[str, str]]:
    """(where, text) of everything readable: of an artifact each key and string of its header and
    the names of its arrays; of any other file its runs of printable bytes, six or more. Raises
    InputError where the file cannot be read, ArtifactError where an artifact is not sound."""
    data = _read(path)
    if data.startswith(MAGIC):
        header, arrays = unpack(data)
        yield from _texts(header, "header")
        for name in arrays:
            yield "arrays", name
    else:
        for match in _RUN.finditer(data):
            yield f"byte {match.start()}", match.group().decode("utf-8", "replace")


def scan_values(path: str | Path, values: Sequence[str]) -> list[Finding]:
    """Where any of these values stands in a file: in its bytes, or in what an artifact holds once
    unpacked; in upper or lower case, as it is or escaped as JSON does. Values of two characters
    or more; InputError on shorter ones."""
    short = [value for value in values if len(value.strip()) < _SHORTEST]
    if short:
        raise InputError(f"{short[0]!r} is too short to look for: give two characters or more")
    data = _read(path)
    parts: list[tuple[str, bytes]] = [("bytes", data)]
    if data.startswith(MAGIC):
        header, arrays = unpack(data)
        parts.append(("header", json.dumps(header, ensure_ascii=False).encode("utf-8", "replace")))
        parts += [(f"arrays.{name}", array.tobytes()) for name, array in arrays.items()]
    return [
        Finding(str(path), where, "value", _begins(value))
        for where, part in parts
        for value, form in _found(part, values)
        if form
    ]


def scan_patterns(path: str | Path) -> list[Finding]:
    """Every text of a file that looks personal or secret."""
    return [
        Finding(str(path), where, kind, _begins(text))
        for where, text in texts_of(path)
        if not _HASHES.fullmatch(where) and not _SHAPES.match(text)
        if (kind := sensitive(text)) is not None
    ]


def _read(path: str | Path) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error


def _texts(value: Any, where: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, part in cast("dict[str, Any]", value).items():
            yield where, key
            yield from _texts(part, f"{where}.{key}")
    elif isinstance(value, list):
        for at, part in enumerate(cast("list[Any]", value)):
            yield from _texts(part, f"{where}[{at}]")
    elif isinstance(value, str):
        yield where, value
    elif isinstance(value, int | float) and where.endswith(".value"):
        yield where, str(value)


def _found(part: bytes, values: Iterable[str]) -> Iterator[tuple[str, str]]:
    lower = part.decode("utf-8", "replace").lower()
    for value in values:
        forms = {value.lower(), json.dumps(value)[1:-1].lower()}
        forms.add(json.dumps(value, ensure_ascii=False)[1:-1].lower())
        form = next((form for form in sorted(forms) if form in lower), None)
        if form is not None:
            yield value, form


def _begins(text: str) -> str:
    """Enough to recognise it, not to tell it."""
    return text[: min(4, max(1, len(text) // 3))] + "..."
