"""Answers that the upstream owns, copied so that System 1 can read what goes on from them: kept
only where they can be, gone when their owner is told to delete them."""

import json
from typing import Any

from reflexarc.gateway.asgi import Arrival
from reflexarc.gateway.callers import Caller
from reflexarc.gateway.chains import Chains
from reflexarc.gateway.config import GatewayConfig, Route
from reflexarc.gateway.continuing import Continuing
from reflexarc.gateway.converting import Converting
from reflexarc.gateway.doors import Door, Doors
from reflexarc.gateway.exchanging import Exchanging
from reflexarc.gateway.kept_door import KeptDoor
from reflexarc.gateway.metrics import Metrics
from reflexarc.gateway.prompt_repair import PromptRepair
from reflexarc.gateway.pruning import PruneDesk
from reflexarc.gateway.told import Told
from reflexarc.store.kept import KeptAnswer

TENANT = "00" * 16


def door_of(path: str = "/v1/responses") -> Door:
    route = Route(upstream="http://127.0.0.1:9/v1", dialect="responses")
    doors = Doors(GatewayConfig(route=(route,)), {})
    found = doors.of({"path": path, "raw_path": path.encode()})
    assert found is not None
    return found


def answered(identity: str) -> bytes:
    return json.dumps({"id": identity, "output": []}).encode()


async def test_what_nobody_could_go_on_from_is_not_kept() -> None:
    chains = Chains(None, 1.0, lambda: 0.0)
    continuing = Continuing(chains)
    for previous, kept in ((None, True), ("resp_of_elsewhere", False)):
        body = json.dumps({"model": "m", "input": "hi", "previous_response_id": previous}).encode()
        continued = await continuing.begin(door_of(), TENANT, body)
        continuing.answered(TENANT, continued, answered("resp_1"), "application/json", "")
        assert (await chains.one(TENANT, "resp_1") is not None) == kept
        chains.forget(TENANT, "resp_1")


async def test_deleted_at_the_upstream_the_copy_goes_too() -> None:
    chains = Chains(None, 1.0, lambda: 0.0)
    chains.keep(KeptAnswer(TENANT, "resp_1", None, False, 0.0, b"[]"))
    kept, door = KeptDoor(chains), door_of("/v1/responses/resp_1")
    assert await kept.answer(door, TENANT, "GET") is None
    assert await chains.one(TENANT, "resp_1") is not None
    assert await kept.answer(door, TENANT, "DELETE") is None
    assert await chains.one(TENANT, "resp_1") is None


async def test_what_only_some_readers_accept_passes_to_the_upstream() -> None:
    never: Any = None
    exchanging = Exchanging(
        Converting(64),
        Continuing(Chains(None, 1.0, lambda: 0.0)),
        never,
        PromptRepair(b"secret"),
        PruneDesk((), None, lambda *_: None, Metrics(), lambda: 0.0),
    )
    arrival = Arrival(1, b"r", [], 0.0, never, never)
    door = door_of()
    body = b'{"model":"m","input":"hi","previous_response_id":null,"user":"a","user":"b"}'
    exchange, continued = await exchanging.begin(
        door, door.url, arrival, body, Caller(bytes.fromhex(TENANT)), lambda: b"none", Told()
    )
    assert continued is None
    assert exchange.outgoing == body
