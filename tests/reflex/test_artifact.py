"""An artifact gives back what was put in, or a clear error, and never executes anything."""

import hashlib
import json
import math
import os
import pickle
import stat
import tracemalloc
import zlib
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from reflexarc.reflex import artifact
from reflexarc.reflex.artifact import pack, read_artifact, unpack, write_atomic
from reflexarc.steps.errors import ArtifactCorruptError, ArtifactError, ArtifactVersionError

DTYPES = ["bool", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8"]
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.text()
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
numeric_arrays = st.sampled_from(DTYPES).flatmap(
    lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0))
)


def example() -> bytes:
    arrays = {"leaf": np.linspace(0, 1, 40, dtype=np.float32), "feature": np.arange(9, dtype="u2")}
    return pack({"tools": ["get_order"], "max_error": 0.05}, arrays)


def built(
    header: Any,
    bodies: list[bytes] | None = None,
    *,
    version: int = artifact.FORMAT_VERSION,
    plain: int | None = None,
    tail: bytes = b"",
) -> bytes:
    """A file with a right digest around whatever a forger writes."""
    head = header if isinstance(header, bytes) else json.dumps(header).encode()
    stored = zlib.compress(head)
    lengths = (version, len(stored), len(head) if plain is None else plain)
    prefix = artifact.MAGIC + b"".join(n.to_bytes(4, "little") for n in lengths)
    data = prefix + stored + b"".join(bodies or []) + tail
    return data + hashlib.sha256(data).digest()


def one_array(body: bytes, **changes: Any) -> bytes:
    stored = zlib.compress(body)
    section = {"name": "a", "dtype": "uint8", "shape": [len(body)], "stored": len(stored)}
    return built({"value": 1, "arrays": [section | changes]}, [stored])


@settings(max_examples=80, deadline=None)
@given(json_values, st.dictionaries(st.text(min_size=1, max_size=50), numeric_arrays, max_size=4))
def test_what_was_packed_comes_back(header: Any, arrays: dict[str, NDArray[Any]]) -> None:
    value, back = unpack(pack(header, arrays))
    assert value == header
    assert list(back) == list(arrays)
    for name, array in arrays.items():
        assert back[name].dtype == array.dtype
        assert back[name].shape == array.shape
        assert back[name].tobytes() == array.tobytes()


def test_the_same_content_gives_the_same_bytes() -> None:
    assert example() == example()


def test_structs_are_stored_as_the_json_they_encode_to() -> None:
    class Card(msgspec.Struct):
        model: str
        errors: int

    value, _ = unpack(pack(Card("gpt-4o", 3), {}))
    assert msgspec.convert(value, Card) == Card("gpt-4o", 3)


def test_arrays_in_another_byte_or_memory_order_come_back_equal() -> None:
    array = np.arange(12, dtype=">f8").reshape(3, 4).T
    _, back = unpack(pack({}, {"a": array}))
    np.testing.assert_array_equal(back["a"], array)


def test_repetitive_models_are_stored_small() -> None:
    assert len(pack({}, {"leaf": np.zeros(1 << 20, np.float32)})) < 10_000


def test_a_file_cut_anywhere_is_corrupt() -> None:
    data = example()
    for length in range(len(data)):
        with pytest.raises(ArtifactCorruptError):
            unpack(data[:length])


def test_a_file_changed_in_any_bit_is_corrupt() -> None:
    data = example()
    for position in range(len(data)):
        for bit in range(8):
            changed = bytearray(data)
            changed[position] ^= 1 << bit
            with pytest.raises(ArtifactCorruptError):
                unpack(bytes(changed))


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_a_file_with_any_stretch_replaced_is_corrupt(data: Any) -> None:
    whole = example()
    start = data.draw(st.integers(0, len(whole)))
    end = data.draw(st.integers(start, len(whole)))
    changed = whole[:start] + data.draw(st.binary(max_size=40)) + whole[end:]
    if changed != whole:
        with pytest.raises(ArtifactCorruptError):
            unpack(changed)


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=300), st.sampled_from([0, 1, 2, 2**32 - 1]))
def test_no_header_however_sealed_causes_anything_but_an_artifact_error(
    head: bytes, version: int
) -> None:
    with pytest.raises(ArtifactError):
        unpack(built(head, version=version))


