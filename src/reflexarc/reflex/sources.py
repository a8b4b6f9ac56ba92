"""Where the arguments of each tool come from, counted over recorded calls.

For every (tool, argument): the slots its value was found in, how often, and among how many
others; the constants it takes; whether it may be absent. Everything that is kept as text must have
occurred in at least three tasks, else the ids of one task, run several times, would look like
constants; and nothing is kept that is personal or a secret (`private.py`).
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Literal, cast

import msgspec

from reflexarc.provenance.words import plain_text
from reflexarc.reflex.context import Context
from reflexarc.reflex.made_values import PatternLearner
from reflexarc.reflex.private import Private
from reflexarc.reflex.schema_choices import MAX_CHOICES
from reflexarc.reflex.sensitive import MIN_TASKS, personal_field
from reflexarc.reflex.written import Written, WrittenAs, as_list, written_as
from reflexarc.steps import ToolCall

Kind = Literal["string", "integer", "number", "boolean", "null", "list", "objects", "object"]

MIN_CONSTANT_TASKS = MIN_TASKS
_MIN_CONSTANT_SHARE = 0.05
MAX_CONSTANTS = 8
MAX_SLOTS = 25
MAX_PROJECTIONS = 3
_MIN_HITS = 2
_MIN_HIT_RATE = 0.03
_MIN_PRECISION = 0.002
_RARE_ARGUMENT = 0.02
_MAX_CONSTANT_CHARS = 400


class Slot(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A slot an argument is filled from. `hit_rate`: the share of calls whose value stood there;
    `precision`: hits over all distinct values that stood there."""

    name: str
    hit_rate: float
    precision: float


class Constant(msgspec.Struct, frozen=True, forbid_unknown_fields=True, dict=True):
    """A value an argument takes irrespective of the conversation; `share` of the tasks."""

    value: Any
    share: float

    @cached_property
    def text(self) -> str:
        """The value as text, as candidates are compared by."""
        return plain_text(self.value)


