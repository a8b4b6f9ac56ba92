"""The beginnings that prompts share: how long they are, and which earlier prompt has the longest.

Texts are compared by the byte, `Blocks` by their ids. Marks for caches say nothing to a model and
must be out of the pieces before (`reuse.settled`); settings are no part of a length.
"""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np
import xxhash
from numpy.typing import NDArray

from reflexarc.steps.prompt import Blocks, Piece, Prompt

Keys = NDArray[np.uint64]
"""A number for each block of a prompt, which tells all of the prompt up to its end."""

TEXT_BLOCK_BYTES = 1024
FIRST_BLOCK_BYTES = 256
"""Blocks of a piece of text: a short one first, for short pieces differ early."""
MAX_BLOCKS = 1_500_000
"""So many beginnings are known at a time, about 200 MB; those used longest ago are forgotten."""
_MAX_TEXTS = 50_000
_WALKS = 16
"""So many conversations that take turns are each gone on with, not walked from their beginning."""
_STEP = np.uint64(0x9E3779B97F4A7C15)
_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


class Match(msgspec.Struct, frozen=True):
    """The earlier prompt, by its number, that a prompt shares the longest beginning with; the
    latest of several. `length` in bytes or tokens, as `length_of`. `whole`: that beginning is all
    of some earlier prompt, so this one goes on from it."""

    number: int
    length: int
    whole: bool


def length_of(prompt: Prompt | Blocks) -> int:
    """Bytes of a text, tokens of blocks."""
    if isinstance(prompt, Blocks):
        return len(prompt.ids) * prompt.block_tokens
    return prompt.size_bytes


def comparable(one: Prompt | Blocks, other: Prompt | Blocks) -> bool:
    """Whether equal ids, or equal bytes, would mean equal tokens."""
    return _space(one) == _space(other)


def shared(before: Prompt | Blocks, after: Prompt | Blocks) -> int:
    """How much both begin with, as `length_of` counts; 0 for what cannot be compared."""
    if isinstance(before, Blocks) or isinstance(after, Blocks):
        if not isinstance(before, Blocks) or not isinstance(after, Blocks):
            return 0
        if not comparable(before, after):
            return 0
        return _same(_ids(before), _ids(after)) * after.block_tokens
    if before.pieces == after.pieces[: len(before.pieces)]:  # quick where pieces are one object
        return length_of(before)
    length = 0
    for was, now in zip(_read(before), _read(after), strict=False):
        if was is now or was.raw == now.raw:
            length += len(now.raw)
            continue
        return length + _same_bytes(was.raw, now.raw)
    return length


def same_end(before: Prompt, after: Prompt) -> int:
    """Bytes that both end with, behind what they begin with: of prompts that are one text each, in
    which nothing else tells what was sent once more; else 0."""
    one, other = _read(before), _read(after)
    if len(one) != 1 or len(other) != 1 or not (one[0].plain and other[0].plain):
        return 0
    begins = _same_bytes(one[0].raw, other[0].raw)
    return _same_bytes(one[0].raw[begins:][::-1], other[0].raw[begins:][::-1])


class _Walk(msgspec.Struct, frozen=True):
    """What was worked out of a text: the key of each of its blocks, and where each ends."""

    pieces: tuple[Piece, ...]
    keys: Keys
    ends: NDArray[np.int64]


_NO_WALK = _Walk((), np.empty(0, np.uint64), np.empty(0, np.int64))


