"""Tools in the order in which a session had them first: a list shuffled anew breaks nothing.

Each tool stays as its client wrote it; marks for caches stay at the place where they were.
"""

from collections.abc import Mapping, Sequence

import msgspec

from reflexarc.context.layout import name_of
from reflexarc.steps.prompt import Piece
from reflexarc.wire.marks import MARK, unmarked
from reflexarc.wire.members import with_member

MAX_ORDERS = 32
"""Lists of tools remembered of one session: those of its agents."""
_ALIKE = 0.5
_DECLARATIONS = ("functionDeclarations", "function_declarations")
_list = msgspec.json.Decoder(list[msgspec.Raw])
_object = msgspec.json.Decoder(dict[str, msgspec.Raw])

Orders = list[list[str]]
"""Names of tools in the order of each list that was seen, the latest last."""


def in_known_order(raw: bytes, orders: Orders) -> bytes | None:
    """A list of tools with those that were there before first, in the order of then. None where
    nothing changes. `orders` learns of it."""
    try:
        tools = [bytes(one) for one in _list.decode(raw)]
    except (msgspec.MsgspecError, RecursionError):
        return None
    inner = _declared(tools)
    if inner is not None:
        name, entry, listed = inner
        changed = in_known_order(listed, orders)
        made = None if changed is None else with_member(entry, name, changed)
        return None if made is None else b"[" + made + b"]"
    names = [name_of(Piece("tool", f"tools[{at}]", one)) for at, one in enumerate(tools)]
    order = _order(names, orders)
    if order == names or len(set(names)) < len(names):
        return None
    placed = [tools[names.index(name)] for name in order]
    return b"[" + b",".join(_marks_in_place(tools, placed)) + b"]"


def _declared(tools: Sequence[bytes]) -> tuple[str, bytes, bytes] | None:
    """Gemini's one entry that declares all functions: its member, it, and their list."""
    if len(tools) != 1:
        return None
    try:
        members: Mapping[str, msgspec.Raw] = _object.decode(tools[0])
    except (msgspec.MsgspecError, RecursionError):
        return None
    for name in _DECLARATIONS:
        if name in members:
            return name, tools[0], bytes(members[name])
    return None


def _order(names: list[str], orders: Orders) -> list[str]:
    """By the list that has most of these names; a list that is too unlike stands for itself."""
    given = set(names)
    best = max(orders, key=lambda one: len(given & set(one)), default=None)
    if best is None or len(given & set(best)) < _ALIKE * max(len(given), len(best)):
        orders.append(names)
        del orders[:-MAX_ORDERS]
        return names
    new = [name for name in names if name not in best]
    best.extend(new)
    return [name for name in best if name in given]


def _marks_in_place(tools: Sequence[bytes], placed: Sequence[bytes]) -> list[bytes]:
    made = [unmarked(one) for one in placed]
    for at, tool in enumerate(tools):
        if unmarked(tool) != tool:
            mark = _object.decode(tool).get(MARK)
            if mark is not None:
                made[at] = with_member(made[at], MARK, bytes(mark)) or made[at]
    return made
