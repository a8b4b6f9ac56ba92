"""What of a conversation may go, kept up to date as it grows: results that a later read or write
made out of date, contents that stand there twice, images past a budget. Decides nothing."""

from collections import deque
from typing import Literal

import msgspec

from reflexarc.context.pruning_files import Touch, touched
from reflexarc.context.pruning_items import CallSaid, Cuttable, Item, Path

Why = Literal["read_again", "written_since", "repeated", "image"]


class ImageBudget(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The newest images stay as long as they fit both, whole; the first that does not, and all
    older ones, may go."""

    tokens: int = 6_000
    bytes: int = 4 * 1024 * 1024

    def __post_init__(self) -> None:
        if self.tokens < 0 or self.bytes < 0:
            raise ValueError("a budget of images must not be negative")


class Candidate(msgspec.Struct, frozen=True):
    """`value` of the item `at` may go. `other` is the id of the call whose result says the same,
    or said it later."""

    at: int
    value: Cuttable
    why: Why
    other: str = ""


class _Shown(msgspec.Struct):
    """An output that is still there, and which part of a file it shows."""

    at: int
    value: Cuttable
    part: str


class Found:
    """`add` takes the items of a conversation in their order; `candidates` are those so far."""

    def __init__(self, budget: ImageBudget) -> None:
        self._budget = budget
        self._open: dict[str, CallSaid] = {}
        self._unnamed: deque[CallSaid] = deque()
        self._reads: dict[str, list[_Shown]] = {}
        self._firsts: dict[bytes, tuple[int, Cuttable]] = {}
        self._outputs: dict[tuple[int, Path], Candidate] = {}
        self._waiting: dict[tuple[int, Path], Candidate] = {}
        self._images: list[tuple[int, Cuttable]] = []
        self._gone: dict[tuple[int, Path], Candidate] = {}

    def add(self, at: int, item: Item) -> None:
        for call in item.calls:
            if call.id:
                self._open[call.id] = call
            else:
                self._unnamed.append(call)
        for value in item.outputs:
            self._output(at, value)
        if item.images:
            self._images += [(at, image) for image in item.images]
            self._count_images()

    def candidates(self) -> list[Candidate]:
        """In the order of the conversation, but for those that went. An image inside an output
        that may go, or did, is not named."""
        found = [
            one
            for one in self._waiting.values()
            if one.why != "image"
            or not any((one.at, one.value.path[:end]) in self._outputs for end in range(1, 6))
        ]
        return sorted(found, key=lambda one: (one.at, _order(one)))

    def went(self, at: int, path: Path) -> None:
        """It is cut: no candidate any more."""
        self._waiting.pop((at, path), None)

    def _may_go(self, candidate: Candidate) -> None:
        key = (candidate.at, candidate.value.path)
        known = self._gone if candidate.why == "image" else self._outputs
        if key not in known:
            known[key] = self._waiting[key] = candidate

    def _output(self, at: int, value: Cuttable) -> None:
        call = self._call_of(value)
        if call is None or value.failed:
            return
        touches = touched(call)
        for touch in touches:
            self._supersede(touch, call, value)
        first = self._firsts.get(value.digest)
        if first is not None and not value.shows and (first[0], first[1].path) not in self._outputs:
            self._may_go(Candidate(at, value, "repeated", first[1].call_id))
        else:
            self._firsts[value.digest] = (at, value)
        for touch in touches:
            if touch.kind == "read":
                shown = _Shown(at, value, touch.part)
                self._reads.setdefault(touch.path, []).append(shown)

    def _supersede(self, touch: Touch, by: CallSaid, value: Cuttable) -> None:
        """Reads of a file that this call writes, or reads again. Where it shows the same as before
        it is the later one that may go, which refers to the earlier."""
        left: list[_Shown] = []
        for one in self._reads.get(touch.path, []):
            if touch.kind == "write":
                self._out_of_date(one, "written_since", by)
            elif touch.part in ("", one.part) and one.value.digest != value.digest:
                self._out_of_date(one, "read_again", by)
            else:
                left.append(one)
        self._reads[touch.path] = left

    def _out_of_date(self, one: _Shown, why: Why, by: CallSaid) -> None:
        self._may_go(Candidate(one.at, one.value, why, by.id))

    def _call_of(self, value: Cuttable) -> CallSaid | None:
        if value.call_id:
            return self._open.pop(value.call_id, None)
        for call in self._unnamed:
            if call.name == value.name:
                self._unnamed.remove(call)
                return call
        return None

    def _count_images(self) -> None:
        tokens = size = 0
        fits = True
        for at, image in reversed(self._images):
            tokens += image.tokens
            size += image.size
            fits = fits and tokens <= self._budget.tokens and size <= self._budget.bytes
            if not fits:
                self._may_go(Candidate(at, image, "image"))


def _order(one: Candidate) -> list[str]:
    return [f"{part:09d}" if isinstance(part, int) else part for part in one.value.path]
