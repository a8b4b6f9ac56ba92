"""Pieces of prompts and calls of answers from messages in the form of OpenAI's chat API, which many
harnesses keep them in. For logs alone: nothing is checked, nothing raises."""

from collections.abc import Mapping

from reflexarc.steps.prompt import Piece
from reflexarc.traces.loose import Table, encoded, listed, table, tables, text

_SYSTEM = ("system", "developer")


def message_piece(message: Table, path: str, *, without: frozenset[str] = frozenset()) -> Piece:
    """One message. Members named in `without` are the log's own, not what was sent."""
    sent = {key: value for key, value in message.items() if key not in without}
    role = text(message.get("role"))
    return Piece("system" if role in _SYSTEM else "message", path, encoded(sent), role)


def tool_pieces(tools: object, shared: dict[bytes, Piece] | None = None) -> tuple[Piece, ...]:
    """The tools that were offered; equal ones are one object across all that share `shared`."""
    found: list[Piece] = []
    for index, tool in enumerate(listed(tools)):
        piece = Piece("tool", f"tools[{index}]", encoded(tool))
        found.append(piece if shared is None else _same(shared, piece))
    return tuple(found)


def ordered(pieces: list[Piece]) -> tuple[Piece, ...]:
    """As providers read them: tools, system, messages, each in the order they came."""
    rank: Mapping[str, int] = {"settings": 0, "tool": 1, "system": 2, "message": 3}
    return tuple(sorted(pieces, key=lambda piece: rank[piece.kind]))


def _same(shared: dict[bytes, Piece], piece: Piece) -> Piece:
    """The piece of this text that is there already, at the same place."""
    known = shared.get(piece.raw)
    if known is not None and known.path == piece.path and known.kind == piece.kind:
        return known
    shared[piece.raw] = piece
    return piece


def words(message: Table) -> str:
    """The text of a message, its parts one after another."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    return "".join(text(part.get("text")) for part in tables(content))


def called(message: Table) -> list[tuple[str, str, str]]:
    """The calls in an answer: name, id, arguments as text."""
    found: list[tuple[str, str, str]] = []
    for call in tables(message.get("tool_calls")):
        function = table(call.get("function"))
        name = text(function.get("name")) or text(call.get("name")) or text(call.get("function"))
        arguments = function.get("arguments", call.get("arguments", ""))
        written = arguments if isinstance(arguments, str) else encoded(arguments).decode()
        if name:
            found.append((name, text(call.get("id")), written))
    return found
