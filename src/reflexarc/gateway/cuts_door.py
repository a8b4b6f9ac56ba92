"""`GET /api/v1/cuts/ID`: what was cut of a conversation, opened by the id in its reference."""

import msgspec

from reflexarc.gateway.asgi import Arrival
from reflexarc.gateway.system2 import System2
from reflexarc.wire.errors import error_of

CUTS_PATH = "/api/v1/cuts/"


async def opened(system2: System2, arrival: Arrival, path: str) -> tuple[int, bytes]:
    """Status and body. Raises an `AccountError` for a key that is refused."""
    caller = await system2.accounting.caller(arrival.headers)
    identity = path.removeprefix(CUTS_PATH)
    content = system2.pruning.open(caller.tenant, identity)
    if content is None:
        shown = identity if len(identity) <= 80 else f"{identity[:77]}..."
        said = (
            f"nothing is kept as {shown!r}: it was not cut of a conversation of this key's, or not "
            "lately; send the conversation again, and what is cut of it is kept again"
        )
        return error_of(404, said, "not_found")
    return 200, msgspec.json.encode({"id": identity, "content": msgspec.Raw(content)})
