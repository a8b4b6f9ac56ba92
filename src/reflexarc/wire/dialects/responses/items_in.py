"""Items of a conversation, and of an answer, read: messages, calls, results, reasoning.

What is only of this dialect (hosted tools' calls and results, references to items) is `Foreign`.
A null in a part's `more` marks a form that its own writer puts back and nobody else misses.
"""

from typing import Any

import msgspec

from reflexarc.wire.dialects.responses.content_in import Content, read_content
from reflexarc.wire.dialects.shapes import Members, as_list, as_object, fault
from reflexarc.wire.json import encode_json
from reflexarc.wire.sealed import unseal
from reflexarc.wire.turns import (
    Call,
    CallKind,
    Foreign,
    Media,
    Refusal,
    Result,
    Text,
    Thinking,
    Turn,
    TurnRole,
)

NAME = "responses"

RAW = "content"
"""A null of this name in thinking's `more`: its text is the thinking itself, no summary of it."""

ITEM = "item"
"""A null of this name in a turn's `more`: its part is an item of the list, no message's content."""

BETWEEN_SUMMARIES = "\n\n"


def is_marked(more: dict[str, Any], name: str) -> bool:
    return name in more and more[name] is None


ItemPart = Text | Refusal | Media | Thinking | Call | Foreign

_ROLES: dict[str, TurnRole] = {
    "system": "system",
    "developer": "developer",
    "user": "user",
    "assistant": "assistant",
}
# Items that a client adds; all others of hosted tools come from the model.
_FROM_CLIENT = frozenset(
    {
        "computer_call_output",
        "local_shell_call_output",
        "shell_call_output",
        "apply_patch_call_output",
        "mcp_approval_response",
        "tool_search_output",
        "compaction_trigger",
        "configuration_update",
    }
)


def read_item(value: Any, path: str) -> tuple[Turn, ...]:
    """One item of `input`, or all of it where it is a string. Raises `RequestError`."""
    if isinstance(value, str):
        return (Turn("user", (Text(value),)),)
    item = as_object(value, path)
    kind = kind_of(item)
    if kind is None:
        raise fault(path, "must have a type")
    if kind == "message":
        return _read_message(item, path)
    if kind in ("function_call_output", "custom_tool_call_output"):
        result = _read_result(item, kind, path)
        if result is not None:
            return (Turn("tool", (result,)),)
    if kind in _FROM_CLIENT or kind.endswith("_output"):
        return (Turn("user", (Foreign(kind, item),), more={ITEM: None}),)
    if kind == "additional_tools":
        return (Turn("developer", (Foreign(kind, item),), more={ITEM: None}),)
    return (Turn("assistant", read_output_item(item, path, unsealing=True), joins=True),)


def kind_of(item: dict[str, Any]) -> str | None:
    """An item's type; messages and references may leave it out."""
    kind = item.get("type")
    if isinstance(kind, str):
        return kind
    if "role" in item:
        return "message"
    return "item_reference" if "id" in item else None


def read_output_item(
    item: dict[str, Any], path: str, unsealing: bool = False
) -> tuple[ItemPart, ...]:
    """The parts of an item that a model gave. `unsealing`: a client brings it back, perhaps with
    what another provider signed. Raises `RequestError`."""
    kind = kind_of(item)
    if kind == "message":
        return _assistant_parts(Members(item, path))
    if kind == "function_call":
        return (_read_call(Members(item, path), "function", "arguments"),)
    if kind == "custom_tool_call":
        return (_read_call(Members(item, path), "custom", "input"),)
    if kind == "reasoning":
        return (_read_reasoning(Members(item, path), unsealing),)
    return (Foreign(kind or "item", item),)


def _read_message(item: dict[str, Any], path: str) -> tuple[Turn, ...]:
    message = Members(item, path)
    said = message.needed_text("role")
    role = _ROLES.get(said)
    if role is None:
        raise fault(message.at("role"), "must be user, assistant, system or developer", said)
    if role == "assistant":
        parts = _assistant_parts(message)
        return (Turn(role, parts, joins=True),) if parts else ()
    message.take("type")
    content = read_content(message.take("content"), message.at("content"))
    more = message.rest
    if more.get("status") == "completed":
        del more["status"]
    first = content[0] if content else None
    about = {name: more.pop(name) for name in ("id", "status") if name in more}
    if about and isinstance(first, Text):
        content = (msgspec.structs.replace(first, item=about), *content[1:])
    else:
        more.update(about)
    return (Turn(role, content, more=more),)