class Argument(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is known about one argument of one tool. `found_share`: of its values, those that stood
    anywhere in the conversation before the call; `written`: how its lists are written as text,
    where they are."""

    tool: str
    name: str
    index: int
    kind: Kind
    item_kind: Kind
    slots: tuple[Slot, ...]
    constants: tuple[Constant, ...]
    absent_share: float
    projections: tuple[tuple[str, ...], ...]
    found_share: float = 1.0
    written: tuple[WrittenAs, ...] = ()


class Tool(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is known about one tool: how often it was called, in how many tasks, its arguments in
    the order they are filled (those that identify an object first)."""

    name: str
    calls: int
    tasks: int
    arguments: tuple[Argument, ...]


def kind_of(value: Any) -> Kind:
    """The JSON kind of an argument's value, lists of objects apart."""
    if isinstance(value, str):
        return "string"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "number"
    if isinstance(value, list):
        return "objects" if value and isinstance(value[0], dict) else "list"
    return "object" if isinstance(value, dict) else "null"


class _SlotIndex:
    """The values of one context by text, kept up to date as the context grows."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.read = 0
        self.by_text: defaultdict[str, set[str]] = defaultdict(set)
        self.sizes: Counter[str] = Counter()

    def update(self) -> list[str]:
        """Read what is new; the slots that were not there before."""
        new: list[str] = []
        for entry in self.context.entries[self.read :]:
            slots = self.by_text[entry.text]
            if entry.slot not in slots:
                slots.add(entry.slot)
                if entry.slot not in self.sizes:
                    new.append(entry.slot)
                self.sizes[entry.slot] += 1
        self.read = len(self.context.entries)
        return new


class _ArgumentCounts:
    def __init__(self) -> None:
        self.present = 0
        self.found = 0
        self.hits: Counter[str] = Counter()
        self.seen: Counter[str] = Counter()
        self.size: Counter[str] = Counter()
        self.kinds: Counter[Kind] = Counter()
        self.item_kinds: Counter[Kind] = Counter()
        self.written: defaultdict[tuple[str, Written], set[str]] = defaultdict(set)
        self.constants: dict[str, tuple[Any, set[str]]] = {}
        self.projections: Counter[tuple[str, ...]] = Counter()
        self.projected_in: defaultdict[tuple[str, ...], set[str]] = defaultdict(set)

    def project(self, keys: tuple[str, ...], task: str) -> None:
        self.projections[keys] += 1
        self.projected_in[keys].add(task)


class _ToolCounts:
    def __init__(self) -> None:
        self.calls = 0
        self.tasks: set[str] = set()
        self.arguments: defaultdict[str, _ArgumentCounts] = defaultdict(_ArgumentCounts)


class SourceLearner:
    """Counts sources over calls; `finish()` keeps what is frequent enough to be learned."""

    def __init__(
        self, private: Private, choices: Mapping[str, Mapping[str, Sequence[Any]]] | None = None
    ) -> None:
        """`choices`: what the schemas say arguments may take, by tool and argument."""
        self._choices = choices or {}
        self._patterns = PatternLearner()
        self._tools: defaultdict[str, _ToolCounts] = defaultdict(_ToolCounts)
        self._index: _SlotIndex | None = None
        self._private = private
        self._slot_tasks: defaultdict[str, set[str]] = defaultdict(set)

    def observe(self, context: Context, call: ToolCall, task: str) -> None:
        """Count one recorded call, `context` being what stood before it."""
        if self._index is None or self._index.context is not context:
            self._index = _SlotIndex(context)
        for slot in self._index.update():
            self._slot_tasks[_path(slot)].add(task)
        counts = self._tools[call.name]
        counts.calls += 1
        counts.tasks.add(task)
        self._patterns.observe(context, call, task)
        for name, value in call.arguments.items():
            self._observe_value(counts.arguments[name], value, task, self._index)

    def _observe_value(
        self, counts: _ArgumentCounts, value: Any, task: str, index: _SlotIndex
    ) -> None:
        counts.present += 1
        value, form = as_list(value)
        kind = kind_of(value)
        if kind in ("list", "objects"):
            counts.written[index.context.prompt_hash, form].add(task)
        counts.kinds[kind] += 1
        text = plain_text(value)
        if len(text) <= _MAX_CONSTANT_CHARS:
            counts.constants.setdefault(text, (value, set()))[1].add(task)
        targets = [text]
        if isinstance(value, list) and value:
            parts = cast("list[Any]", value)
            counts.item_kinds[kind_of(parts[0])] += 1
            if kind == "list":
                targets += [plain_text(part) for part in parts]
        if kind == "objects":
            counts.project(tuple(sorted(cast("list[dict[str, Any]]", value)[0])), task)
        elif kind == "object":
            counts.project(tuple(sorted(cast("dict[str, Any]", value))), task)
        counts.seen.update(index.sizes.keys())
        counts.size.update(index.sizes)
        found: set[str] = set()
        for target in targets:
            found |= index.by_text.get(target, set())
        counts.hits.update(found)
        counts.found += bool(found)

    def finish(self, minimum_calls: int = 3) -> "Sources":
        """Keep the tools called at least `minimum_calls` times."""
        tools: list[Tool] = []
        supports: dict[tuple[str, str], list[set[str] | None]] = {}
        index = 0
        ranked = sorted(self._tools.items(), key=lambda pair: (-pair[1].calls, pair[0]))
        for name, counts in ranked:
            if counts.calls < minimum_calls or self._private.tool(name):
                continue
            arguments: list[Argument] = []
            for argument, of_argument in sorted(counts.arguments.items()):
                if of_argument.present < max(2, _RARE_ARGUMENT * counts.calls):
                    continue
                if self._private.argument(name, argument):
                    continue
                built, tasks = self._argument(name, argument, index, counts, of_argument)
                arguments.append(built)
                supports[name, argument] = tasks
                index += 1
            arguments.sort(key=_filling_order)
            tools.append(Tool(name, counts.calls, len(counts.tasks), tuple(arguments)))
        return Sources(tuple(tools), supports)

    def _argument(
        self, tool: str, name: str, index: int, of_tool: _ToolCounts, counts: _ArgumentCounts
    ) -> tuple[Argument, list[set[str] | None]]:
        slots: list[Slot] = []
        for slot, hits in counts.hits.items():
            hit_rate = hits / counts.seen[slot]
            precision = hits / max(1, counts.size[slot])
            if hits < _MIN_HITS or hit_rate < _MIN_HIT_RATE or precision < _MIN_PRECISION:
                continue
            if self._kept_slot(slot):
                slots.append(Slot(slot, (hits + 0.2) / (counts.seen[slot] + 2), precision))
        slots += [
            Slot(slot, (hits + 0.2) / (seen + 2), min(1.0, hits / max(1, size)))
            for slot, hits, seen, size in self._patterns.slots(tool, name, self._private)
        ]
        slots.sort(key=lambda slot: (-slot.hit_rate, slot.name))
        tasks = len(of_tool.tasks)
        frequent: list[tuple[Constant, set[str] | None]] = [
            (Constant(value, len(support) / tasks), support)
            for value, support in counts.constants.values()
            if len(support) >= max(MIN_CONSTANT_TASKS, _MIN_CONSTANT_SHARE * tasks)
            and not (personal_field(name) and not isinstance(value, bool | None))
            and not self._private.value(value)
        ]
        frequent.sort(key=lambda pair: (-pair[0].share, plain_text(pair[0].value)))
        del frequent[MAX_CONSTANTS:]
        frequent += self._chosen(tool, name, {plain_text(one.value) for one, _ in frequent})
        argument = Argument(
            tool=tool,
            name=name,
            index=index,
            kind=counts.kinds.most_common(1)[0][0],
            item_kind=counts.item_kinds.most_common(1)[0][0] if counts.item_kinds else "string",
            slots=tuple(slots[:MAX_SLOTS]),
            constants=tuple(constant for constant, _ in frequent),
            absent_share=1 - counts.present / of_tool.calls,
            projections=tuple(
                keys
                for keys, _ in counts.projections.most_common(MAX_PROJECTIONS)
                if len(counts.projected_in[keys]) >= MIN_TASKS
                and not any(self._private.name(key) for key in keys)
            ),
            found_share=counts.found / counts.present,
            written=written_as(counts.written),
        )
        return argument, [support for _, support in frequent]

    def _chosen(
        self, tool: str, name: str, known: set[str]
    ) -> list[tuple[Constant, set[str] | None]]:
        """What the schema lets an argument take beside the constants that are known."""
        choices = self._choices.get(tool, {}).get(name, ())
        return [
            (Constant(value, 0.0), None)
            for value in choices[:MAX_CHOICES]
            if plain_text(value) not in known and not self._private.value(value)
        ]

    def _kept_slot(self, slot: str) -> bool:
        """Whether a slot's name may be kept: keys of objects are data where they name people."""
        kind, _, place = slot.partition(":")
        if kind not in ("out", "kv", "sys", "prev"):
            return True  # named after a shape: its letters and digits stand for any
        if kind in ("out", "kv") and self._private.tool(place.partition(":")[0]):
            return False
        path = _path(slot)
        return len(self._slot_tasks[path]) >= MIN_TASKS and not self._private.name(path)


def _path(slot: str) -> str:
    """What of a slot's name comes from data: a path in results, whatever the tool, or a name."""
    kind, _, place = slot.partition(":")
    return place.partition(":")[2] if kind in ("out", "kv") else place


def _filling_order(argument: Argument) -> tuple[bool, float, str]:
    best = argument.slots[0].hit_rate if argument.slots else 0.0
    return (argument.kind in ("list", "objects", "object"), -best, argument.name)


class Sources:
    """What is known about every tool. While learning, `constants(argument, without=task)` leaves
    a task's own values out; a loaded artifact no longer knows tasks."""

    def __init__(
        self,
        tools: tuple[Tool, ...],
        supports: dict[tuple[str, str], list[set[str] | None]] | None = None,
    ) -> None:
        self.tools = tools
        self.by_name = {tool.name: tool for tool in tools}
        self._supports = supports or {}

    def constants(self, argument: Argument, without: str | None = None) -> tuple[Constant, ...]:
        if without is None:
            return argument.constants
        tasks = self.by_name[argument.tool].tasks
        kept: list[Constant] = []
        supports = self._supports[argument.tool, argument.name]
        for constant, support in zip(argument.constants, supports, strict=True):
            others = len(support) - (without in support) if support is not None else 0
            if support is None or others >= MIN_CONSTANT_TASKS:
                kept.append(Constant(constant.value, others / tasks))
        return tuple(kept)
