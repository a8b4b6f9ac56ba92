"""The prompt cache of the simulated System 2: which leading tokens of a prompt it has seen.

Block-granular and shared by all conversations, as automatic prefix caching in vLLM and hosted
APIs is: a block's key is the hash of everything up to its end, so a block can only be hit after
the one before it. Bounded; the least recently used blocks go first.
"""

from collections import OrderedDict
from collections.abc import Iterator

import xxhash

_BYTES_PER_TOKEN = 4


class PrefixCache:
    """Counts the cached tokens of a prompt, and remembers prompts that were read to their end.

    `block_tokens` is the granularity, `min_tokens` what a hit must reach to count at all,
    `capacity_tokens` how much is remembered (0: nothing is ever cached).
    """

    def __init__(self, block_tokens: int, min_tokens: int, capacity_tokens: int) -> None:
        self._block_bytes = block_tokens * _BYTES_PER_TOKEN
        self._block_tokens = block_tokens
        self._min_tokens = min_tokens
        self._capacity_blocks = capacity_tokens // block_tokens
        self._blocks: OrderedDict[int, None] = OrderedDict()

    def lookup(self, prompt: bytes) -> int:
        """Tokens of the longest cached prefix; 0 where they are fewer than count."""
        hits = 0
        for key in self._keys(prompt):
            if key not in self._blocks:
                break
            self._blocks.move_to_end(key)
            hits += 1
        cached_tokens = hits * self._block_tokens
        return cached_tokens if cached_tokens >= self._min_tokens else 0

    def remember(self, prompt: bytes) -> None:
        """Hold the whole blocks of a prompt from now on: once its prefill is over."""
        for key in self._keys(prompt):
            self._blocks[key] = None
            self._blocks.move_to_end(key)
        while len(self._blocks) > self._capacity_blocks:
            self._blocks.popitem(last=False)

    def _keys(self, prompt: bytes) -> Iterator[int]:
        """One per whole block: the hash of everything up to its end."""
        chain = xxhash.xxh3_64()
        for end in range(self._block_bytes, len(prompt) + 1, self._block_bytes):
            chain.update(prompt[end - self._block_bytes : end])
            yield chain.intdigest()
