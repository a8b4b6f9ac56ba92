"""What a dialect must be able to do. Packages under `wire.dialects` each make one `Dialect`.

Values are Python's as `wire.json.decode_strict` gives them: no key twice, finite numbers, bounded
depth, members in the order they came. Writers keep that order in whatever is passed on whole
(schemas, arguments, metadata): a shuffled key is a prefix that no cache knows.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple, Protocol

from reflexarc.wire.faults import Fault
from reflexarc.wire.ids import IdMap, IdRule
from reflexarc.wire.losses import Losses
from reflexarc.wire.replies import Event, Reply
from reflexarc.wire.sse import SseEvent
from reflexarc.wire.turns import Ask, Settings, ToolOffer, Turn


class Where(NamedTuple):
    """What a request's URL says, for dialects whose bodies do not: model, and whether a stream is
    asked for."""

    model: str = ""
    stream: bool = False


class Head(NamedTuple):
    """A request but for its conversation. `turns`: instructions given beside it, to stand first."""

    settings: Settings
    tools: tuple[ToolOffer, ...] = ()
    turns: tuple[Turn, ...] = ()


class StreamReader(Protocol):
    """Reads one stream. Nothing that a provider sends makes it raise: what is no event of the
    dialect is `Failed`, or passed over where the dialect allows it."""

    def read(self, event: SseEvent) -> Iterable[Event]: ...

    def close(self) -> Iterable[Event]:
        """The bytes ended. `Failed` where the stream did not end by its own word."""
        ...


class StreamWriter(Protocol):
    """Writes one stream: SSE bytes for each event, in the dialect's order. Takes events of any
    reader as they come, parts beside one another and not ended too."""

    def write(self, event: Event) -> bytes: ...


class Dialect(Protocol):
    """`conversation` is the member of a request that lists its messages; `ids` the rule for ids of
    calls; `keep_alive` what may be sent in a stream at any time and says nothing."""

    @property
    def name(self) -> str: ...
    @property
    def conversation(self) -> str: ...
    @property
    def ids(self) -> IdRule: ...
    @property
    def keep_alive(self) -> bytes: ...

    def read_head(self, values: dict[str, Any], where: Where) -> Head:
        """`values`: every member of the request but the conversation. Raises `RequestError`."""
        ...

    def read_message(self, value: Any, path: str) -> tuple[Turn, ...]:
        """One entry of the conversation, or all of it where it is not a list. Raises
        `RequestError` with the path of the fault."""
        ...

    def write_ask(self, ask: Ask, losses: Losses, ids: IdMap) -> dict[str, Any]:
        """The body of a request that asks the same. What it cannot say goes to `losses`."""
        ...

    def read_reply(self, value: dict[str, Any]) -> Reply:
        """Raises `MalformedError`."""
        ...

    def write_reply(self, reply: Reply, ask: Ask, losses: Losses) -> dict[str, Any]:
        """`ask` is what the client asked, in this dialect or as System 1 read it."""
        ...

    def stream_reader(self) -> StreamReader: ...

    def stream_writer(self, ask: Ask, losses: Losses) -> StreamWriter: ...

    def read_fault(self, status: int, body: bytes) -> Fault:
        """Of any body at all, a page of HTML too."""
        ...

    def write_fault(self, fault: Fault, request_id: str) -> tuple[int, dict[str, Any]]:
        """The status and the body."""
        ...