class Beginnings:
    """All beginnings of the prompts that were added, each with the latest prompt that has it.

    Memory grows with what is new in prompts, not with their length, up to a limit. Not quadratic:
    a prompt costs one look at each of its blocks.
    """

    def __init__(self, max_blocks: int = MAX_BLOCKS) -> None:
        self._max_blocks = max_blocks
        self._latest: dict[int, int] = {}
        self._ends: set[int] = set()
        self._texts: dict[tuple[int, bytes], Keys] = {}
        self._walks: list[_Walk] = []
        self._prompts: list[Prompt | Blocks] = []
        self._spaces: dict[tuple[Any, ...], int] = {}

    def keys(self, prompt: Prompt | Blocks) -> Keys:
        """To be handed to the other methods, so that they are worked out once."""
        if isinstance(prompt, Blocks):
            return _of_ids(_ids(prompt), _seed(prompt))
        return self._walked(prompt).keys

    def lengths(self, prompt: Prompt | Blocks) -> NDArray[np.int64]:
        """The length, as `length_of`, up to the end of each block that `keys` numbers."""
        if isinstance(prompt, Blocks):
            return np.arange(1, len(prompt.ids) + 1, dtype=np.int64) * prompt.block_tokens
        return self._walked(prompt).ends

    def _walked(self, prompt: Prompt) -> _Walk:
        """Goes on from the last text that this one begins with: of a conversation, the turn
        before."""
        pieces = prompt.pieces
        if not pieces:
            return _NO_WALK
        begun = next((walk for walk in self._walks if _begins_with(pieces, walk.pieces)), _NO_WALK)
        if begun is not _NO_WALK and len(begun.pieces) == len(pieces):
            return begun
        seed = int(begun.keys[-1]) if len(begun.keys) else _seed(prompt)
        start = int(begun.ends[-1]) if len(begun.ends) else 0
        keys, ends = [begun.keys], [begun.ends]
        for piece in pieces[len(begun.pieces) :]:
            if piece.kind == "settings" or not piece.raw:
                continue
            made = self._texts.get((seed, piece.raw))
            if made is None:
                if len(self._texts) >= _MAX_TEXTS:
                    self._texts.clear()
                made = self._texts[seed, piece.raw] = _of_bytes(piece.raw, seed)
            keys.append(made)
            ends.append(np.array(_ends_in(len(piece.raw)), np.int64) + start)
            seed = int(made[-1])
            start += len(piece.raw)
        walk = _Walk(pieces, np.concatenate(keys), np.concatenate(ends))
        kept = [one for one in self._walks if one is not begun]
        self._walks = [walk, *kept[: _WALKS - 1]]
        return walk

    def any_like(self, prompt: Prompt | Blocks) -> int | None:
        """The latest prompt that this one could share something with."""
        return self._spaces.get(_space(prompt))

    def match(self, prompt: Prompt | Blocks, keys: Keys) -> Match | None:
        """None where nothing is shared, not one byte or block."""
        blocks = self._held(keys, lambda _: True)
        number = self._latest[int(keys[blocks - 1])] if blocks else self.any_like(prompt)
        if number is None:
            return None
        length = shared(self._prompts[number], prompt)
        whole = bool(blocks) and int(keys[blocks - 1]) in self._ends
        whole = whole or length == length_of(self._prompts[number])
        return Match(number, length, whole) if length else None

    def ends_with(self, keys: Keys) -> bool:
        """Whether a prompt of exactly these blocks was added."""
        return bool(len(keys)) and int(keys[-1]) in self._ends

    def alive(self, keys: Keys, times: Sequence[float], since: float) -> int:
        """How many first blocks are the beginning of a prompt with a time of `since` or later."""
        return self._held(keys, lambda number: times[number] >= since)

    def add(self, prompt: Prompt | Blocks, keys: Keys) -> int:
        """Its number: 0 for the first, and so on."""
        number = len(self._prompts)
        self._prompts.append(prompt)
        self._latest.update(zip(keys.tolist(), itertools.repeat(number)))
        if len(keys):
            self._ends.add(int(keys[-1]))
        self._spaces[_space(prompt)] = number
        if len(self._latest) > self._max_blocks:
            self._forget()
        return number

    def _forget(self) -> None:
        """The half used longest ago. Whoever has a beginning has every shorter one, and had it last
        as late: none is left without those before it."""
        numbers = np.fromiter(self._latest.values(), np.int64, len(self._latest))
        since = int(np.median(numbers))
        self._latest = {key: number for key, number in self._latest.items() if number > since}
        self._ends.intersection_update(self._latest)

    def _held(self, keys: Keys, fits: Callable[[int], bool]) -> int:
        """By halving: whoever has a beginning has every shorter one, and had it last as late."""
        low, high = 0, len(keys)
        while low < high:
            middle = (low + high + 1) // 2
            number = self._latest.get(int(keys[middle - 1]))
            if number is not None and fits(number):
                low = middle
            else:
                high = middle - 1
        return low


def _begins_with(pieces: tuple[Piece, ...], others: tuple[Piece, ...]) -> bool:
    """Quick where pieces are one object; where they are not, the last of `others` mostly tells."""
    size = len(others)
    return size <= len(pieces) and others[-1] == pieces[size - 1] and others == pieces[:size]


def _seed(prompt: Prompt | Blocks) -> int:
    return xxhash.xxh3_64_intdigest(repr(_space(prompt)).encode())


def _read(prompt: Prompt) -> list[Piece]:
    return [piece for piece in prompt.pieces if piece.kind != "settings" and piece.raw]


def _space(prompt: Prompt | Blocks) -> tuple[Any, ...]:
    return (prompt.block_tokens, prompt.scope) if isinstance(prompt, Blocks) else ()


def _ids(prompt: Blocks) -> NDArray[np.int64]:
    return np.asarray(prompt.ids, dtype=np.int64)


def _of_ids(ids: NDArray[np.int64], seed: int) -> Keys:
    """Sums of one mixed number for each place: equal sums mean equal beginnings, but for an
    accident of one in 2**64."""
    mixed = ids.astype(np.uint64) + np.arange(1, len(ids) + 1, dtype=np.uint64) * _STEP
    mixed ^= np.uint64(seed)
    for by, shift in zip(_MIX, (30, 27), strict=True):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * by
    mixed ^= mixed >> np.uint64(31)
    return np.cumsum(mixed, dtype=np.uint64)


def _of_bytes(raw: bytes, seed: int) -> Keys:
    keys: list[int] = []
    view = memoryview(raw)
    start = 0
    for end in _ends_in(len(raw)):
        seed = xxhash.xxh3_64_intdigest(view[start:end], seed)
        keys.append(seed)
        start = end
    return np.array(keys, np.uint64)


def _ends_in(size: int) -> list[int]:
    """Where the blocks of a piece of so many bytes end."""
    if size <= FIRST_BLOCK_BYTES:
        return [size]
    return [FIRST_BLOCK_BYTES, *range(TEXT_BLOCK_BYTES, size, TEXT_BLOCK_BYTES), size]


def _same(one: NDArray[Any], other: NDArray[Any]) -> int:
    size = min(len(one), len(other))
    differs = one[:size] != other[:size]
    first = int(differs.argmax()) if size else 0
    return first if size and differs[first] else size


def _same_bytes(one: bytes, other: bytes) -> int:
    return _same(np.frombuffer(one, np.uint8), np.frombuffer(other, np.uint8))
