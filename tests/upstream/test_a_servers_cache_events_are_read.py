"""Events of vLLM's prefix cache, as its publisher writes them, in every form it has had."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reflexarc.steps.errors import MalformedError
from reflexarc.upstream.kv_events import (
    MAX_BATCH_BYTES,
    Batch,
    Blocks,
    Cleared,
    Removed,
    Stored,
    read_batch,
    sequence_of,
)


class BlockStored(msgspec.Struct, array_like=True, omit_defaults=True, tag=True):
    """As the first versions with events wrote it."""

    block_hashes: list[int]
    parent_block_hash: int | None
    token_ids: list[int]
    block_size: int
    lora_id: int | None


class BlockRemoved(msgspec.Struct, array_like=True, omit_defaults=True, tag=True):
    block_hashes: list[int]


class AllBlocksCleared(msgspec.Struct, array_like=True, omit_defaults=True, tag=True):
    pass


class EventBatch(msgspec.Struct, array_like=True, omit_defaults=True):
    ts: float
    events: list[Any]
    data_parallel_rank: int | None = None


class LaterStored(msgspec.Struct, array_like=True, omit_defaults=True, tag="BlockStored"):
    """With hashes of 32 bytes, a medium, and what was added after it."""

    block_hashes: list[bytes]
    parent_block_hash: bytes | None
    token_ids: list[int]
    block_size: int
    lora_id: int | None
    medium: str | None
    lora_name: str | None
    extra_keys: list[Any] | None = None
    group_idx: int | None = None


class MappedStored(msgspec.Struct, omit_defaults=True, tag="BlockStored"):
    """Later yet: a map."""

    block_hashes: list[bytes]
    parent_block_hash: bytes | None
    token_ids: list[int]
    block_size: int
    lora_id: int | None
    medium: str | None
    lora_name: str | None


class MappedRemoved(msgspec.Struct, omit_defaults=True, tag="BlockRemoved"):
    block_hashes: list[bytes]
    medium: str | None


class Other(msgspec.Struct, array_like=True, tag="BlockTransferred"):
    block_hashes: list[int]


def told(*events: Any, rank: int | None = None) -> bytes:
    return msgspec.msgpack.encode(EventBatch(12.5, list(events), rank))


def test_events_of_the_first_form_are_read() -> None:
    said = told(BlockStored([1, 2**63], None, [5] * 32, 16, None), BlockRemoved([1]))
    assert read_batch(said) == Batch(12.5, (Stored((1, 2**63), 16), Removed((1,))))
    assert read_batch(told(AllBlocksCleared(), rank=3)) == Batch(12.5, (Cleared(),))


def test_events_of_later_forms_are_read() -> None:
    hashes = [b"a" * 32, b"b" * 32]
    stored = LaterStored(hashes, None, [5] * 32, 16, None, "CPU", None, [None, None], 0)
    mapped = MappedStored(hashes, hashes[0], [5] * 32, 16, None, "GPU", "adapter")
    batch = read_batch(told(stored, mapped, MappedRemoved(hashes[:1], "GPU"), rank=0))
    assert batch.events == (
        Stored(tuple(hashes), 16, "CPU"),
        Stored(tuple(hashes), 16, "GPU"),
        Removed((hashes[0],), "GPU"),
    )


def test_a_batch_that_is_a_map_is_read_too() -> None:
    said = msgspec.msgpack.encode(
        {"type": "KVEventBatch", "ts": 1, "events": [{"type": "AllBlocksCleared"}]}
    )
    assert read_batch(said) == Batch(1.0, (Cleared(),))


def test_events_of_other_kinds_are_counted_and_passed_over() -> None:
    batch = read_batch(told(Other([1]), AllBlocksCleared(), ["BlockRemoved"], 7, []))
    assert batch == Batch(12.5, (Cleared(),), unknown=4)


@pytest.mark.parametrize(
    "said",
    [b"", b"\xc1", msgspec.msgpack.encode("x"), msgspec.msgpack.encode([1.0]),
     msgspec.msgpack.encode(["x", []]), msgspec.msgpack.encode([True, []]),
     msgspec.msgpack.encode([1.0, {}]), b"\x91" * 5_000, bytes(MAX_BATCH_BYTES + 1)],
)  # fmt: skip
def test_what_is_no_batch_is_refused(said: bytes) -> None:
    with pytest.raises(MalformedError):
        read_batch(said)


@given(st.binary(max_size=100), st.integers(0, 60), st.integers(0, 60))
def test_no_bytes_break_the_reader(noise: bytes, begin: int, end: int) -> None:
    whole = told(BlockStored([1, 2], None, [5, 6], 1, None), BlockRemoved([1]))
    for said in (noise, whole[:begin] + noise + whole[end:]):
        try:
            Blocks().take(read_batch(said), 1.0)
        except MalformedError:
            continue


def test_a_message_is_numbered_by_its_second_frame() -> None:
    assert sequence_of((258).to_bytes(8, "big")) == 258
    assert sequence_of(b"12") is None


def batch(*events: Any) -> Batch:
    return Batch(0.0, events)


def test_nothing_is_held_that_was_read_before_an_evicted_block_was_stored() -> None:
    blocks = Blocks()
    assert blocks.take(batch(Stored((1, 2), 16)), 10.0) is None
    assert blocks.take(batch(Stored((3,), 16)), 20.0) is None
    assert blocks.take(batch(Removed((2,))), 30.0) == 10.0
    assert blocks.take(batch(Removed((9,))), 31.0) is None  # it was stored before anyone listened
    assert blocks.take(batch(Removed((1, 3))), 32.0) == 20.0
    assert len(blocks) == 0


def test_a_cleared_cache_holds_nothing_from_before() -> None:
    blocks = Blocks()
    blocks.take(batch(Stored((1, 2), 16)), 10.0)
    assert blocks.take(batch(Cleared(), Stored((5,), 16)), 30.0) == 30.0
    assert len(blocks) == 1


def test_what_leaves_another_medium_is_still_in_the_first() -> None:
    blocks = Blocks()
    blocks.take(batch(Stored((1,), 16, "GPU")), 10.0)
    for event in (Removed((1,), "CPU"), Cleared("CPU"), Stored((2,), 16, "CPU")):
        assert blocks.take(batch(event), 20.0) is None
    assert len(blocks) == 1


def test_a_block_that_is_stored_again_counts_from_then() -> None:
    blocks = Blocks()
    blocks.take(batch(Stored((1,), 16)), 10.0)
    blocks.take(batch(Stored((1,), 16)), 40.0)
    assert blocks.take(batch(Removed((1,))), 50.0) == 40.0


def test_no_more_blocks_are_remembered_than_was_agreed() -> None:
    blocks = Blocks(max_blocks=3)
    for at in range(10):
        blocks.take(batch(Stored((at,), 16)), float(at))
    assert len(blocks) == 3
    assert blocks.take(batch(Removed((0,))), 20.0) is None
    assert blocks.take(batch(Removed((9,))), 20.0) == 9.0
