"""What can be set of the embedded engine: slots, context, cache, threads, what is saved."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

KvType = Literal["f16", "q8_0"]

KV_BYTES_PER_TOKEN: dict[KvType, int] = {"f16": 23_040, "q8_0": 12_240}
"""Keys and values of SmolLM2-135M: 30 layers, 3 heads of 64, twice; a block of 32 in q8_0 takes 34
bytes."""

SCORING_TOKENS = 2048
"""Beside the slots' contexts: what choosing a tool reads."""


class EngineOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`slots`: conversations whose cache is held at once; each may fill `context_tokens`, and
    memory for all of that is taken at the start. `kv_type`: how a cache is stored; q8_0 takes half
    the memory and more time. `ngram`: drafts copied from the conversation itself. `threads`: 0 for
    as many as there are cores, less one.

    A slot's state is saved once it was idle for `save_after_s` and holds `save_from_tokens`; at
    most `saved_mib` (2**20 bytes; 0: nothing is saved), for at most `saved_hours` after its last
    use. What is saved can be read back as the conversation it is of."""

    slots: Annotated[int, Meta(ge=1, le=16)] = 2
    context_tokens: Annotated[int, Meta(ge=512, le=8192)] = 8192
    kv_type: KvType = "f16"
    ngram: bool = False
    threads: Annotated[int, Meta(ge=0, le=256)] = 0
    save_after_s: Annotated[float, Meta(ge=0.05, le=86_400)] = 5.0
    save_from_tokens: Annotated[int, Meta(ge=1, le=8192)] = 64
    saved_mib: Annotated[int, Meta(ge=0, le=1_048_576)] = 512
    saved_hours: Annotated[float, Meta(ge=0.01, le=8784)] = 24.0

    @property
    def cells(self) -> int:
        """Tokens that there is room for: all slots full, and a tool being chosen."""
        return self.slots * self.context_tokens + SCORING_TOKENS

    @property
    def cache_bytes(self) -> int:
        """Memory of the caches, all of it taken at the start."""
        return self.cells * KV_BYTES_PER_TOKEN[self.kv_type]


class Setup(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the engine's process is told. `directory`: where it may keep states; None: nowhere."""

    options: EngineOptions = EngineOptions()
    directory: str | None = None
