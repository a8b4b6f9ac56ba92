"""A prompt cache for the fault upstream: what of a prompt it read before, told in its usage."""

from typing import Any

import msgspec

from reflexarc.sim.faulty.script import Said
from reflexarc.sim.prefix import PrefixCache

_BYTES_PER_TOKEN = 4
_READ = ("tools", "system", "instructions", "systemInstruction", "messages", "input", "contents")
"""Members that a model reads, whatever the dialect, in that order."""


def cached(cache: PrefixCache, body: dict[str, Any], said: Said) -> Said:
    """What is said, with the counts of a prompt that was read through this cache. It is held from
    now on."""
    prompt = b"".join(msgspec.json.encode(body[name]) for name in _READ if name in body)
    found = cache.lookup(prompt)
    cache.remember(prompt)
    tokens = max(1, len(prompt) // _BYTES_PER_TOKEN)
    return msgspec.structs.replace(said, input=tokens, cached=min(found, tokens), written=0)
