"""The container of a .reflex file: a JSON header and numeric arrays, and nothing that can execute.

    offset 0     8 bytes   magic
    8            4         format version            (unsigned, little-endian, as all numbers here)
    12           4 + 4     header length: as stored (zlib), and plain
    20           ...       header, zlib of JSON: value, arrays [{name, dtype, shape, stored}]
    ...          ...       the arrays in that order: zlib of their bytes, C order
    end - 32     32        SHA-256 of everything before it

Magic, version and digest stand at these places in every format version, past and future. The
digest finds truncation and damage; it proves nothing about who wrote the file (integrity, not
authenticity), so every length is checked against the limits before memory is taken for it.
"""

import contextlib
import hashlib
import math
import os
import secrets
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from reflexarc.steps.errors import ArtifactCorruptError, ArtifactError, ArtifactVersionError

MAGIC = b"REFLEX\r\n"
"""The line end is there to be broken by a transfer in text mode, which is then noticed."""

FORMAT_VERSION = 3
"""3: five members and a memory of situations. In an older artifact one model was fitted again after
all the judging, so its certificates are about others; it has to be learned again."""
MAX_BYTES = 256 << 20
"""Of the file, and of everything in it once decompressed."""

MAX_HEADER_BYTES = 16 << 20
"""Of the header once decompressed: JSON takes far more memory as objects than as text."""

MAX_ARRAYS = 4_096
MAX_DIMENSIONS = 8
MAX_NAME_LENGTH = 200

_DTYPES = {
    name: np.dtype(name).newbyteorder("<")
    for name in (
        *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        *("float32", "float64"),
    )
}
_PREFIX, _DIGEST = 20, 32


