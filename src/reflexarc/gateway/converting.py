"""Requests on their way to an upstream that speaks another dialect than their client."""

import asyncio
import time
from collections.abc import Callable

import yarl

from reflexarc.gateway.doors import Door, gemini_url
from reflexarc.gateway.thoughts import Thoughts
from reflexarc.steps.errors import MalformedError, RequestError
from reflexarc.wire.converting import Conversion, TurnMemory, read_ask
from reflexarc.wire.dialect import Where
from reflexarc.wire.dialects import dialect, load_dialects
from reflexarc.wire.dialects.messages.threads import refuse_threads
from reflexarc.wire.encodings import plain_bytes
from reflexarc.wire.ids import MISTRAL_IDS
from reflexarc.wire.turns import Ask

# Beyond this a body is read beside the event loop, with a memory of its own.
_SLOWLY_READ_BYTES = 1024 * 1024


class UnfitError(RequestError):
    """A request that does not fit its dialect, told as an upstream of that dialect would."""

    status = 400

    def __init__(self, error: RequestError) -> None:
        super().__init__(str(error), error.param)
        self.code = error.code  # pyright: ignore[reportAttributeAccessIssue] - of the error it stands for


class Converting:
    """`unix_time` dates answers that come without a date."""

    def __init__(self, max_depth: int, unix_time: Callable[[], float] = time.time) -> None:
        load_dialects()
        self._max_depth = max_depth
        self._unix_time = unix_time
        self._memory = TurnMemory()
        self.thoughts = Thoughts()

    async def begin(
        self, door: Door, body: bytes, encoding: str, tenant: bytes
    ) -> tuple[Conversion, bytes]:
        """The conversion of a request, and the upstream's request. Raises `InputError`: a body that
        is read is read strictly, no key twice."""
        ask = await self.read(door.client, door.where, body, encoding, tenant)
        return await self.convert(
            ask, door.client, door.upstream, door.route.call_ids, slowly=_is_long(body)
        )

    async def read(
        self, client: str, where: Where, body: bytes, encoding: str, tenant: bytes
    ) -> Ask:
        """A request as any upstream can be asked it. Raises `InputError`."""
        if _is_long(body):
            ask = await asyncio.to_thread(self._read, client, where, body, encoding, TurnMemory())
        else:
            ask = self._read(client, where, body, encoding, self._memory)
        # Here, and not in a thread: others keep their thoughts meanwhile.
        return self.thoughts.restored(tenant, ask)

    async def convert(
        self, ask: Ask, client: str, upstream: str, call_ids: str, *, slowly: bool
    ) -> tuple[Conversion, bytes]:
        """`slowly`: it is long, and is written beside the event loop. Raises `InputError`."""
        if slowly:
            return await asyncio.to_thread(self._converted, ask, client, upstream, call_ids)
        return self._converted(ask, client, upstream, call_ids)

    def _read(
        self, client_name: str, where: Where, body: bytes, encoding: str, memory: TurnMemory
    ) -> Ask:
        client = dialect(client_name)
        try:
            plain = plain_bytes(body, encoding)
            ask = read_ask(client, plain, where, memory, self._max_depth)
        except RequestError as error:
            raise UnfitError(error) from error
        if client.name == "messages":
            refuse_threads(ask)
        _check_kept_elsewhere(ask)
        return ask

    def _converted(
        self, ask: Ask, client: str, upstream: str, call_ids: str
    ) -> tuple[Conversion, bytes]:
        rule = MISTRAL_IDS if call_ids == "mistral" else None
        spoken = dialect(upstream)
        conversion = Conversion(dialect(client), spoken, ask, int(self._unix_time()), rule)
        try:
            return conversion, conversion.request()
        except ValueError as error:  # what no JSON can hold
            raise MalformedError(f"the request cannot be converted: {error}") from error


def _is_long(body: bytes) -> bool:
    return len(body) > _SLOWLY_READ_BYTES


_KEPT_ELSEWHERE = ("conversation", "prompt", "cachedContent", "container")
"""Members that name what one provider keeps, a part of what is asked."""


def _check_kept_elsewhere(ask: Ask) -> None:
    """Another upstream would answer without it, and the client would never know."""
    for name in _KEPT_ELSEWHERE:
        if ask.settings.more.get(name):
            raise UnfitError(
                RequestError(
                    f"{name} names what another provider keeps: this upstream does not have it; "
                    "send what it stands for",
                    param=name,
                )
            )


def url_of(door: Door, conversion: Conversion) -> yarl.URL:
    """Where a converted request goes. The client's query was for its own dialect."""
    if door.upstream != "gemini":
        return door.url
    verb = "streamGenerateContent" if conversion.ask.settings.stream else "generateContent"
    return gemini_url(door.route, conversion.ask.settings.model, verb)