def _assistant_parts(message: Members) -> tuple[ItemPart, ...]:
    message.take("type")
    message.take("role")
    given = message.take("content")
    content = read_content([] if given is None else given, message.at("content"))
    about: dict[str, Any] = {}
    for name in ("id", "status"):
        value = message.take(name)
        if value is not None and value != "completed":
            about[name] = value
    phase = message.take("phase")
    parts: list[ItemPart] = []
    begun = False
    for part in content:
        if isinstance(part, Foreign):
            # Content nobody knows is a message of its own: it stands where it stood.
            whole = {"type": "message", "role": "assistant", "content": [part.value]}
            parts.append(Foreign(part.what, whole))
            continue
        if not begun and isinstance(part, Text | Refusal):
            part, begun = _beginning(part, about, phase, message.rest), True
        parts.append(part)
    return tuple(parts)


def _beginning(
    part: Text | Refusal, about: dict[str, Any], phase: Any, rest: dict[str, Any]
) -> Text | Refusal:
    """The first part of a message, with what is said of the message."""
    if isinstance(part, Refusal):
        said = {**about, **rest} if phase is None else {**about, "phase": phase, **rest}
        return Refusal(part.text, said)
    more = dict(part.more)
    if phase is not None:
        more["phase"] = phase
    if rest:
        more["message"] = dict(rest)
    return Text(part.text, more=more, item=about)


def _read_call(item: Members, kind: CallKind, member: str) -> Call:
    item.take("type")
    identity = item.text("id")
    call_id = item.text("call_id") or identity
    if not call_id:
        raise fault(item.at("call_id"), "is missing")
    name = item.needed_text("name")
    given = item.take(member)
    if given is None or isinstance(given, str):
        arguments = given or ""
    else:
        # Some servers give the object itself.
        arguments = encode_json(given).decode()
    if kind == "function" and not arguments.strip():
        arguments = "{}"
    more = item.rest
    if more.get("status") == "completed":
        del more["status"]
    return Call(call_id, name, arguments, kind, item=identity, more=more)


def _read_result(value: dict[str, Any], kind: str, path: str) -> Result | None:
    """None for a result of no call: only the provider knows what that is of."""
    item = Members(value, path)
    item.take("type")
    call_id = item.text("call_id")
    if not call_id:
        return None
    given = item.take("output")
    content: tuple[Content, ...] = () if given is None else read_content(given, item.at("output"))
    parts = [Text(part.text) if isinstance(part, Refusal) else part for part in content]
    identity, name = item.text("id"), item.text("name")
    more = item.rest
    if more.get("status") == "completed":
        del more["status"]
    of: CallKind = "custom" if kind == "custom_tool_call_output" else "function"
    return Result(call_id, tuple(parts), name=name, kind=of, item=identity, more=more)


def _read_reasoning(item: Members, unsealing: bool) -> Thinking:
    item.take("type")
    identity = item.text("id")
    summaries = _texts(item.take("summary"), item.at("summary"))
    raw = _texts(item.take("content"), item.at("content"))
    text = "".join(raw) if raw else BETWEEN_SUMMARIES.join(summaries)
    signature = item.text("encrypted_content") or None
    sealed = unseal(signature) if unsealing else None
    if sealed is not None:
        return Thinking(
            text,
            signature=sealed.signature,
            origin=sealed.origin,
            redacted=sealed.redacted,
            id=sealed.id,
            more=sealed.more,
            calls=sealed.calls,
        )
    more = item.rest
    if more.get("status") == "completed":
        del more["status"]
    if raw:
        more[RAW] = None
    if len(summaries) > 1 or (raw and summaries):
        more["summary"] = summaries
    if len(raw) > 1:
        more["texts"] = raw
    return Thinking(text, signature=signature, origin=NAME, id=identity, more=more)


def _texts(value: Any, path: str) -> list[str]:
    listed = [] if value is None else as_list(value, path)
    return [Members(part, f"{path}[{at}]").needed_text("text") for at, part in enumerate(listed)]


def reply_part(part: ItemPart) -> ItemPart:
    """A part as replies hold it: without what only matters where it is sent again in this dialect,
    and what a stream cannot tell before it ends."""
    if isinstance(part, Thinking):
        kept = {k: v for k, v in part.more.items() if k not in ("summary", "texts", "status")}
        return msgspec.structs.replace(part, more=kept)
    if isinstance(part, Call) and "status" in part.more:
        kept = {k: v for k, v in part.more.items() if k != "status"}
        return msgspec.structs.replace(part, more=kept)
    if isinstance(part, Text | Refusal) and part.item and "status" in part.item:
        kept = {k: v for k, v in part.item.items() if k != "status"}
        return msgspec.structs.replace(part, item=kept)
    return part
