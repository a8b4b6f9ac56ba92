"""What was cut, by its id, so that it can be opened again. In memory alone and bounded: a client
sends its whole conversation every time, so what is still being spoken of is here again with its
next request."""

from collections import OrderedDict
from collections.abc import Iterable

from reflexarc.context.pruning_text import Removed

MAX_BYTES = 64 * 1024 * 1024
MAX_BYTES_OF_TENANT = 16 * 1024 * 1024


class KeptCuts:
    """Of each tenant what was used last stays. A content that is larger than all a tenant may keep
    is not kept."""

    def __init__(
        self, max_bytes: int = MAX_BYTES, max_bytes_of_tenant: int = MAX_BYTES_OF_TENANT
    ) -> None:
        self._max_bytes = max_bytes
        self._max_of_tenant = max_bytes_of_tenant
        self._held: OrderedDict[tuple[bytes, str], bytes] = OrderedDict()
        self._bytes: dict[bytes, int] = {}

    def keep(self, tenant: bytes, removed: Iterable[Removed]) -> None:
        for one in removed:
            key = (tenant, one.id)
            if key in self._held:
                self._held.move_to_end(key)
            elif len(one.content) <= min(self._max_of_tenant, self._max_bytes):
                self._held[key] = one.content
                self._bytes[tenant] = self._bytes.get(tenant, 0) + len(one.content)
                self._make_room(tenant)

    def open(self, tenant: bytes, identity: str) -> bytes | None:
        """The JSON text of what was cut, as it stood in the conversation; None where it is not
        known, or no longer, or is another tenant's."""
        found = self._held.get((tenant, identity))
        if found is not None:
            self._held.move_to_end((tenant, identity))
        return found

    def clear(self) -> None:
        self._held.clear()
        self._bytes.clear()

    @property
    def held_bytes(self) -> int:
        return sum(self._bytes.values())

    def _make_room(self, tenant: bytes) -> None:
        while self._bytes.get(tenant, 0) > self._max_of_tenant:
            self._drop(next(key for key in self._held if key[0] == tenant))
        while self.held_bytes > self._max_bytes:
            self._drop(next(iter(self._held)))

    def _drop(self, key: tuple[bytes, str]) -> None:
        tenant = key[0]
        self._bytes[tenant] -= len(self._held.pop(key))
        if not self._bytes[tenant]:
            del self._bytes[tenant]
