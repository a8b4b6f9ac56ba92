"""Items of a stream, read: what its events say of parts, as events of parts.

Whatever tells a part first begins it; what tells it whole fills in what is missing.
"""

from typing import Any, cast

import msgspec

from reflexarc.wire.dialects.responses.items_in import (
    BETWEEN_SUMMARIES,
    NAME,
    RAW,
    is_marked,
    kind_of,
)
from reflexarc.wire.dialects.responses.replies import read_item_parts
from reflexarc.wire.dialects.responses.streams_state import Growing, Item, Items, objects
from reflexarc.wire.replies import (
    Event,
    PartBegan,
    PartEnded,
    PartGrew,
    PartNoted,
    PartSigned,
    ReplyPart,
)
from reflexarc.wire.turns import Call, Refusal, Text, Thinking

_Value = dict[str, Any]

_CALLS = {"function_call": "arguments", "custom_tool_call": "input"}
_TEXTS = {"output_text": "text", "text": "text", "refusal": "refusal"}
_NOTED = ("annotations", "logprobs")


def _content_part(value: _Value) -> _Value | None:
    """The part of a message that an event holds. Reasoning has parts too, told by other events."""
    part: Any = value.get("part")
    if not isinstance(part, dict):
        return None
    held = cast(_Value, part)
    return held if str(held.get("type")) in _TEXTS else None


def _again(part: ReplyPart) -> ReplyPart:
    """The part that goes on with it, where another came between."""
    if isinstance(part, Text | Refusal):
        return msgspec.structs.replace(part, item=None)
    return part


