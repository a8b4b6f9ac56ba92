"""Items of an answer, made of its parts: for the whole answer, and piece by piece for a stream."""

from typing import Any, cast

from reflexarc.wire.dialects.responses.frame import Frame
from reflexarc.wire.dialects.responses.items_in import NAME
from reflexarc.wire.dialects.responses.items_out import call_item, reasoning_item
from reflexarc.wire.losses import Losses
from reflexarc.wire.replies import ReplyPart
from reflexarc.wire.sealed import Sealed, seal
from reflexarc.wire.turns import Call, Foreign, Media, Refusal, Text, Thinking


class ItemMaker:
    def __init__(self, frame: Frame, losses: Losses) -> None:
        self._frame = frame
        self._losses = losses

    def begins_message(self, part: Text | Refusal) -> bool:
        """Whether a part begins a message of its own, one being open."""
        return self._frame.own and part.item is not None

    def is_nothing(self, part: Text | Refusal) -> bool:
        return not part.text and not self._frame.own

    def message(self, part: Text | Refusal, index: int, status: str) -> dict[str, Any]:
        """Without content as yet."""
        about = dict(part.item or {}) if self._frame.own else {}
        identity = about.pop("id", None) or self._frame.item_id("msg", index)
        item: dict[str, Any] = {"id": identity, "type": "message", "status": status}
        item["role"] = "assistant"
        item["content"] = []
        item.update(about)
        if self._frame.own and isinstance(part, Text):
            if "phase" in part.more:
                item["phase"] = part.more["phase"]
            item.update(part.more.get("message") or {})
        return item

    def content(self, part: Text | Refusal) -> dict[str, Any]:
        if isinstance(part, Refusal):
            return {"type": "refusal", "refusal": part.text}
        written: dict[str, Any] = {"type": "output_text", "text": part.text}
        written.update(annotations=[], logprobs=[])
        if not self._frame.own:
            self._losses.lose_all(part.more, "content.")
            return written
        kept = {k: v for k, v in part.more.items() if k not in ("phase", "message")}
        return {**written, **kept}

    def thinking(self, part: Thinking, index: int) -> dict[str, Any]:
        identity = part.id if part.origin == NAME and part.id else self._frame.item_id("rs", index)
        return reasoning_item(part, identity, self._signature(part))

    def _signature(self, part: Thinking) -> str | None:
        """Another dialect's thinking comes back as what it was, signed or not: some providers
        want it beside their calls."""
        if part.origin == NAME:
            return part.signature
        if not part.origin:
            self._losses.lose_all(part.more, "content.thinking.")
            return part.signature
        return seal(Sealed(part.origin, part.signature, part.redacted, id=part.id, more=part.more))

    def call(self, part: Call, index: int, status: str) -> dict[str, Any]:
        own = self._frame.own
        kind = "ctc" if part.kind == "custom" else "fc"
        identity = part.item if own and part.item else self._frame.item_id(kind, index)
        item = {**call_item(part, part.id, identity), "status": status}
        if own:
            item.update((k, v) for k, v in part.more.items() if v is not None)
        else:
            self._losses.lose_all(part.more, "tool_calls.")
        return item

    def signatures(self, calls: list[Call], index: int) -> dict[str, Any]:
        """What brings back the signatures of calls: all of one origin."""
        held = {call.id: call.signature for call in calls if call.signature is not None}
        return {
            "id": self._frame.item_id("rs", index),
            "type": "reasoning",
            "summary": [],
            "encrypted_content": seal(Sealed(calls[0].origin, calls=held)),
        }

    def other(self, part: Media | Foreign, index: int) -> dict[str, Any] | None:
        """None where it cannot be said."""
        if isinstance(part, Foreign):
            if self._frame.own:
                return part.value
            self._losses.lose(f"content.{part.what}")
            return None
        if part.kind != "image" or part.data is None:
            self._losses.lose(f"content.{part.kind}")
            return None
        self._losses.lose_all(part.more, f"content.{part.kind}.")
        return {
            "id": self._frame.item_id("ig", index),
            "type": "image_generation_call",
            "status": "completed",
            "result": part.data,
        }

    def whole(self, parts: tuple[ReplyPart, ...], cut: bool) -> list[dict[str, Any]]:
        """All items. `cut`: the last of them did not come to its end."""
        items: list[dict[str, Any]] = []
        content: list[dict[str, Any]] | None = None
        signed = _signed_by_others(parts)
        for part in parts:
            if isinstance(part, Text | Refusal):
                if self.is_nothing(part):
                    continue
                if content is None or self.begins_message(part):
                    message = self.message(part, len(items), "completed")
                    items.append(message)
                    content = cast("list[dict[str, Any]]", message["content"])
                content.append(self.content(part))
                continue
            content = None
            if isinstance(part, Thinking):
                items.append(self.thinking(part, len(items)))
            elif isinstance(part, Call):
                of_origin = signed.pop(part.origin, None) if part.signature is not None else None
                if of_origin is not None:
                    items.append(self.signatures(of_origin, len(items)))
                item = self.call(part, len(items), "completed")
                if part.kind == "function" and not part.arguments.strip():
                    item["arguments"] = "{}"
                items.append(item)
            else:
                item = self.other(part, len(items))
                if item is not None:
                    items.append(item)
        if cut and items and not isinstance(parts[-1], Foreign) and "status" in items[-1]:
            items[-1]["status"] = "incomplete"
        return items


def _signed_by_others(parts: tuple[ReplyPart, ...]) -> dict[str, list[Call]]:
    signed: dict[str, list[Call]] = {}
    for part in parts:
        if isinstance(part, Call) and part.signature is not None and part.origin != NAME:
            signed.setdefault(part.origin, []).append(part)
    return signed
