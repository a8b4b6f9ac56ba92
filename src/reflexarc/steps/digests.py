"""The two digests of a piece of a prompt: of its bytes, and of what it means.

Both are xxh3 of 128 bits: to tell what is equal, not to keep anything from anybody.
"""

import xxhash

from reflexarc.steps.canonical import canonical_json
from reflexarc.steps.forms import Order, blocks, parsed, read_arguments, unmarked, without_ids


def raw_digest(data: bytes) -> bytes:
    """16 bytes: equal where the bytes are."""
    return xxhash.xxh3_128_digest(data)


def meaning_digest(data: bytes, order: Order | None = None) -> bytes:
    """16 bytes over the canonical content of a piece: equal whatever the order of its keys, its
    white space, its marks for caches and its ids of calls.

    Those ids are left out, or replaced by their place in `order`, which then grows: one for a
    conversation, its pieces in turn, so that a result answered to another call means another thing.
    Never raises: what is not strict JSON has its `raw_digest`.
    """
    try:
        value = without_ids(blocks(unmarked(parsed(data))), order)
        text = canonical_json(read_arguments(value))
    except ValueError:
        return raw_digest(data)
    return xxhash.xxh3_128_digest(text.encode("utf-8", "surrogatepass"))
