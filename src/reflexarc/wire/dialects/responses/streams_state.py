"""What is known of a stream's items so far, found again by whatever an event calls them."""

from typing import Any, cast

from reflexarc.wire.dialects.responses.items_in import kind_of
from reflexarc.wire.replies import ReplyPart


class Growing:
    """A part that grows. `again`: the part to begin with what still comes after it ended."""

    def __init__(self, at: int, again: ReplyPart) -> None:
        self.at = at
        self.again = again
        self.ended = False
        self.seen: list[str] = []
        self.noted: dict[str, int] = {}

    def missing(self, whole: str) -> str:
        """What has not been seen of a text that is told whole."""
        seen = "".join(self.seen)
        return whole[len(seen) :] if whole.startswith(seen) else ""


class Item:
    """One item. `told`: its members, as far as they came; `held`: a call's arguments that came
    before its name; `raw`, `summary`: of its thinking."""

    def __init__(self, number: int, kind: str, told: dict[str, Any]) -> None:
        self.number = number
        self.kind = kind
        self.told = told
        self.done = False
        self.contents: dict[int, Growing] = {}
        self.call: Growing | None = None
        self.held: list[str] = []
        self.thinking: Growing | None = None
        self.raw = False
        self.summary = 0

    @property
    def is_shown(self) -> bool:
        return bool(self.contents) or self.call is not None or self.thinking is not None


class Items:
    """Events name an item by id, by its place in the output, or not at all. Some servers give a new
    id with every event, others the same place to every item: the id counts where it is known."""

    def __init__(self) -> None:
        self._all: list[Item] = []
        self._by_id: dict[str, Item] = {}
        self._by_index: dict[int, Item] = {}
        self._by_call: dict[str, list[Item]] = {}

    def added(self, told: dict[str, Any], index: Any) -> Item:
        """The item that an `added` event is about: a new one, unless it comes twice, or after
        deltas of its own."""
        known = self._known(told, index)
        if known is not None and not known.done and self._is_same(known, told):
            self.learn(known, {**told, **known.told})
            return known
        return self._new(kind_of(told) or "", told, index)

    def of(self, event: dict[str, Any], kind: str) -> Item:
        """The item that a delta is about; a new one of `kind` where it has not been heard of."""
        identity, index = event.get("item_id"), event.get("output_index")
        item: Item | None = None
        if isinstance(identity, str):
            item = self._by_id.get(identity)
        if item is None and isinstance(index, int):
            item = self._by_index.get(index)
        if item is None and not isinstance(identity, str) and not isinstance(index, int):
            item = self._all[-1] if self._all else None
        if item is not None and item.kind in (kind, ""):
            item.kind = kind
            return item
        told = {"id": identity} if isinstance(identity, str) else {}
        return self._new(kind, told, index)

    def matching(self, told: dict[str, Any], index: Any) -> Item:
        """The item that is now told whole."""
        known = self._known(told, index)
        if known is not None:
            return known
        return self._new(kind_of(told) or "", told, index)

    def unfinished(self) -> list[Item]:
        return [item for item in self._all if not item.done]

    def _known(self, told: dict[str, Any], index: Any) -> Item | None:
        identity, call_id = told.get("id"), told.get("call_id")
        if isinstance(identity, str) and identity in self._by_id:
            return self._by_id[identity]
        if isinstance(call_id, str):
            for item in self._by_call.get(call_id, ()):
                if item.kind == told.get("type"):
                    return item
        if isinstance(index, int):
            item = self._by_index.get(index)
            if item is not None and self._is_same(item, told):
                return item
        return None

    def _is_same(self, item: Item, told: dict[str, Any]) -> bool:
        """Whether nothing speaks against it but an id."""
        if item.kind not in ("", kind_of(told)):
            return False
        before, now = item.told.get("call_id"), told.get("call_id")
        return before is None or now is None or before == now

    def _new(self, kind: str, told: dict[str, Any], index: Any) -> Item:
        item = Item(len(self._all), kind, told)
        self._all.append(item)
        self._note_call(item)
        identity = told.get("id")
        if isinstance(identity, str):
            self._by_id[identity] = item
        if isinstance(index, int):
            self._by_index[index] = item
        return item

    def learn(self, item: Item, told: dict[str, Any]) -> None:
        """What is now known of an item."""
        before, item.told = item.told.get("call_id"), told
        if before != told.get("call_id"):
            self._note_call(item)

    def _note_call(self, item: Item) -> None:
        call_id = item.told.get("call_id")
        if isinstance(call_id, str):
            self._by_call.setdefault(call_id, []).append(item)


def objects(value: Any) -> list[tuple[int, dict[str, Any]]]:
    """The objects of a list, with their places."""
    listed = cast("list[Any]", value) if isinstance(value, list) else []
    return [
        (at, cast("dict[str, Any]", held))
        for at, held in enumerate(listed)
        if isinstance(held, dict)
    ]
