"""A request's prompt in the pieces that a provider's cache sees, in the order in which it reads
them: tools, instructions, messages. As bytes, whatever the dialect; nothing is interpreted but who
speaks first."""

import msgspec

from reflexarc.upstream.affinity import MAX_OPENING, Prefix
from reflexarc.wire.dialects import dialect
from reflexarc.wire.growing import Grown

_TOOLS = ("tools", "functions")
_INSTRUCTIONS = ("system", "instructions", "systemInstruction", "system_instruction")
_INSTRUCTING = frozenset({"system", "developer"})


class Beginning(msgspec.Struct, frozen=True):
    """`opening`: the bytes that one conversation begins with, tools aside: its instructions and its
    first message."""

    prefix: Prefix
    opening: tuple[bytes, ...] = ()


class _Spoken(msgspec.Struct):
    role: str = ""


_spoken = msgspec.json.Decoder(_Spoken)


def beginning_of(client: str, grown: Grown) -> Beginning:
    """Of a request in the dialect `client`. Never raises: a conversation that is no list is one
    piece."""
    members = grown.members
    tools = [bytes(members[name]) for name in _TOOLS if name in members]
    instructions = [bytes(members[name]) for name in _INSTRUCTIONS if name in members]
    before = Prefix.of((*tools, *instructions), 0)
    conversation = dialect(client).conversation
    if not grown.listed:
        whole = [bytes(members[conversation])] if conversation in members else []
        pieces = (*tools, *instructions, *whole)
        return Beginning(Prefix.of(pieces, len(pieces) - 1), (*instructions, *whole))
    first = _first(grown)
    opening = [grown.item(at) for at in range(first + 1)]
    prefix = Prefix(
        tuple(before.chain),
        before.chain_ends,
        grown.chain,
        grown.ends,
        grown.list_at,
        len(before) + first,
    )
    return Beginning(prefix, (*instructions, *opening))


def _first(grown: Grown) -> int:
    """The place of the first message that is no instruction; of many instructions the last that is
    looked at; before the first where there is none."""
    looked = min(len(grown), MAX_OPENING)
    return next((at for at in range(looked) if not _instructs(grown.item(at))), looked - 1)


def _instructs(message: bytes) -> bool:
    try:
        return _spoken.decode(message).role in _INSTRUCTING
    except (msgspec.DecodeError, RecursionError):
        return False