class PartsReader:
    """Each method takes one event. `events` fill up with what they say; whoever calls empties
    them. Methods raise `MalformedError` on items that cannot be read."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.calls = False
        self.refused = False
        self._items = Items()
        self._next = 0
        self._running: Growing | None = None

    def _begin(self, part: ReplyPart) -> int:
        self._rest()
        at = self._next
        self._next += 1
        self.calls = self.calls or isinstance(part, Call)
        self.refused = self.refused or isinstance(part, Refusal)
        self.events.append(PartBegan(at, part))
        return at

    def _rest(self) -> None:
        """Ends the text or the thinking that is growing."""
        growing = self._running
        if growing is not None:
            self._running = None
            growing.ended = True
            self.events.append(PartEnded(growing.at))

    def _grow(self, growing: Growing, text: str) -> None:
        if not text:
            return
        if growing.ended:
            # Another part has begun since: the rest is one of its own.
            growing.at, growing.ended = self._begin(growing.again), False
            self._running = growing
        growing.seen.append(text)
        self.events.append(PartGrew(growing.at, text))

    def _fill(self, growing: Growing, text: Any) -> None:
        """What is missing of a text that is now told whole."""
        if isinstance(text, str) and text:
            rest = growing.missing(text)
            if rest:
                self._grow(growing, rest)

    # Items.

    def item_added(self, value: _Value) -> None:
        given = value.get("item")
        if not isinstance(given, dict):
            return
        told = cast(_Value, given)
        item = self._items.added(told, value.get("output_index"))
        if item.kind in _CALLS:
            self._begin_call(item, told)

    def item_done(self, value: _Value) -> None:
        given = value.get("item")
        if isinstance(given, dict):
            self.whole_item(cast(_Value, given), value.get("output_index"))

    def whole_item(self, told: _Value, index: Any) -> None:
        item = self._items.matching(told, index)
        if item.done:
            return
        item.done = True
        item.kind = kind_of(told) or item.kind
        if item.kind == "message":
            self._whole_message(item, told)
        elif item.kind in _CALLS:
            self._whole_call(item, told)
        elif item.kind == "reasoning":
            self._whole_thinking(item, told)
        else:
            for part in read_item_parts(told, "item"):
                self.events.append(PartEnded(self._begin(part)))

    def end(self) -> None:
        """The answer is over: what was held back of items that nobody said the end of comes now."""
        for item in self._items.unfinished():
            self._leave(item)
        self._rest()

    def _leave(self, item: Item) -> None:
        if item.held and item.call is None:
            name = item.told.get("name")
            if isinstance(name, str):
                self._begin_call(item, {"call_id": f"call_{item.number}", **item.told})

    # Messages.

    def content_added(self, value: _Value) -> None:
        part = _content_part(value)
        if part is not None:
            self._content(self._items.of(value, "message"), value, part)

    def content_done(self, value: _Value) -> None:
        part = _content_part(value)
        if part is not None:
            item = self._items.of(value, "message")
            self._whole_content(item, value.get("content_index"), part)

    def _content(self, item: Item, value: _Value, part: _Value) -> Growing | None:
        """The growing content that an event is about, begun if it is new."""
        index = value.get("content_index")
        index = index if isinstance(index, int) else 0
        growing = item.contents.get(index)
        if growing is not None:
            return growing
        member = _TEXTS.get(str(part.get("type")))
        if member is None:
            return None
        about = {k: v for k, v in item.told.items() if k != "content"} if not item.contents else {}
        stub = {**about, "type": "message", "role": "assistant", "content": [{**part, member: ""}]}
        begun = read_item_parts(stub, "item")[0]
        if item.contents and isinstance(begun, Text | Refusal):
            begun = msgspec.structs.replace(begun, item=None)
        if isinstance(begun, Text):
            listed = {k: v for k, v in begun.more.items() if k not in _NOTED}
            begun = msgspec.structs.replace(begun, more=listed)
        growing = Growing(self._begin(begun), _again(begun))
        item.contents[index] = growing
        self._running = growing
        self._fill(growing, part.get(member))
        return growing

    def text_delta(self, value: _Value) -> None:
        self._content_delta(value, "output_text")

    def refusal_delta(self, value: _Value) -> None:
        self._content_delta(value, "refusal")

    def _content_delta(self, value: _Value, kind: str) -> None:
        delta = value.get("delta")
        if isinstance(delta, str) and delta:
            item = self._items.of(value, "message")
            growing = self._content(item, value, {"type": kind})
            if growing is not None:
                self._grow(growing, delta)

    def text_done(self, value: _Value) -> None:
        growing = self._content(self._items.of(value, "message"), value, {"type": "output_text"})
        if growing is not None:
            self._fill(growing, value.get("text"))

    def refusal_done(self, value: _Value) -> None:
        growing = self._content(self._items.of(value, "message"), value, {"type": "refusal"})
        if growing is not None:
            self._fill(growing, value.get("refusal"))

    def annotation(self, value: _Value) -> None:
        growing = self._content(self._items.of(value, "message"), value, {"type": "output_text"})
        if growing is not None and value.get("annotation") is not None:
            self._note(growing, "annotations", value["annotation"])

    def _note(self, growing: Growing, name: str, value: Any) -> None:
        growing.noted[name] = growing.noted.get(name, 0) + 1
        self.events.append(PartNoted(growing.at, name, value))

    def _whole_content(self, item: Item, index: Any, part: _Value) -> None:
        growing = self._content(item, {"content_index": index}, part)
        if growing is None:
            return
        self._fill(growing, part.get(_TEXTS[str(part["type"])]))
        if growing.ended:
            return
        for name in _NOTED:
            listed: Any = part.get(name)
            if isinstance(listed, list):
                for value in cast("list[Any]", listed)[growing.noted.get(name, 0) :]:
                    self._note(growing, name, value)
        if self._running is growing:
            self._rest()

    def _whole_message(self, item: Item, told: _Value) -> None:
        content: Any = told.get("content")
        self._items.learn(item, {**item.told, **told})
        if isinstance(content, str):
            content = [{"type": "output_text", "text": content}]
        for index, held in objects(content):
            if str(held.get("type")) in _TEXTS:
                self._whole_content(item, index, held)
                continue
            stub = {"type": "message", "role": "assistant", "content": [held]}
            for other in read_item_parts(stub, "item"):
                self.events.append(PartEnded(self._begin(other)))

    # Calls.

    def _begin_call(self, item: Item, told: _Value) -> None:
        if item.call is not None or not isinstance(told.get("name"), str):
            return
        if not isinstance(told.get("call_id") or told.get("id"), str):
            return
        member = _CALLS.get(item.kind, "arguments")
        stub = {**told, "type": item.kind, member: ""}
        call = read_item_parts(stub, "item")[0]
        if isinstance(call, Call):
            call = msgspec.structs.replace(call, arguments="")
        item.call = Growing(self._begin(call), call)
        given = told.get(member)
        if isinstance(given, str):
            self._fill(item.call, given)
        held, item.held = "".join(item.held), []
        self._grow(item.call, held)

    def function_delta(self, value: _Value) -> None:
        self._call_delta(value, "function_call")

    def custom_delta(self, value: _Value) -> None:
        self._call_delta(value, "custom_tool_call")

    def _call_delta(self, value: _Value, kind: str) -> None:
        delta = value.get("delta")
        if not isinstance(delta, str) or not delta:
            return
        item = self._items.of(value, kind)
        if item.call is None:
            item.held.append(delta)
        elif not item.done:
            self._grow(item.call, delta)

    def function_done(self, value: _Value) -> None:
        self._call_told(self._items.of(value, "function_call"), value, "arguments")

    def custom_done(self, value: _Value) -> None:
        self._call_told(self._items.of(value, "custom_tool_call"), value, "input")

    def _call_told(self, item: Item, value: _Value, member: str) -> None:
        if item.done:
            return
        name, arguments = value.get("name"), value.get(member)
        if item.call is None:
            # Where its name comes only at the end, what is told whole is held till then.
            if isinstance(arguments, str):
                item.held = [arguments]
            if isinstance(name, str):
                item.told = {**item.told, "name": name}
                self._begin_call(item, item.told)
        else:
            self._fill(item.call, arguments)

    def _whole_call(self, item: Item, told: _Value) -> None:
        member = _CALLS[item.kind]
        part = read_item_parts(told, "item")[0]
        if not isinstance(part, Call):
            return
        # Read as a whole, so that an object in place of its text is text.
        arguments = part.arguments if told.get(member) else ""
        if item.call is None:
            if arguments:
                item.held = []
            self._begin_call(item, {**told, member: arguments})
        elif arguments:
            self._fill(item.call, arguments)
        if item.call is not None:
            item.call.ended = True
            self.events.append(PartEnded(item.call.at))

    # Reasoning.

    def summary_delta(self, value: _Value) -> None:
        delta = value.get("delta")
        if not isinstance(delta, str) or not delta:
            return
        item = self._items.of(value, "reasoning")
        growing = self._thinking(item, raw=False)
        if growing is None:
            return
        index = value.get("summary_index")
        if isinstance(index, int) and index != item.summary:
            if growing.seen:
                delta = BETWEEN_SUMMARIES + delta
            item.summary = index
        self._grow(growing, delta)

    def reasoning_delta(self, value: _Value) -> None:
        delta = value.get("delta")
        if isinstance(delta, str) and delta:
            growing = self._thinking(self._items.of(value, "reasoning"), raw=True)
            if growing is not None:
                self._grow(growing, delta)

    def _thinking(self, item: Item, raw: bool) -> Growing | None:
        """The thinking of an item. What is told both raw and in summary is read as it began."""
        if item.thinking is None:
            identity = item.told.get("id")
            begun = Thinking(
                "",
                origin=NAME,
                id=identity if isinstance(identity, str) else None,
                more={RAW: None} if raw else {},
            )
            item.thinking, item.raw = Growing(self._begin(begun), begun), raw
            self._running = item.thinking
        return item.thinking if item.raw is raw else None

    def _whole_thinking(self, item: Item, told: _Value) -> None:
        self._items.learn(item, {**item.told, **told})
        part = read_item_parts(told, "item")[0]
        if not isinstance(part, Thinking):
            return
        if item.thinking is None:
            begun = msgspec.structs.replace(part, text="", signature=None)
            item.thinking, item.raw = Growing(self._begin(begun), begun), is_marked(part.more, RAW)
            self._running = item.thinking
        if item.raw is (is_marked(part.more, RAW)):
            self._fill(item.thinking, part.text)
        if part.signature is not None and item.thinking.ended:
            # Another part has begun since: the signature comes in one of its own.
            late = msgspec.structs.replace(part, text="")
            self.events.append(PartEnded(self._begin(late)))
        elif part.signature is not None:
            self.events.append(PartSigned(item.thinking.at, part.signature, NAME))
        if self._running is item.thinking:
            self._rest()
