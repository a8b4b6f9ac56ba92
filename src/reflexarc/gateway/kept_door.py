"""`/responses/ID`: answers that this gateway owns, asked for or deleted by their id."""

from typing import Any

import msgspec

from reflexarc.gateway.chains import Chains
from reflexarc.gateway.doors import Door
from reflexarc.store.kept import KeptAnswer
from reflexarc.wire.errors import error_of


class KeptDoor:
    def __init__(self, chains: Chains) -> None:
        self._chains = chains

    async def answer(self, door: Door, tenant: str, method: str) -> tuple[int, bytes] | None:
        """Status and body; None for what is not ours to answer."""
        identity, _, what = door.rest.partition("/")
        known = await self._chains.one(tenant, identity)
        if known is None or not known.ours:
            if door.client == door.upstream:
                if known is not None and method == "DELETE" and not what:
                    self._chains.forget(tenant, identity)  # our copy of the upstream's
                return None
            return _missing(identity)
        if method == "GET" and not what:
            return 200, known.body
        if method == "GET" and what == "input_items":
            return 200, await self._items(tenant, known)
        if method == "DELETE" and not what:
            self._chains.forget(tenant, identity)
            gone = {"id": identity, "object": "response", "deleted": True}
            return 200, msgspec.json.encode(gone)
        if method == "POST" and what == "cancel":
            said = "Only responses that run in the background can be cancelled."
            return error_of(400, said, "invalid_request")
        return _missing(door.rest)

    async def _items(self, tenant: str, known: KeptAnswer) -> bytes:
        """What was asked, the newest first, as the API lists it."""
        chain = await self._chains.chain(tenant, known.id) or [known]
        items = [item for one in chain for item in _list(one.items)]
        asked = list(enumerate(items[: len(items) - _answered(known)]))[::-1]
        listed = [item if "id" in item else {"id": f"item_{at}", **item} for at, item in asked]
        body: dict[str, Any] = {
            "object": "list",
            "data": listed,
            "first_id": listed[0]["id"] if listed else None,
            "last_id": listed[-1]["id"] if listed else None,
            "has_more": False,
        }
        return msgspec.json.encode(body)


def _list(text: bytes) -> list[dict[str, Any]]:
    return msgspec.json.decode(text, type=list[dict[str, Any]])


def _answered(known: KeptAnswer) -> int:
    """Items of the answer itself."""
    body: Any = msgspec.json.decode(known.body)
    return len(body.get("output", ()))


def _missing(identity: str) -> tuple[int, bytes]:
    shown = identity if len(identity) <= 80 else f"{identity[:77]}..."
    return error_of(404, f"Response with id '{shown}' not found.", "not_found")