@pytest.mark.parametrize(
    "data", [b"", b"REFLEX", pickle.dumps({"a": 1}), b"PK\x03\x04" + b"0" * 99]
)
def test_other_files_are_not_taken_for_artifacts(data: bytes) -> None:
    with pytest.raises(ArtifactCorruptError):
        unpack(data)


def test_a_newer_format_says_who_wrote_it_and_what_to_do() -> None:
    why = "written by format 7, this reflexarc reads up to 3: upgrade"
    with pytest.raises(ArtifactVersionError, match=why):
        unpack(built({"value": 1, "arrays": [], "something": "new"}, version=7))


def test_an_artifact_that_does_not_know_what_is_familiar_has_to_be_learned_again() -> None:
    with pytest.raises(ArtifactVersionError, match=r"written by format 1, .*: learn it again"):
        unpack(built({"value": 1, "arrays": []}, version=1))


def test_bytes_after_the_last_array_are_refused() -> None:
    with pytest.raises(ArtifactCorruptError, match="3 bytes follow"):
        unpack(built({"value": 1, "arrays": []}, tail=b"abc"))


def test_bytes_after_the_digest_are_refused() -> None:
    with pytest.raises(ArtifactCorruptError):
        unpack(example() + b"\x00")


def test_a_name_that_occurs_twice_is_refused() -> None:
    stored = zlib.compress(b"1234")
    section = {"name": "a", "dtype": "uint8", "shape": [4], "stored": len(stored)}
    with pytest.raises(ArtifactCorruptError, match="'a' occurs twice"):
        unpack(built({"value": 1, "arrays": [section, section]}, [stored, stored]))


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"dtype": "object"}, "unknown type 'object'"),
        ({"dtype": "|O"}, "unknown type"),
        ({"dtype": "bool"}, "truth value"),
        ({"shape": [5]}, "not of the 5 bytes"),
        ({"shape": [3]}, "not of the 3 bytes"),
        ({"shape": [-4]}, "impossible shape"),
        ({"shape": [1] * 9}, "impossible shape"),
        ({"shape": [2**40, 2**40]}, "claims more than 256 MiB"),
        ({"shape": [2**200]}, "claims more than"),
        ({"shape": [0, 2**60]}, "claims more than"),
        ({"shape": [4.5]}, "does not fit"),
        ({"stored": 4000}, "beyond the end"),
        ({"stored": -1}, "beyond the end"),
        ({"stored": 3}, "bytes"),
        ({"more": 1}, "does not fit"),
    ],
)
def test_a_sealed_file_that_lies_about_an_array_is_refused(changes: Any, why: str) -> None:
    with pytest.raises(ArtifactCorruptError, match=why):
        unpack(one_array(b"\x02\x03\x04\x05", **changes))


def test_the_honest_form_of_that_file_is_read() -> None:
    value, arrays = unpack(one_array(b"\x02\x03\x04\x05"))
    assert (value, arrays["a"].tolist()) == (1, [2, 3, 4, 5])


@pytest.mark.parametrize(
    ("header", "why"),
    [
        (b"[" * 100_000, "does not fit"),
        (b'{"value": ' + b"[" * 100_000 + b"]" * 100_000 + b', "arrays": []}', "does not fit"),
        (b'{"value": 1, "arrays": [], "more": 1}', "does not fit"),
        (b'{"value": 1, "arrays": [', "does not fit"),
        (b'{"value": "\xff", "arrays": []}', "does not fit"),
        ({"arrays": []}, "does not fit"),
        ({"value": 1, "arrays": [0]}, "does not fit"),
    ],
)
def test_a_header_of_another_form_is_refused(header: Any, why: str) -> None:
    with pytest.raises(ArtifactCorruptError, match=why):
        unpack(built(header))


