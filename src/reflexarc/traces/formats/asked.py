"""The prompt in a logged request: a body in any API's form, as JSON or text of it, a list of
messages alone, or plain text. Nothing is checked, nothing raises."""

import msgspec

from reflexarc.steps.prompt import Piece, Prompt
from reflexarc.traces.formats.chat_pieces import message_piece, ordered, tool_pieces
from reflexarc.traces.formats.fields import is_list, is_table
from reflexarc.traces.loose import Table, decoded, encoded, listed, table, tables, text
from reflexarc.wire.pieces import pieces_of

_WRAPPERS = (
    "body",
    "body_raw",
    "bodyRaw",
    "raw_body",
    "json",
    "payload",
    "postData",
    "data",
    "kwargs",
    "text",
    "params",
)
_BODY = frozenset({"messages", "input", "contents", "prompt"})
_SAYS = frozenset({"role", "type", "parts", "lc"})
_NOT_SENT = frozenset({"id", "response_metadata", "usage_metadata"})
_ROLES = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool"}


class Asked(msgspec.Struct, frozen=True):
    """`prompt` is None where nothing of it is in the log. `body` is the request as a table, empty
    where a log holds none."""

    prompt: Prompt | None = None
    body: Table = {}

    @property
    def model(self) -> str:
        return text(self.body.get("model"))


class Sharing:
    """Keeps equal pieces one object: of a conversation, each prompt repeats the one before it."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, bytes], Piece] = {}

    def prompt(self, pieces: tuple[Piece, ...], *, complete: bool) -> Prompt:
        return Prompt(tuple(self._same(piece) for piece in pieces), complete=complete)

    def _same(self, piece: Piece) -> Piece:
        known = self._known.setdefault((piece.path, piece.raw), piece)
        return known if known == piece else piece


def unpacked(value: object) -> object:
    """What a log's field holds: JSON in text as JSON (also twice packed), all else as it is."""
    for _ in range(3):
        if not isinstance(value, str) or not value.lstrip()[:1] or value.lstrip()[0] not in '{["':
            return value
        try:
            value = decoded(value)
        except ValueError:
            return value
    return value


def body_of(value: object) -> object:
    """The request in what a log keeps of one: without the envelopes of its transport."""
    value = unpacked(value)
    for _ in range(4):
        fields = table(value)
        if not fields or fields.keys() & _BODY:
            return value
        inner = next((key for key in _WRAPPERS if fields.get(key)), "")
        if not inner:
            return value
        value = unpacked(fields[inner])
    return value


def asked_in(
    value: object, sharing: Sharing, *, tools: object = None, settings: Table | None = None
) -> Asked:
    """`tools` and `settings`: what stands beside the messages in logs that keep them apart."""
    found = body_of(value)
    # what a user wrote may itself be JSON, which is no request for that
    value = found if not isinstance(value, str) or _is_request(found) else value
    if isinstance(value, str):
        if not value:
            return Asked()
        piece = Piece("message", "input", value.encode("utf-8", "replace"), "user", plain=True)
        return Asked(sharing.prompt((piece,), complete=True))
    if is_list(value):
        found = _listed(listed(value), tools)
        return Asked(sharing.prompt(found, complete=tools is not None)) if found else Asked()
    body = table(value)
    if not body:
        return Asked()
    if tools is not None and "tools" not in body:
        body = {**(settings or {}), **body, "tools": unpacked(tools)}
    return Asked(_of_body(body, sharing), body)


def _is_request(value: object) -> bool:
    if is_list(value):
        return any(one.keys() & _SAYS for one in tables(value) or tables((listed(value) or [0])[0]))
    return bool(table(value).keys() & _BODY)


def dialect_of(body: Table) -> str:
    """Which API's form a request has; "" for none that we know."""
    if is_list(body.get("contents")):
        return "gemini"
    if is_list(body.get("messages")):
        return "messages" if _is_anthropic(body) else "chat"
    if "input" in body and ("model" in body or "instructions" in body):
        return "responses"
    return ""


def _of_body(body: Table, sharing: Sharing) -> Prompt | None:
    name = dialect_of(body)
    messages = body.get("messages")
    if is_list(messages) and listed(messages) and _is_framework(listed(messages)):
        found = _listed(listed(messages), body.get("tools"))
        return sharing.prompt(found, complete=False) if found else None
    if name:
        members = {key: msgspec.Raw(encoded(one)) for key, one in body.items()}
        pieces = pieces_of(name, members)
        if not any(piece.kind == "message" for piece in pieces):
            return None
        whole = not body.get("previous_response_id") and not body.get("conversation")
        return sharing.prompt(pieces, complete=whole)
    given = body.get("input", body.get("prompt"))
    if isinstance(given, str) and given:
        piece = Piece("message", "prompt", given.encode("utf-8", "replace"), "user", plain=True)
        return sharing.prompt((piece,), complete=True)
    if is_list(given) and given:
        found = _listed(listed(given), body.get("tools"))
        return sharing.prompt(found, complete="tools" in body)
    return None


def _listed(messages: list[object], tools: object) -> tuple[Piece, ...]:
    while len(messages) == 1 and is_list(messages[0]):
        messages = listed(messages[0])
    found = [*tool_pieces(unpacked(tools))]
    for index, one in enumerate(messages):
        path = f"messages[{index}]"
        message = _plainly(table(one))
        tool = table(message.get("content"))
        if message.get("role") == "tool" and "function" in tool:
            # some callbacks put the tools that were offered among the messages
            found.append(Piece("tool", path, encoded(tool)))
        elif message:
            found.append(message_piece(message, path, without=_NOT_SENT & _own(message)))
        elif isinstance(one, str) and one:
            found.append(Piece("message", path, one.encode("utf-8", "replace"), plain=True))
    return ordered(found)


def _plainly(message: Table) -> Table:
    """A framework's message as one with a role."""
    if is_table(message.get("kwargs")) and "lc" in message:
        message = table(message["kwargs"])
    role = _ROLES.get(text(message.get("type")))
    if role and "role" not in message:
        return {"role": role, **message}
    return message


def _own(message: Table) -> frozenset[str]:
    """Members that a framework adds to what it sends."""
    return _NOT_SENT if "response_metadata" in message or "additional_kwargs" in message else (
        frozenset()
    )  # fmt: skip


def _is_framework(messages: list[object]) -> bool:
    first = messages[0]
    fields = table(first)
    return is_list(first) or "lc" in fields or "additional_kwargs" in fields


def _is_anthropic(body: Table) -> bool:
    if "system" in body or "anthropic_version" in body:
        return True
    if text(body.get("model")).rpartition("/")[2].rpartition(".")[2].startswith("claude"):
        return not any(one.get("role") == "system" for one in tables(body["messages"]))
    return any("input_schema" in one for one in tables(body.get("tools")))
