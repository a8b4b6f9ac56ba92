"""What is made of a request before anybody is asked: its exchange with the upstream, converted
where that speaks another dialect, and continued where it goes on from an earlier answer."""

from collections.abc import Callable

import msgspec
import yarl

from reflexarc.gateway.asgi import Arrival, header
from reflexarc.gateway.callers import Caller
from reflexarc.gateway.config import ACTING_MODES
from reflexarc.gateway.continuing import Continued, Continuing
from reflexarc.gateway.converting import Converting, UnfitError, url_of
from reflexarc.gateway.doors import Door
from reflexarc.gateway.exchange import Exchange
from reflexarc.gateway.planning import Planner
from reflexarc.gateway.preparing import Asking
from reflexarc.gateway.prompt_repair import Finish, PromptRepair, as_it_is
from reflexarc.gateway.pruning import PruneDesk
from reflexarc.gateway.told import Told
from reflexarc.steps.errors import MalformedError, RequestError
from reflexarc.upstream import converted_request_headers, forwarded_request_headers
from reflexarc.wire.chat_answer import OWN_ID_START, own_ids_fitted
from reflexarc.wire.converting import Conversion
from reflexarc.wire.dialects import dialect
from reflexarc.wire.encodings import plain_bytes
from reflexarc.wire.growing import Bodies, Grown
from reflexarc.wire.replies import Reply

MAX_PRUNED_BYTES = 32 * 1024 * 1024
"""Of the requests that were pruned last: of the next only what is new is read."""


