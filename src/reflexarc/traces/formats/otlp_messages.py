"""What spans tell of prompts and answers: messages in parts, flat lists, bodies of requests, the
events of older instrumentations."""

from collections.abc import Iterator
from typing import Any

from reflexarc.steps.errors import InputError
from reflexarc.steps.prompt import Piece, Prompt
from reflexarc.traces.formats.chat_pieces import called, message_piece, tool_pieces, words
from reflexarc.traces.formats.otlp_spans import Span, structured, unflattened
from reflexarc.traces.loose import Table, encoded, table, tables, text
from reflexarc.wire.json import split_object
from reflexarc.wire.pieces import pieces_of

_OLD_EVENTS = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}
_PROMPT = ("gen_ai.input.messages", "gen_ai.prompt", "ai.prompt.messages")
_CHOICE = "gen_ai.choice"
_NAMES = frozenset({"event.name", "_observed"})


def prompt_of(span: Span) -> Prompt | None:
    """None where the log has no text of it."""
    body = _body(span)
    pieces = tuple(body or _gen_ai(span) or _flat(span) or _old(span))
    # tools are told of apart from messages, and often not at all
    has_tools = any(piece.kind == "tool" for piece in pieces)
    uses_tools = any(piece.role == "tool" for piece in pieces) or bool(calls_of(span))
    return Prompt(pieces, complete=bool(body) or has_tools or not uses_tools) if pieces else None


def calls_of(span: Span) -> list[tuple[str, str]]:
    """Name and id of the calls in its answer."""
    found: list[tuple[str, str]] = []
    for message in _answers(span):
        found += [(name, identity) for name, identity, _ in called(message)]
        for part in tables(message.get("parts")):
            if part.get("type") == "tool_call":
                found.append((text(part.get("name")), text(part.get("id"))))
    return found


def words_of(span: Span) -> str:
    said: list[str] = []
    for message in _answers(span):
        said.append(words(message))
        said += [
            text(part.get("content"))
            for part in tables(message.get("parts"))
            if part.get("type") == "text"
        ]
    return "\n".join(one for one in said if one)


def _answers(span: Span) -> list[Table]:
    given = structured(span.get("gen_ai.output.messages", "gen_ai.completion"))
    found = tables(given)
    if not found:
        found = _messages(unflattened(span.attributes, "llm.output_messages"))
    if not found:
        found = tables(unflattened(span.attributes, "gen_ai.completion"))
    if not found and span.get("ai.response.text", "ai.response.toolCalls") is not None:
        calls = tables(structured(span.get("ai.response.toolCalls")))
        found = [
            {
                "content": text(span.get("ai.response.text")),
                "tool_calls": [
                    {"name": one.get("toolName"), "id": one.get("toolCallId")} for one in calls
                ],
            }
        ]
    if not found:
        choices = (one for one in span.more if one.get("event.name") == _CHOICE)
        found = [table(structured(one.get("message"))) or one for one in choices]
    return found


def _body(span: Span) -> tuple[Piece, ...]:
    """The request itself, which some instrumentations keep: the best there is."""
    given = table(structured(span.get("input.value")))
    if not isinstance(given.get("messages"), list) and not isinstance(given.get("input"), list):
        return ()
    dialect = "chat"
    if "input" in given:
        dialect = "responses"
    elif "system" in given or any("input_schema" in one for one in tables(given.get("tools"))):
        dialect = "messages"
    try:
        return pieces_of(dialect, split_object(encoded(given)))
    except InputError:
        return ()


def _gen_ai(span: Span) -> list[Piece]:
    messages = tables(structured(span.get(*_PROMPT)))
    if not messages:
        return []
    pieces = list(tool_pieces(structured(span.get("gen_ai.tool.definitions", "ai.prompt.tools"))))
    instructions = structured(span.get("gen_ai.system_instructions"))
    if instructions:
        pieces.append(Piece("system", "system_instructions", encoded(instructions), "system"))
    return pieces + list(_placed(messages, "messages"))


def _flat(span: Span) -> list[Piece]:
    messages = _messages(unflattened(span.attributes, "llm.input_messages"))
    if not messages:
        # OpenLLMetry's flat names
        messages = tables(unflattened(span.attributes, "gen_ai.prompt"))
    if not messages:
        return []
    tools = [
        structured(table(table(one).get("tool")).get("json_schema"))
        for one in unflattened(span.attributes, "llm.tools")
    ]
    tools += unflattened(span.attributes, "llm.request.functions")
    return [*tool_pieces([one for one in tools if one]), *_placed(messages, "messages")]


def _old(span: Span) -> list[Piece]:
    messages: list[Table] = []
    for event in span.more:
        role = _OLD_EVENTS.get(text(event.get("event.name")))
        if role is not None:
            own = {name: one for name, one in event.items() if name not in _NAMES}
            messages.append({"role": role, **own})
    return list(_placed(messages, "messages"))


def _placed(messages: list[Table], path: str) -> Iterator[Piece]:
    """Instructions first, as providers read them."""
    pieces = [message_piece(one, f"{path}[{at}]") for at, one in enumerate(messages)]
    yield from (piece for piece in pieces if piece.kind == "system")
    yield from (piece for piece in pieces if piece.kind != "system")


def _messages(given: list[Any]) -> list[Table]:
    """OpenInference wraps each message, and each call in it, in an object of its own."""
    found: list[Table] = []
    for one in given:
        message = dict(table(table(one).get("message")))
        calls = [table(call.get("tool_call")) for call in tables(message.get("tool_calls"))]
        if calls:
            message["tool_calls"] = calls
        contents = tables(message.pop("contents", None))
        if contents and "content" not in message:
            message["content"] = [table(part.get("message_content")) for part in contents]
        if message:
            found.append(message)
    return found
