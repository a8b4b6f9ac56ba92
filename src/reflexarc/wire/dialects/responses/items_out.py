"""Turns, written as the items of `input`.

Normal forms: a message's type is told; content that is one plain text is a string, but for the
model's, whose parts are listed and whose status is told; a result that is one plain text is a
string. Statuses `completed` of other items are left out.
"""

from collections.abc import Sequence
from typing import Any, cast

from reflexarc.wire.dialects.responses.content_out import ContentWriter
from reflexarc.wire.dialects.responses.items_in import ITEM, NAME, RAW, is_marked
from reflexarc.wire.dialects.responses.reading import INSTRUCTIONS
from reflexarc.wire.ids import IdMap
from reflexarc.wire.losses import Losses
from reflexarc.wire.turns import (
    Call,
    CallKind,
    Foreign,
    Media,
    Part,
    Refusal,
    Result,
    Text,
    Thinking,
    Turn,
)


class ItemsWriter:
    """For the turns of one request. `dialect` is the one it came in."""

    def __init__(self, dialect: str, losses: Losses, ids: IdMap) -> None:
        self._own = dialect == NAME
        self._losses = losses
        self._ids = ids
        self._content = ContentWriter(dialect, self._own, losses)
        self._kinds: dict[str, CallKind] = {}

    def write(self, turns: Sequence[Turn]) -> tuple[str | None, list[dict[str, Any]]]:
        """`instructions` and `input`. A system turn that stands first and alone is instructions."""
        instructions, turns = self._instructions(turns)
        items: list[dict[str, Any]] = []
        for turn in turns:
            if turn.name is not None:
                self._losses.lose("messages.name")
            if turn.role == "assistant":
                items.extend(self._assistant(turn.parts))
            elif turn.role == "tool":
                items.extend(self._results(turn.parts))
            else:
                items.extend(self._message(turn))
        return instructions, items

    def _instructions(self, turns: Sequence[Turn]) -> tuple[str | None, Sequence[Turn]]:
        first = turns[0] if turns else None
        if first is None or first.role != "system":
            return None, turns
        part = first.parts[0] if len(first.parts) == 1 else None
        if not isinstance(part, Text):
            return None, turns
        told = is_marked(first.more, INSTRUCTIONS)
        alone = len(turns) < 2 or turns[1].role not in ("system", "developer")
        if not told and (self._own or not alone or first.name is not None):
            return None, turns
        # Written for what its marks lose: that is named.
        self._content.write(part, "input_text")
        if not told:
            self._content.kept(first.more, "messages")
        return part.text, turns[1:]

    def _message(self, turn: Turn) -> list[dict[str, Any]]:
        if is_marked(turn.more, ITEM):
            return self._results(turn.parts)
        content: list[dict[str, Any]] = []
        for part in turn.parts:
            if isinstance(part, Refusal):
                content.append({"type": "input_text", "text": part.text})
            elif isinstance(part, Text | Media | Foreign):
                written = self._content.write(part, "input_text")
                if written is not None:
                    content.append(written)
        if not content and (turn.parts or not self._own):
            return []  # all of it was lost, and is named
        message: dict[str, Any] = {"type": "message", "role": turn.role, "content": content}
        if len(content) == 1 and _is_plain(content[0]):
            message["content"] = content[0]["text"]
        first = turn.parts[0] if turn.parts else None
        if self._own and isinstance(first, Text):
            message.update(first.item or {})
        message.update(self._content.kept(turn.more, "messages"))
        return [message]

    def _assistant(self, parts: Sequence[Part]) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = []
        open_content: list[dict[str, Any]] | None = None
        for part in parts:
            if isinstance(part, Text | Refusal | Media):
                begins = not isinstance(part, Media) and part.item is not None
                written = self._said(part)
                if written is None:
                    continue
                if open_content is None or begins:
                    message = self._beginning(part)
                    items.append(message)
                    open_content = cast("list[dict[str, Any]]", message["content"])
                open_content.append(written)
                continue
            item = self._item(part)
            if item is not None:
                items.append(item)
                open_content = None
        return items

    def _said(self, part: Text | Refusal | Media) -> dict[str, Any] | None:
        if isinstance(part, Refusal):
            return {"type": "refusal", "refusal": part.text}
        if isinstance(part, Media):
            if self._own:
                return self._content.write(part, "output_text")
            self._losses.lose(f"content.{part.kind}")
            return None
        if not part.text and not self._own:
            return None
        written = self._content.write(part, "output_text")
        if written is not None:
            written.pop("phase", None)
            written.pop("message", None)
        return written

    def _beginning(self, part: Text | Refusal | Media) -> dict[str, Any]:
        message: dict[str, Any] = {"type": "message", "role": "assistant"}
        message["status"] = "completed"
        message["content"] = []
        if not self._own or isinstance(part, Media):
            return message
        message.update(part.item or {})
        if isinstance(part, Text):
            if "phase" in part.more:
                message["phase"] = part.more["phase"]
            message.update(part.more.get("message") or {})
        return message

    def _item(self, part: Part) -> dict[str, Any] | None:
        if isinstance(part, Thinking):
            return self._thinking(part)
        if isinstance(part, Call):
            return self._call(part)
        if isinstance(part, Foreign):
            if self._own:
                return part.value
            self._losses.lose(f"content.{part.what}")
        return None

    def _thinking(self, part: Thinking) -> dict[str, Any] | None:
        signed = part.signature is not None or part.redacted
        if signed and part.origin != NAME:
            self._losses.lose(f"content.thinking (signed by {part.origin})")
            return None
        if part.origin == NAME:
            return reasoning_item(part, part.id, part.signature)
        # Text alone is refused: an item's `content` must be empty where nothing was encrypted.
        if part.text:
            self._losses.lose("content.thinking (unsigned)")
        return None

    def _call(self, part: Call) -> dict[str, Any]:
        self._kinds[part.id] = part.kind
        if part.cache is not None:
            self._losses.lose("cache_control")
        if part.signature is not None:
            self._losses.lose(f"tool_calls.signature (signed by {part.origin})")
        item = call_item(part, self._ids.out(part.id), part.item if self._own else None)
        item.update(self._content.kept(part.more, "tool_calls"))
        return item

    def _results(self, parts: Sequence[Part]) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = []
        for part in parts:
            if isinstance(part, Result):
                items.append(self._result(part))
            elif isinstance(part, Foreign):
                if self._own:
                    items.append(part.value)
                else:
                    self._losses.lose(f"content.{part.what}")
        return items

    def _result(self, part: Result) -> dict[str, Any]:
        if part.is_error:
            self._losses.lose("tool_result.is_error")
        if part.cache is not None:
            self._losses.lose("cache_control")
        content = [self._content.write(held, "input_text", "tool_result") for held in part.parts]
        output = [written for written in content if written is not None]
        # Other dialects do not say of what kind of call a result is.
        kind = part.kind if self._own else self._kinds.get(part.call_id, part.kind)
        said: Any = output
        if not output:
            said = ""
        elif len(output) == 1 and _is_plain(output[0]):
            said = output[0]["text"]
        item: dict[str, Any] = {
            "type": "custom_tool_call_output" if kind == "custom" else "function_call_output",
            "call_id": self._ids.out(part.call_id),
            "output": said,
        }
        if self._own and part.item is not None:
            item["id"] = part.item
        item.update(self._content.kept(part.more, "tool_result"))
        return item


