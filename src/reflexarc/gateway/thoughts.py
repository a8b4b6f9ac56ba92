"""Thinking that a client does not bring back, kept for the provider that wants it.

Providers that sign a model's thinking want it again beside the calls that came of it, and refuse a
history without. Clients of another dialect often keep the calls alone. By the ids of calls what
belongs beside them is found again: in memory, bounded, never across tenants.
"""

from collections import OrderedDict

import msgspec

from reflexarc.wire.json import encode_json
from reflexarc.wire.replies import Reply
from reflexarc.wire.turns import Ask, Call, Part, Thinking, Turn

MAX_BYTES = 32 * 1024 * 1024


class _Beside(msgspec.Struct, frozen=True):
    """What stood beside the calls of one turn: its thinking, and the signatures of calls by id."""

    thinking: tuple[Thinking, ...]
    signatures: dict[str, tuple[str, str]]
    bytes_held: int


class Thoughts:
    """`tenant` stands for a client's key."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._known: OrderedDict[tuple[bytes, str], _Beside] = OrderedDict()

    def keep(self, tenant: bytes, reply: Reply) -> None:
        """An answer on its way to a client that may forget part of it."""
        thinking = tuple(part for part in reply.parts if _wanted_back(part))
        signatures = {
            call.id: (call.signature, call.origin)
            for call in reply.calls
            if call.signature is not None
        }
        if not reply.calls or not (thinking or signatures):
            return
        kept = tuple(part for part in thinking if isinstance(part, Thinking))
        size = len(encode_json([kept, signatures])) + 256
        key = tenant, reply.calls[0].id
        before = self._known.pop(key, None)
        self._bytes -= before.bytes_held if before is not None else 0
        self._known[key] = _Beside(kept, signatures, size)
        self._bytes += size
        while self._bytes > self._max_bytes and self._known:
            _, dropped = self._known.popitem(last=False)
            self._bytes -= dropped.bytes_held

    def restored(self, tenant: bytes, ask: Ask) -> Ask:
        """The request with what its client left out of turns that made calls."""
        if not self._known:
            return ask
        turns = tuple(self._turn(tenant, turn) for turn in ask.turns)
        if all(new is old for new, old in zip(turns, ask.turns, strict=True)):
            return ask
        return msgspec.structs.replace(ask, turns=turns)

    def _turn(self, tenant: bytes, turn: Turn) -> Turn:
        if turn.role != "assistant":
            return turn
        first = next((part for part in turn.parts if isinstance(part, Call)), None)
        beside = self._known.get((tenant, first.id)) if first is not None else None
        if first is None or beside is None:
            return turn
        self._known.move_to_end((tenant, first.id))
        signed = any(_wanted_back(part) for part in turn.parts)
        # Unsigned, a client's copy of the thinking is worth nothing beside what was signed.
        said = [part for part in turn.parts if signed or not isinstance(part, Thinking)]
        parts: list[Part] = [*(() if signed else beside.thinking)]
        for part in said:
            known = beside.signatures.get(part.id) if isinstance(part, Call) else None
            if isinstance(part, Call) and known is not None and part.signature is None:
                part = msgspec.structs.replace(part, signature=known[0], origin=known[1])
            parts.append(part)
        if parts == list(turn.parts):
            return turn
        return msgspec.structs.replace(turn, parts=tuple(parts))


def _wanted_back(part: object) -> bool:
    return isinstance(part, Thinking) and (part.signature is not None or part.redacted)