class _Section(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    dtype: str
    shape: tuple[int, ...]
    stored: int


class _Header(msgspec.Struct, forbid_unknown_fields=True):
    value: Any
    arrays: list[_Section]


def pack(header: Any, arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """One artifact of a JSON value (or anything msgspec encodes) and named arrays.

    Raises TypeError for a dtype other than bool, (u)int8..64, float32, float64; ValueError for NaN
    or infinity in the header, which JSON cannot hold, and for names that are empty or too long;
    ArtifactError over the limits.
    """
    value = msgspec.to_builtins(header)
    _refuse_non_finite(value, "header")
    sections: list[_Section] = []
    bodies: list[bytes] = []
    plain = 0
    for name, array in arrays.items():
        dtype = array.dtype.name
        if dtype not in _DTYPES:
            raise TypeError(f"array {name!r}: {array.dtype} cannot be stored")
        if not 0 < len(name) <= MAX_NAME_LENGTH or array.ndim > MAX_DIMENSIONS:
            raise ValueError(f"array {name!r}: an empty or long name, or too many dimensions")
        plain += _span(array.shape, array.itemsize)
        _refuse_over_limit(plain, len(sections) + 1)
        body = zlib.compress(array.astype(_DTYPES[dtype], copy=False).tobytes())
        sections.append(_Section(name, dtype, array.shape, len(body)))
        bodies.append(body)
    head = msgspec.json.encode(_Header(value, sections))
    _refuse_over_limit(plain + len(head), len(sections))
    stored_head = zlib.compress(head)
    prefix = MAGIC + b"".join(
        n.to_bytes(4, "little") for n in (FORMAT_VERSION, len(stored_head), len(head))
    )
    data = b"".join((prefix, stored_head, *bodies))
    _refuse_over_limit(len(data) + _DIGEST, len(sections))
    return data + hashlib.sha256(data).digest()


def unpack(data: bytes) -> tuple[Any, dict[str, NDArray[Any]]]:
    """The header's value as plain JSON types, and the arrays, read-only.

    Raises ArtifactCorruptError for anything `pack` did not write, ArtifactVersionError for a sound
    file of a newer format.
    """
    _check_envelope(data)
    body, end = memoryview(data), len(data) - _DIGEST
    stored, plain = (int.from_bytes(data[i : i + 4], "little") for i in (12, 16))
    header = _read_header(body, stored, plain, end)
    at, arrays = _PREFIX + stored, dict[str, NDArray[Any]]()
    for section in header.arrays:
        if section.name in arrays:
            raise _corrupt(f"the array {section.name!r} occurs twice")
        dtype = _DTYPES.get(section.dtype)
        if dtype is None:
            raise _corrupt(f"array {section.name!r} is of the unknown type {section.dtype!r}")
        if len(section.shape) > MAX_DIMENSIONS or any(n < 0 for n in section.shape):
            raise _corrupt(f"array {section.name!r} has the impossible shape {section.shape}")
        plain += _span(section.shape, dtype.itemsize)
        if plain > MAX_BYTES:
            raise _corrupt(f"it claims more than {MAX_BYTES >> 20} MiB")
        if not 0 <= section.stored <= end - at:
            raise _corrupt(f"array {section.name!r} reaches beyond the end of the file")
        size = math.prod(section.shape) * dtype.itemsize
        raw = _decompress(body[at : at + section.stored], size, f"array {section.name!r}")
        at += section.stored
        array = np.frombuffer(raw, dtype)
        if section.dtype == "bool" and bool((array.view(np.uint8) > 1).any()):
            raise _corrupt(f"array {section.name!r} holds a truth value other than 0 or 1")
        arrays[section.name] = array.reshape(section.shape)
    if at != end:
        raise _corrupt(f"{end - at} bytes follow the last array")
    return header.value, arrays


def read_artifact(path: str | os.PathLike[str]) -> bytes:
    """The bytes of a file that may be an artifact; ArtifactError where it cannot be read or is
    over the limit (which is seen before anything is read)."""
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as e:
        raise ArtifactError(f"{os.fspath(path)}: cannot be read: {e.strerror or e}") from e
    if len(data) > MAX_BYTES:
        raise ArtifactError(f"{os.fspath(path)}: larger than {MAX_BYTES >> 20} MiB: not a reflex")
    return data


def write_atomic(path: str | os.PathLike[str], data: bytes) -> None:
    """Writes a file so that a reader, or a crash at any moment, sees the old content or the new.

    A temporary file in the same folder is written, synced and renamed; a link is followed. Raises
    OSError, and then the old file is untouched and no temporary file is left.
    """
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(6)}.tmp")
    try:
        # "x" refuses to follow or overwrite anything already there; the umask applies.
        with open(temporary, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    folder = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _check_envelope(data: bytes) -> None:
    if not data.startswith(MAGIC):
        raise _corrupt("it does not begin like one" if data else "it is empty")
    if len(data) < _PREFIX + _DIGEST:
        raise _corrupt("it is cut off")
    if len(data) > MAX_BYTES:
        raise _corrupt(f"it is larger than {MAX_BYTES >> 20} MiB")
    if hashlib.sha256(memoryview(data)[:-_DIGEST]).digest() != data[-_DIGEST:]:
        raise _corrupt("it is cut off or was changed after it was written (SHA-256 differs)")
    version = int.from_bytes(data[8:12], "little")
    if version > FORMAT_VERSION:
        raise ArtifactVersionError(
            f"written by format {version}, this reflexarc reads up to {FORMAT_VERSION}: upgrade"
        )
    if version == 1:
        raise ArtifactVersionError(
            "written by format 1, which does not say what contexts looked like: learn it again"
        )
    if version != FORMAT_VERSION:
        raise _corrupt(f"it claims format {version}, which never was")


def _read_header(body: memoryview, stored: int, plain: int, end: int) -> _Header:
    if stored > end - _PREFIX:
        raise _corrupt("its header reaches beyond the end of the file")
    if plain > MAX_HEADER_BYTES:
        raise _corrupt(f"its header is larger than {MAX_HEADER_BYTES >> 20} MiB")
    try:
        header = msgspec.json.decode(
            _decompress(body[_PREFIX : _PREFIX + stored], plain, "the header"), type=_Header
        )
    except (msgspec.MsgspecError, ValueError, RecursionError) as e:
        raise _corrupt(f"its header does not fit: {e}") from e
    if len(header.arrays) > MAX_ARRAYS:
        raise _corrupt(f"it claims {len(header.arrays)} arrays, over the limit of {MAX_ARRAYS}")
    return header


def _decompress(stored: memoryview, size: int, what: str) -> bytes:
    """Exactly `size` bytes, or an error; never more memory than that, whatever is stored."""
    stream = zlib.decompressobj()
    try:
        # One byte more than expected lets the stream reach its end mark (0 would mean no limit).
        raw = stream.decompress(stored, size + 1)
    except zlib.error as e:
        raise _corrupt(f"{what} cannot be decompressed: {e}") from e
    if len(raw) != size or not stream.eof or stream.unused_data:
        raise _corrupt(f"{what} is not of the {size} bytes it claims")
    return raw


def _span(shape: tuple[int, ...], itemsize: int) -> int:
    """Bytes of an array, empty axes counted as 1: numpy refuses a huge axis beside an empty one."""
    return math.prod(max(1, n) for n in shape) * itemsize


def _refuse_over_limit(plain: int, arrays: int) -> None:
    if plain > MAX_BYTES or arrays > MAX_ARRAYS:
        raise ArtifactError(
            f"what was learned does not fit an artifact ({MAX_BYTES >> 20} MiB, {MAX_ARRAYS} "
            "arrays): learn from fewer sessions or tools"
        )


def _refuse_non_finite(value: Any, where: str) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{where} is {value}, which JSON cannot hold")
    if isinstance(value, dict):
        for key, part in cast(dict[Any, Any], value).items():
            _refuse_non_finite(part, f"{where}.{key}")
    elif isinstance(value, list | tuple):
        for index, part in enumerate(cast(list[Any], value)):
            _refuse_non_finite(part, f"{where}[{index}]")


def _corrupt(why: str) -> ArtifactCorruptError:
    return ArtifactCorruptError(f"not a sound .reflex file: {why}; get or learn it again")