def call_item(part: Call, call_id: str, identity: str | None) -> dict[str, Any]:
    custom = part.kind == "custom"
    item: dict[str, Any] = {"type": "custom_tool_call" if custom else "function_call"}
    if identity is not None:
        item["id"] = identity
    item["call_id"] = call_id
    item["name"] = part.name
    item["input" if custom else "arguments"] = part.arguments
    return item


def reasoning_item(part: Thinking, identity: str | None, signature: str | None) -> dict[str, Any]:
    """`signature` as it is to stand there. For thinking of this dialect its forms are put back."""
    more = dict(part.more) if part.origin == NAME else {}
    is_raw = is_marked(more, RAW)
    more.pop(RAW, None)
    texts: Any = more.pop("texts", None)
    summaries: Any = more.pop("summary", None)
    if summaries is None:
        summaries = [part.text] if part.text and not is_raw else []
    item: dict[str, Any] = {"type": "reasoning"}
    if identity is not None:
        item["id"] = identity
    item["summary"] = [{"type": "summary_text", "text": text} for text in summaries]
    if is_raw:
        item["content"] = [{"type": "reasoning_text", "text": t} for t in texts or [part.text]]
    if signature is not None:
        item["encrypted_content"] = signature
    item.update(more)
    return item


def _is_plain(part: dict[str, Any]) -> bool:
    return part.get("type") == "input_text" and len(part) == 2
