"""What vLLM tells of the blocks in its prefix cache (`--kv-events-config`): read from its bytes,
and what that says of prompts read there. Pure.

A batch is msgpack, `[ts, events, data_parallel_rank]` (docs.vllm.ai, vllm.config.kv_events and its
example subscriber). An event is a list that begins with its name, or in later versions a map whose
`type` is it; fields that were added since are passed over.
"""

from collections import OrderedDict
from typing import Any, cast

import msgspec

from reflexarc.steps.errors import MalformedError

MAX_BATCH_BYTES = 16 * 1024 * 1024
MAX_BLOCKS = 1_000_000
"""Blocks of one server of which it is known when they were stored; past so many the oldest are
forgotten."""
_GPU = frozenset({None, "GPU"})
_SEQUENCE_BYTES = 8

BlockHash = int | bytes | str


class Stored(msgspec.Struct, frozen=True):
    """Blocks of `block_tokens` tokens each are held from now on. `medium`: where, None for GPU."""

    blocks: tuple[BlockHash, ...]
    block_tokens: int
    medium: str | None = None


class Removed(msgspec.Struct, frozen=True):
    """Blocks are held no more."""

    blocks: tuple[BlockHash, ...]
    medium: str | None = None


class Cleared(msgspec.Struct, frozen=True):
    """Nothing is held any more."""

    medium: str | None = None


Event = Stored | Removed | Cleared


class Batch(msgspec.Struct, frozen=True):
    """`ts` is the server's clock; `unknown` counts events of other kinds."""

    ts: float
    events: tuple[Event, ...]
    unknown: int = 0


# Places in an event that is a list, after its name.
_PLACES: dict[str, dict[str, int]] = {
    "BlockStored": {"block_hashes": 1, "block_size": 4, "medium": 6},
    "BlockRemoved": {"block_hashes": 1, "medium": 2},
    "AllBlocksCleared": {"medium": 1},
}


def read_batch(data: bytes) -> Batch:
    """Raises `MalformedError` for what is no batch of events."""
    if len(data) > MAX_BATCH_BYTES:
        raise MalformedError(f"a batch of events is over the limit of {MAX_BATCH_BYTES} bytes")
    try:
        value: Any = msgspec.msgpack.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise MalformedError(f"a batch of events is not msgpack: {error}") from error
    if isinstance(value, dict):
        fields = cast("dict[Any, Any]", value)
        ts, told = fields.get("ts"), fields.get("events")
    elif isinstance(value, list) and len(items := cast("list[Any]", value)) >= 2:
        ts, told = items[:2]
    else:
        ts = told = None
    if isinstance(ts, bool) or not isinstance(ts, int | float) or not isinstance(told, list):
        raise MalformedError("a batch of events is no [ts, events, ...]")
    found = [_event(one) for one in cast("list[Any]", told)]
    events = tuple(one for one in found if one is not None)
    return Batch(float(ts), events, len(found) - len(events))


def sequence_of(frame: bytes) -> int | None:
    """The number of a message, of which its second frame tells: 8 bytes, the highest first."""
    return int.from_bytes(frame, "big") if len(frame) == _SEQUENCE_BYTES else None


class Blocks:
    """When the blocks that one server holds were stored. What it evicts is what was longest unused:
    so nothing is held that was last read before an evicted block was stored."""

    def __init__(self, max_blocks: int = MAX_BLOCKS) -> None:
        self._max_blocks = max_blocks
        self._stored_s: OrderedDict[BlockHash, float] = OrderedDict()

    def __len__(self) -> int:
        return len(self._stored_s)

    def take(self, batch: Batch, now_s: float) -> float | None:
        """The time before which whatever was read last is not held any more; None where nothing
        says so. `now_s` and this: the caller's clock."""
        gone_s: float | None = None
        for event in batch.events:
            if event.medium not in _GPU:
                continue
            if isinstance(event, Cleared):
                self._stored_s.clear()
                gone_s = now_s
            elif isinstance(event, Stored):
                for block in event.blocks:
                    self._stored_s.pop(block, None)
                    self._stored_s[block] = now_s
            else:
                found = [self._stored_s.pop(one, None) for one in event.blocks]
                times = [one for one in (gone_s, *found) if one is not None]
                gone_s = max(times, default=None)
        while len(self._stored_s) > self._max_blocks:
            self._stored_s.popitem(last=False)
        return gone_s


def _event(value: Any) -> Event | None:
    """None for an event of another kind, or that has not what one of its kind must have."""
    if isinstance(value, list):
        items = cast("list[Any]", value)
        name = items[0] if items else None
        places = _PLACES.get(name) if isinstance(name, str) else None
        fields = {k: items[at] for k, at in (places or {}).items() if at < len(items)}
    elif isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        name = fields.get("type")
    else:
        return None
    medium = fields.get("medium")
    if medium is not None and not isinstance(medium, str):
        return None
    if name == "AllBlocksCleared":
        return Cleared(medium)
    blocks = _blocks(fields.get("block_hashes"))
    if blocks is None:
        return None
    if name == "BlockRemoved":
        return Removed(blocks, medium)
    size = fields.get("block_size")
    if name == "BlockStored" and isinstance(size, int) and not isinstance(size, bool) and size > 0:
        return Stored(blocks, size, medium)
    return None


def _blocks(value: Any) -> tuple[BlockHash, ...] | None:
    if not isinstance(value, list):
        return None
    blocks = tuple(cast("list[Any]", value))
    plain = all(isinstance(one, int | bytes | str) for one in blocks)
    return blocks if plain else None
