"""How a tenant is named in the store: by a keyed hash of the header its key came in."""

import hashlib


def tenants_of(secret: bytes, key: str) -> list[str]:
    """The hashes of an API key, in each way it may be sent: `authorization: Bearer KEY`, and
    `api-key: KEY`. 32 hexadecimal digits each."""
    return [
        hashlib.blake2b(sent.encode(), key=secret, digest_size=16).hexdigest()
        for sent in (f"Bearer {key}", key)
    ]
