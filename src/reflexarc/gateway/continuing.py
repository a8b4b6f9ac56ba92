"""Requests that go on from an earlier answer by its id (`previous_response_id`).

The gateway keeps the answers of routes where System 1 may act, and of those whose upstream speaks
another dialect. It expands such a request where the upstream cannot: the answer was System 1's, or
was converted. A request whose chain the upstream knows passes untouched; System 1 reads it
expanded.
"""

import time
from collections.abc import Callable

import msgspec

from reflexarc.gateway.chains import Chains
from reflexarc.gateway.doors import Door
from reflexarc.steps.errors import MalformedError, RequestError
from reflexarc.store.kept import KeptAnswer
from reflexarc.wire.dialects import dialect
from reflexarc.wire.encodings import plain_bytes
from reflexarc.wire.json import decode_strict, encode_json, split_list, split_object
from reflexarc.wire.losses import Losses
from reflexarc.wire.replies import Reply
from reflexarc.wire.sse import SseParser
from reflexarc.wire.turns import Ask

OWN_ID = "resp_s1"
"""What ids of System 1's answers begin with."""
_MEMBER = "previous_response_id"
_ENDS = frozenset({b"response.completed", b"response.incomplete"})


class UnknownAnswerError(RequestError):
    """As the API itself says it of an id it does not know."""

    code = "previous_response_not_found"
    status = 400

    def __init__(self, identity: str) -> None:
        shown = identity if len(identity) <= 80 else f"{identity[:77]}..."
        super().__init__(
            f"Previous response with id {shown!r} not found: it is not kept here, or no longer; "
            "send the whole conversation as input",
            param=_MEMBER,
        )


class Continued(msgspec.Struct, frozen=True):
    """A request of the responses dialect. `whole` is it with its conversation in full, None where
    it is not known; `passes`: the upstream understands the request as it came. `added` are its own
    items, `stored` whether the client may go on from the answer."""

    previous: str | None
    added: tuple[bytes, ...]
    stored: bool
    whole: bytes | None
    passes: bool


class Continuing:
    """`tenant` is hexadecimal throughout."""

    def __init__(self, chains: Chains, unix_time: Callable[[], float] = time.time) -> None:
        self._chains = chains
        self._unix_time = unix_time

    async def begin(self, door: Door, tenant: str, body: bytes) -> Continued:
        """Raises `UnknownAnswerError` where nobody knows what to go on from, `MalformedError` or
        `RequestError` for a body that cannot be read."""
        fields = split_object(body)
        stored = _stored(fields)
        added = _items(fields.get("input"))
        previous = _previous(fields)
        if previous is None:
            return Continued(None, added, stored, body, True)
        chain = await self._chains.chain(tenant, previous)
        # Of several upstreams the next need not be the one that knows the answer.
        converted = door.upstream != "responses" or door.route.pooled
        if chain is None:
            if converted or previous.startswith(OWN_ID):
                raise UnknownAnswerError(previous)
            return Continued(previous, added, stored, None, True)
        items = [item for one in chain for item in split_list(one.items, "items")]
        whole = _expanded(fields, [*map(bytes, items), *added])
        passes = not converted and not chain[-1].ours
        return Continued(previous, added, stored, whole, passes)

    def acted(self, tenant: str, continued: Continued, answer: bytes, content_type: str) -> None:
        """System 1 answered."""
        body = _body_of(answer, content_type)
        if body is not None:
            self._keep(tenant, continued, body, ours=True)

    def answered(
        self, tenant: str, continued: Continued, answer: bytes, content_type: str, encoding: str
    ) -> None:
        """The upstream answered in the responses dialect itself; `answer` is a copy. Without all
        that came before it nobody could go on from it here: then it is not kept."""
        if continued.whole is None:
            return
        try:
            body = _body_of(plain_bytes(answer, encoding), content_type)
        except MalformedError:
            return
        if body is not None:
            self._keep(tenant, continued, body, ours=False)

    def converted(self, tenant: str, continued: Continued, ask: Ask, reply: Reply) -> None:
        """An upstream of another dialect answered."""
        value = dialect("responses").write_reply(reply, ask, Losses("responses"))
        self._keep(tenant, continued, encode_json(value), ours=True)

    def _keep(self, tenant: str, continued: Continued, body: bytes, *, ours: bool) -> None:
        if not continued.stored:
            return
        try:
            fields = split_object(body)
            identity = decode_strict(bytes(fields["id"]), "id")
            made = split_list(fields["output"], "output")
        except (MalformedError, KeyError):
            return
        if not isinstance(identity, str):
            return
        output = [_replayed(bytes(one)) if ours else bytes(one) for one in made]
        items = b"[" + b",".join([*continued.added, *output]) + b"]"
        self._chains.keep(
            KeptAnswer(
                tenant,
                identity,
                continued.previous,
                ours,
                self._unix_time(),
                items,
                body if ours else b"",
            )
        )


def _stored(fields: dict[str, msgspec.Raw]) -> bool:
    store = fields.get("store")
    return store is None or bytes(store) != b"false"


def _previous(fields: dict[str, msgspec.Raw]) -> str | None:
    raw = fields.get(_MEMBER)
    value = None if raw is None else decode_strict(bytes(raw), _MEMBER)
    if value is None or isinstance(value, str):
        return value
    raise RequestError(f"{_MEMBER} must be a string", param=_MEMBER)


def _items(raw: msgspec.Raw | None) -> tuple[bytes, ...]:
    if raw is None:
        return ()
    text = bytes(raw)
    if text.startswith(b'"'):
        return (b'{"type":"message","role":"user","content":' + text + b"}",)
    if not text.startswith(b"["):
        return ()
    return tuple(bytes(one) for one in split_list(raw, "input"))


def _expanded(fields: dict[str, msgspec.Raw], items: list[bytes]) -> bytes:
    """The request with its whole conversation, its other members as they were."""
    whole = b"[" + b",".join(items) + b"]"
    members: list[bytes] = []
    for name, raw in fields.items():
        if name != _MEMBER:
            value = whole if name == "input" else bytes(raw)
            members.append(msgspec.json.encode(name) + b":" + value)
    if "input" not in fields:
        members.append(b'"input":' + whole)
    return b"{" + b",".join(members) + b"}"


def _replayed(item: bytes) -> bytes:
    """An item of ours as input: the ids that were made for it here are nobody else's."""
    members = split_object(item)
    kept = [msgspec.json.encode(k) + b":" + bytes(v) for k, v in members.items() if k != "id"]
    return b"{" + b",".join(kept) + b"}"


def _body_of(answer: bytes, content_type: str) -> bytes | None:
    """The response object of an answer, whole or in the last event of its stream; None where it did
    not come to its end."""
    if not content_type.lower().startswith("text/event-stream"):
        return answer
    for event in reversed(SseParser().feed(answer)):
        if event.name in _ENDS or b'"response.completed"' in event.data[:200]:
            try:
                raw = split_object(event.data).get("response")
            except MalformedError:
                return None
            return None if raw is None else bytes(raw)
    return None