def test_more_arrays_than_the_limit_are_refused() -> None:
    stored = zlib.compress(b"")
    sections = [
        {"name": str(i), "dtype": "uint8", "shape": [0], "stored": len(stored)}
        for i in range(artifact.MAX_ARRAYS + 1)
    ]
    with pytest.raises(ArtifactCorruptError, match="4097 arrays"):
        unpack(built({"value": 1, "arrays": sections}, [stored] * len(sections)))
    with pytest.raises(ArtifactError, match="does not fit an artifact"):
        pack({}, {str(i): np.zeros(0) for i in range(artifact.MAX_ARRAYS + 1)})


def test_a_decompression_bomb_takes_no_more_memory_than_it_claims() -> None:
    bomb = zlib.compress(b"\x00" * (100 << 20), 9)
    section = {"name": "a", "dtype": "uint8", "shape": [1000], "stored": len(bomb)}
    data = built({"value": 1, "arrays": [section]}, [bomb])
    tracemalloc.start()
    try:
        with pytest.raises(ArtifactCorruptError, match="not of the 1000 bytes"):
            unpack(data)
        assert tracemalloc.get_traced_memory()[1] < 5 << 20
    finally:
        tracemalloc.stop()


def test_a_header_that_decompresses_to_more_than_it_claims_is_refused() -> None:
    with pytest.raises(ArtifactCorruptError, match="not of the 10 bytes"):
        unpack(built({"value": "x" * 1000, "arrays": []}, plain=10))


def test_what_is_over_the_size_limit_is_not_packed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(artifact, "MAX_BYTES", 1 << 20)
    with pytest.raises(ArtifactError, match="does not fit an artifact"):
        pack({}, {"a": np.zeros(1 << 18)})
    with pytest.raises(ArtifactError, match="does not fit an artifact"):
        pack("x" * (2 << 20), {})


@pytest.mark.parametrize("array", [np.array([{}]), np.array(["a"]), np.zeros(2, np.complex128)])
def test_objects_text_and_other_types_are_not_packed(array: NDArray[Any]) -> None:
    with pytest.raises(TypeError, match="cannot be stored"):
        pack({}, {"a": array})


@pytest.mark.parametrize("number", [math.inf, -math.inf, math.nan])
def test_numbers_json_cannot_hold_are_refused_not_lost(number: float) -> None:
    with pytest.raises(ValueError, match=r"header\.rows\[1\]\.threshold is"):
        pack({"rows": [{}, {"threshold": number}]}, {})


@pytest.mark.parametrize("name", ["", "x" * 201])
def test_names_that_are_empty_or_too_long_are_not_packed(name: str) -> None:
    with pytest.raises(ValueError, match="name"):
        pack({}, {name: np.zeros(1)})


def test_arrays_read_are_not_writable() -> None:
    _, arrays = unpack(example())
    assert not arrays["leaf"].flags.writeable


def test_reading_a_missing_file_says_which_and_why(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match=r"none\.reflex: cannot be read: No such file"):
        read_artifact(tmp_path / "none.reflex")


def test_reading_a_file_over_the_limit_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(artifact, "MAX_BYTES", 1 << 20)
    (tmp_path / "big").write_bytes(b"\x00" * ((1 << 20) + 1))
    with pytest.raises(ArtifactError, match="larger than 1 MiB"):
        read_artifact(tmp_path / "big")


def test_a_written_file_is_read_back_and_nothing_else_is_left(tmp_path: Path) -> None:
    path = tmp_path / "agent.reflex"
    path.write_bytes(b"old")
    write_atomic(path, example())
    assert read_artifact(path) == example()
    assert [p.name for p in tmp_path.iterdir()] == ["agent.reflex"]


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "agent.reflex"
    path.write_bytes(b"old")

    def no_space(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(OSError, match="No space"):
        write_atomic(path, example())
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["agent.reflex"]


def test_a_written_file_has_the_permissions_the_umask_gives(tmp_path: Path) -> None:
    (tmp_path / "plain").write_bytes(b"")
    write_atomic(tmp_path / "agent.reflex", b"data")
    modes = {stat.S_IMODE(p.stat().st_mode) for p in tmp_path.iterdir()}
    assert len(modes) == 1


def test_writing_to_a_link_writes_what_it_points_to(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write_atomic(tmp_path / "link", b"data")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"data"
