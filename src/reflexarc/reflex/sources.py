"""What is known about every tool: where its arguments come from, as learned from recorded calls.

For every (tool, argument): the slots its value was found in, how often, and among how many
others; the constants it takes; whether it may be absent (`source_learning.py` counts them).
"""

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Literal

import msgspec

from reflexarc.provenance.words import plain_text
from reflexarc.reflex.form_learning import LearnedForms
from reflexarc.reflex.forms import Form, FormIndex
from reflexarc.reflex.sensitive import MIN_TASKS
from reflexarc.reflex.trail import OPEN, Move
from reflexarc.reflex.written import WrittenAs
from reflexarc.steps import ToolCall

Kind = Literal["string", "integer", "number", "boolean", "null", "list", "objects", "object"]

MIN_CONSTANT_TASKS = MIN_TASKS
MAX_CONSTANTS = 8
MAX_SLOTS = 25
MAX_PROJECTIONS = 3


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


class Argument(msgspec.Struct, frozen=True, forbid_unknown_fields=True, dict=True):
    """What is known about one argument of one tool. `found_share`: of its values, those that stood
    anywhere in the conversation before the call; `written`: how its lists are written as text,
    where they are; `form`: of a hole that only one form has, its number; `examples`:
    texts that the schema gives as examples, tried where the user says their words."""

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
    form: int = -1
    examples: tuple[str, ...] = ()

    @cached_property
    def slot_names(self) -> tuple[str, ...]:
        """The names of its slots."""
        return tuple(slot.name for slot in self.slots)

    @cached_property
    def hit_rates(self) -> tuple[float, ...]:
        """Of its slots; the last entry is that of slot -1: none."""
        return (*(slot.hit_rate for slot in self.slots), 0.0)

    @cached_property
    def precisions(self) -> tuple[float, ...]:
        """Of its slots; the last entry is that of slot -1: none."""
        return (*(slot.precision for slot in self.slots), 0.0)


class Tool(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is known about one tool: how often it was called, in how many tasks, its arguments in
    the order they are filled (those that identify an object first); if they are nested or
    composed, the forms of its calls and the arguments that fill their holes."""

    name: str
    calls: int
    tasks: int
    arguments: tuple[Argument, ...]
    forms: tuple[Form, ...] = ()
    holes: tuple[Argument, ...] = ()
    moves: tuple[Move, ...] = ()


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


class Support:
    """The tasks of each constant of an argument, and in how many tasks the argument stood."""

    __slots__ = ("tasks", "together")

    def __init__(self, tasks: list[set[str] | None], together: int) -> None:
        self.tasks = tasks
        self.together = together


class Sources:
    """What is known about every tool. While learning, `constants(argument, without=task)` leaves
    a task's own values out; a loaded artifact no longer knows tasks."""

    def __init__(
        self,
        tools: tuple[Tool, ...],
        supports: dict[int, Support] | None = None,
        forms: Mapping[str, LearnedForms] | None = None,
        index: Mapping[str, FormIndex] | None = None,
    ) -> None:
        self.tools = tools
        self.by_name = {tool.name: tool for tool in tools}
        self._supports = supports or {}
        self._forms = forms or {}
        self.forms = index or {tool.name: FormIndex(tool.forms) for tool in tools if tool.forms}

    def constants(self, argument: Argument, without: str | None = None) -> tuple[Constant, ...]:
        if without is None:
            return argument.constants
        kept: list[Constant] = []
        support = self._supports[argument.index]
        for constant, tasks in zip(argument.constants, support.tasks, strict=True):
            others = len(tasks) - (without in tasks) if tasks is not None else 0
            if tasks is None or others >= MIN_CONSTANT_TASKS:
                share = others / support.together if constant.share else 0.0
                kept.append(Constant(constant.value, share))
        return tuple(kept)

    def form_numbers(self, tool: str, without: str | None = None) -> list[int]:
        """The forms of a tool; while learning, those that other tasks show often enough."""
        forms = self.by_name[tool].forms
        if without is None:
            return list(range(len(forms)))
        return [
            number
            for number, tasks in enumerate(self._forms[tool].tasks)
            if len(tasks) - (without in tasks) >= MIN_TASKS
        ]

    def take_apart(self, call: ToolCall) -> tuple[dict[str, Any], int]:
        """(values, form) of a call to a tool that was learned: the values of its holes by their
        names, or its arguments where it has no form that is known (-1)."""
        index = self.forms.get(call.name)
        found = index.find(call.arguments) if index is not None and call.well_formed else None
        if found is None:
            return dict(call.arguments), OPEN
        tool = self.by_name[call.name]
        names = [tool.holes[at].name for at in tool.forms[found[0]].holes]
        return dict(zip(names, found[1], strict=True)), found[0]