class Exchanging:
    """`planner` makes plans for pooled routes; `pruning` leaves out of prompts what may be."""

    def __init__(
        self,
        converting: Converting,
        continuing: Continuing,
        planner: Planner,
        repair: PromptRepair,
        pruning: PruneDesk,
    ) -> None:
        self._repair = repair
        self.continuing = continuing
        self._pruning = pruning
        self._pruned = Bodies(max_bytes=MAX_PRUNED_BYTES)
        self._converting = converting
        self._planner = planner

    async def begin(
        self,
        door: Door,
        url: yarl.URL,
        arrival: Arrival,
        body: bytes,
        caller: Caller,
        label: Callable[[], bytes],
        said: Told,
        grown: Grown | None = None,
    ) -> tuple[Exchange, Continued | None]:
        """`grown`: the body taken apart, where it could be. Raises `InputError` for what cannot be
        converted, or goes on from what nobody knows."""
        tenant = caller.tenant.hex()
        exchange = Exchange(
            route=door.route.path,
            method="POST",
            url=url,
            headers=[],
            body=body,
            began_s=arrival.began_s,
            request_id=arrival.request_id,
            label=label,
            client=door.client,
            upstream=door.upstream,
            model=door.where.model,
            number=arrival.number,
            grown=grown,
        )
        exchange.pruned = await self._pruning.prune(
            door, arrival.headers, said, caller.tenant, grown
        )
        if exchange.pruned is not None:
            exchange.prompt = self._pruned.read(
                caller.tenant + door.client.encode(),
                dialect(door.client).conversation,
                exchange.pruned.body,
            )
        encoding = (header(arrival.headers, b"content-encoding") or b"").decode("latin-1")
        if door.route.pooled:
            return exchange, await self._planned(door, exchange, arrival, encoding, caller, said)
        if door.client == door.upstream:
            exchange.headers = forwarded_request_headers(arrival.headers, door.key)
            continued = await self._same(door, exchange, body, tenant, encoded=bool(encoding))
            if exchange.pruned is not None:
                exchange.sent = exchange.pruned.body
            if door.route.repair.mends and not encoding:
                sent = exchange.outgoing or b""
                mended, finish = self._mended(door, exchange, arrival, said, tenant, sent)
                exchange.sent = finish(mended, door.upstream)
            outgoing = exchange.outgoing or b""
            if door.route.call_ids == "mistral" and OWN_ID_START in outgoing and not encoding:
                exchange.sent = own_ids_fitted(outgoing)
            return exchange, continued
        return exchange, await self._converted(
            door, exchange, arrival, body, tenant, encoding, said
        )

    def _mended(
        self, door: Door, exchange: Exchange, arrival: Arrival, said: Told, tenant: str, body: bytes
    ) -> tuple[bytes, Finish]:
        """What is asked in place of a body, as its client could have asked it; and what makes of
        it what an upstream is sent."""
        repaired = self._repair.mended(
            door.route, bytes.fromhex(tenant), arrival.headers, said.session, door.client, body,
            exchange.grown if exchange.prompt is None else exchange.prompt,
        )  # fmt: skip
        if repaired is None:
            return body, as_it_is
        exchange.prompt, exchange.repaired = repaired.prompt, repaired.names
        return repaired.sent, repaired.finish

    async def _planned(
        self,
        door: Door,
        exchange: Exchange,
        arrival: Arrival,
        encoding: str,
        caller: Caller,
        said: Told,
    ) -> Continued | None:
        """Which deployment it goes to is not decided yet; what each would be asked neither."""
        tenant = caller.tenant.hex()
        continued: Continued | None = None
        grown = exchange.grown
        body = plain_bytes(exchange.body or b"", encoding)
        try:
            if door.client == "responses":
                continued = await self.continuing.begin(door, tenant, body)
                body = continued.whole or body
            whole = body if exchange.pruned is None else exchange.pruned.body
            asked, finish = self._mended(door, exchange, arrival, said, tenant, whole)
            known = (grown, exchange.prompt)
            plan = self._planner.plan(
                door,
                arrival.headers,
                said,
                asked,
                tenant,
                caller.tier,
                local_only=caller.local_only,
                grown=next((one for one in known if one is not None and one.body is asked), None),
            )
        except RequestError as error:
            raise UnfitError(error) from error
        key = caller.tenant

        def keep(conversion: Conversion, reply: Reply) -> None:
            self._converting.thoughts.keep(key, reply)
            if continued is not None:
                self.continuing.converted(tenant, continued, conversion.ask, reply)

        exchange.body = body
        exchange.upstream = door.client  # until a deployment is asked
        exchange.plan = plan
        exchange.asking = Asking(
            door.client,
            door.where,
            arrival.headers,
            caller.virtual,
            None if continued is None else continued.previous,
            keep,
            finish,
        )
        return continued

    async def _same(
        self, door: Door, exchange: Exchange, body: bytes, tenant: str, *, encoded: bool
    ) -> Continued | None:
        """A request of another kind than this passes as it is, whatever is in it."""
        acts = door.route.mode in ACTING_MODES or b'"previous_response_id"' in body
        if door.client != "responses" or encoded or not acts:
            return None
        try:
            continued = await self.continuing.begin(door, tenant, body)
        except RequestError as error:
            raise UnfitError(error) from error
        except MalformedError:
            return None  # a key given twice, say: the upstream judges, System 1 escalates
        if continued.previous is not None and continued.whole is not None:
            exchange.body = continued.whole
            exchange.sent = body if continued.passes else None
        return continued

    async def _converted(
        self,
        door: Door,
        exchange: Exchange,
        arrival: Arrival,
        body: bytes,
        tenant: str,
        encoding: str,
        said: Told,
    ) -> Continued | None:
        continued: Continued | None = None
        if door.client == "responses":
            try:
                body = plain_bytes(body, encoding)
                continued = await self.continuing.begin(door, tenant, body)
            except RequestError as error:
                raise UnfitError(error) from error
            encoding = ""
            exchange.body = body = continued.whole or body
        key = bytes.fromhex(tenant)
        if exchange.pruned is not None:
            body = exchange.pruned.body
        finish = as_it_is
        if door.route.repair.mends and not encoding:
            body, finish = self._mended(door, exchange, arrival, said, tenant, body)
        conversion, sent = await self._converting.begin(door, body, encoding, key)
        exchange.conversion, exchange.sent = conversion, finish(sent, door.upstream)
        if continued is not None and continued.previous is not None:
            # Echoed in the answer; no upstream is told.
            settings = conversion.ask.settings
            settings = msgspec.structs.replace(settings, previous=continued.previous)
            conversion.ask = msgspec.structs.replace(conversion.ask, settings=settings)

        def keep(reply: Reply) -> None:
            self._converting.thoughts.keep(key, reply)
            if continued is not None:
                self.continuing.converted(tenant, continued, conversion.ask, reply)

        conversion.on_reply = keep
        try:
            exchange.url = url_of(door, conversion)
        except RequestError as error:
            raise UnfitError(error) from error
        exchange.headers = converted_request_headers(
            arrival.headers, door.key, door.upstream, stream=conversion.ask.settings.stream
        )
        return continued
