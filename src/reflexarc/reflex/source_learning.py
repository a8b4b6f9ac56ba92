"""Counts where the arguments of each tool come from, over recorded calls.

Everything that is kept as text must have occurred in at least three tasks, else the ids of one
task, run several times, would look like constants; and nothing is kept that is personal or a secret
(`private.py`).
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any, cast

from reflexarc.provenance.words import plain_text
from reflexarc.reflex.borrowing import Kin, choices_of_kin
from reflexarc.reflex.closed_sets import ClosedSets
from reflexarc.reflex.context import Context
from reflexarc.reflex.form_learning import LearnedForms, secret_field, worth_it
from reflexarc.reflex.forms import Form
from reflexarc.reflex.keyed import KEYED, key_of
from reflexarc.reflex.made_values import PatternLearner
from reflexarc.reflex.private import Private
from reflexarc.reflex.schema_choices import MAX_CHOICES, MAX_EXAMPLES
from reflexarc.reflex.sensitive import MIN_TASKS
from reflexarc.reflex.slot_index import SlotIndex
from reflexarc.reflex.sources import (
    MAX_CONSTANTS,
    MAX_PROJECTIONS,
    MAX_SLOTS,
    MIN_CONSTANT_TASKS,
    Argument,
    Constant,
    Kind,
    Slot,
    Sources,
    Support,
    Tool,
    kind_of,
)
from reflexarc.reflex.sums import SumCounts, parts_of
from reflexarc.reflex.trail import OPEN, Move, MoveLearner, Trail
from reflexarc.reflex.written import Written, as_list, written_as
from reflexarc.steps import ToolCall

_MIN_CONSTANT_SHARE = 0.05
_MIN_HITS = 2
_MIN_HIT_RATE = 0.03
_MIN_PRECISION = 0.002
_RARE_ARGUMENT = 0.02
_MAX_CONSTANT_CHARS = 400


class _ArgumentCounts:
    def __init__(self) -> None:
        self.present = 0
        self.tasks: set[str] = set()
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
        self.sums = SumCounts()

    def take(self, other: "_ArgumentCounts") -> None:
        """Count what another one counted over other tasks."""
        self.present += other.present
        self.tasks |= other.tasks
        self.found += other.found
        self.hits.update(other.hits)
        self.seen.update(other.seen)
        self.size.update(other.size)
        self.kinds.update(other.kinds)
        self.item_kinds.update(other.item_kinds)
        for written, tasks in other.written.items():
            self.written[written] |= tasks
        for text, (value, tasks) in other.constants.items():
            known = self.constants.setdefault(text, (value, set()))
            known[1].update(tasks)
        self.projections.update(other.projections)
        for keys, tasks in other.projected_in.items():
            self.projected_in[keys] |= tasks
        self.sums.take(other.sums)

    def project(self, keys: tuple[str, ...], task: str) -> None:
        self.projections[keys] += 1
        self.projected_in[keys].add(task)


class _ToolCounts:
    def __init__(self) -> None:
        self.calls = 0
        self.tasks: set[str] = set()
        self.arguments: defaultdict[str, _ArgumentCounts] = defaultdict(_ArgumentCounts)
        self.holes: defaultdict[int, _ArgumentCounts] = defaultdict(_ArgumentCounts)


class SourceLearner:
    """Counts sources over calls; `finish()` keeps what is frequent enough to be learned."""

    def __init__(
        self,
        private: Private,
        choices: Mapping[str, Mapping[str, Sequence[Any]]] | None = None,
        forms: Mapping[str, LearnedForms] | None = None,
        examples: Mapping[str, Mapping[str, Sequence[Any]]] | None = None,
        named: Collection[str] = (),
    ) -> None:
        """`choices`: what the schemas say arguments may take, `examples`: what they give as
        examples, both by tool and argument; `named`: how arguments are called."""
        self._examples = examples or {}
        self._closed = ClosedSets(named)
        self._key_tasks: defaultdict[str, set[str]] = defaultdict(set)
        self._choices = choices or {}
        self._patterns = PatternLearner()
        self._forms = dict(forms or {})
        self.index = {tool: learned.index for tool, learned in self._forms.items()}
        self.moves = MoveLearner()
        self._tools: defaultdict[str, _ToolCounts] = defaultdict(_ToolCounts)
        self._index: SlotIndex | None = None
        self._private = private
        self._slot_tasks: defaultdict[str, set[str]] = defaultdict(set)

    def observe(self, context: Context, call: ToolCall, task: str) -> SlotIndex:
        """Count one recorded call, `context` being what stood before it; what stands where."""
        if self._index is None or self._index.context is not context:
            self._index = SlotIndex(context)
        read = self._index.read
        for slot in self._index.update():
            self._slot_tasks[_path(slot)].add(task)
            self._key_tasks[key_of(slot)].add(task)
        self._closed.observe(context.entries[read:], task)
        counts = self._tools[call.name]
        counts.calls += 1
        counts.tasks.add(task)
        self._patterns.observe(context, call, task)
        for name, value in call.arguments.items():
            self._observe_value(counts.arguments[name], value, task, self._index, name)
        return self._index

    def observe_form(self, call: ToolCall, task: str, index: SlotIndex) -> None:
        """Count the form of a recorded call and what fills its holes, `index` being what stood
        before it. Apart from `observe`: each learner has forms of its own."""
        learned = self._forms.get(call.name)
        if learned is None or not call.well_formed:
            return
        found = learned.index.find(call.arguments)
        trail = Trail.of(index.context, self.index)
        self.moves.observe(call.name, found[0] if found is not None else OPEN, trail, task)
        if found is None:
            return
        number, values = found
        holes = self._tools[call.name].holes
        for place, value in zip(learned.forms[number].holes, values, strict=True):
            self._observe_value(holes[place], value, task, index)

    def take(self, other: "SourceLearner") -> None:
        """Count the calls that another one observed, of other tasks; forms aside."""
        for name, counts in other._tools.items():
            own = self._tools[name]
            own.calls += counts.calls
            own.tasks |= counts.tasks
            for argument, of_argument in counts.arguments.items():
                own.arguments[argument].take(of_argument)
        self._patterns.take(other._patterns)
        self._closed.take(other._closed)
        for path, tasks in other._slot_tasks.items():
            self._slot_tasks[path] |= tasks
        for key, tasks in other._key_tasks.items():
            self._key_tasks[key] |= tasks

    def _observe_value(
        self, counts: _ArgumentCounts, value: Any, task: str, index: SlotIndex, name: str = ""
    ) -> None:
        """`name`: of an argument, which results may have as a key; a hole has none."""
        counts.present += 1
        counts.tasks.add(task)
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
        size = index.keyed[name] if name else 0
        if size:
            key = f"{KEYED}{name}"
            counts.seen[key] += 1
            counts.size[key] += size
            if any(key_of(slot) == name for slot in found):
                counts.hits[key] += 1
        counts.hits.update(found)
        counts.found += bool(found)
        counts.sums.observe(value, task, index)

    def finish(self, minimum_calls: int = 3) -> "Sources":
        """Keep the tools called at least `minimum_calls` times."""
        tools: list[Tool] = []
        supports: dict[int, Support] = {}
        index = 0
        ranked = sorted(self._tools.items(), key=lambda pair: (-pair[1].calls, pair[0]))
        kin = Kin(
            {
                (tool, argument): of_argument
                for tool, counts in ranked
                for argument, of_argument in counts.arguments.items()
            }
        )
        for name, counts in ranked:
            if counts.calls < minimum_calls or self._private.tool(name):
                continue
            arguments: list[Argument] = []
            for argument, of_argument in sorted(counts.arguments.items()):
                if of_argument.present < max(2, _RARE_ARGUMENT * counts.calls):
                    continue
                if self._private.argument(name, argument):
                    continue
                of_all = (counts.calls, len(counts.tasks))
                built, tasks = self._argument(name, argument, index, of_all, of_argument, kin=kin)
                arguments.append(built)
                supports[index] = Support(tasks, len(counts.tasks))
                index += 1
            arguments.sort(key=_filling_order)
            forms: tuple[Form, ...] = ()
            moves: tuple[Move, ...] = ()
            holes: list[Argument] = []
            if name in self._forms:
                forms = tuple(self._forms[name].forms)
                moves = self.moves.finish(name)
                for place in self._forms[name].places:
                    of_hole = counts.holes[place.at]
                    of_all = (of_hole.present, len(of_hole.tasks))
                    built, tasks = self._argument(
                        name, place.name, index, of_all, of_hole, place.form, place.secret
                    )
                    holes.append(built)
                    supports[index] = Support(tasks, len(of_hole.tasks))
                    index += 1
                known = [
                    hole.found_share + sum(one.share for one in hole.constants) for hole in holes
                ]
                if not worth_it(self._forms[name], known):
                    forms, moves, holes = (), (), []
                    del self._forms[name], self.index[name]
            tools.append(
                Tool(
                    name,
                    counts.calls,
                    len(counts.tasks),
                    tuple(arguments),
                    forms,
                    tuple(holes),
                    moves,
                )
            )
        return Sources(tuple(tools), supports, self._forms, self.index)

    def _argument(
        self,
        tool: str,
        name: str,
        index: int,
        of_all: tuple[int, int],
        counts: _ArgumentCounts,
        form: int = -1,
        secret: bool = False,
        kin: Kin | None = None,
    ) -> tuple[Argument, list[set[str] | None]]:
        """`of_all`: the calls and the tasks in which the argument could have stood; `kin`: of whom
        it may take over, None for a hole."""
        slots: list[Slot] = []
        for slot, hits in counts.hits.items():
            if slot.startswith(KEYED):
                continue  # taken over below, as a first guess
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
        slots += [
            Slot(slot, (hits + 0.2) / (seen + 2), min(1.0, hits / max(1, size)))
            for slot, hits, seen, size in counts.sums.slots()
            if all(self._kept_slot(part) for part in parts_of(slot)[1])
        ]
        slots.sort(key=lambda slot: (-slot.hit_rate, slot.name))
        if kin is not None:  # after its own, which say what it is and when it is filled
            slots += kin.slots((tool, name), [slot.name for slot in slots], self._kept_slot)
        calls, tasks = of_all
        frequent: list[tuple[Constant, set[str] | None]] = [
            (Constant(value, len(support) / tasks), support)
            for value, support in counts.constants.values()
            if len(support) >= max(MIN_CONSTANT_TASKS, _MIN_CONSTANT_SHARE * tasks)
            and not ((secret or secret_field((name,))) and not isinstance(value, bool | None))
            and not self._private.value(value)
        ]
        frequent.sort(key=lambda pair: (-pair[0].share, plain_text(pair[0].value)))
        del frequent[MAX_CONSTANTS:]
        known = {plain_text(one.value) for one, _ in frequent}
        listed = self._closed_set(name, counts, known) if kin is not None else []
        listed += self._chosen(tool, name, known | {one.text for one, _ in listed})
        frequent += listed[:MAX_CHOICES]
        argument = Argument(
            tool=tool,
            name=name,
            index=index,
            kind=counts.kinds.most_common(1)[0][0] if counts.kinds else "string",
            item_kind=counts.item_kinds.most_common(1)[0][0] if counts.item_kinds else "string",
            slots=tuple(slots[:MAX_SLOTS]),
            constants=tuple(constant for constant, _ in frequent),
            absent_share=1 - counts.present / calls if calls else 0.0,
            projections=tuple(
                keys
                for keys, _ in counts.projections.most_common(MAX_PROJECTIONS)
                if len(counts.projected_in[keys]) >= MIN_TASKS
                and not any(self._private.name(key) for key in keys)
            ),
            found_share=counts.found / max(1, counts.present),
            written=written_as(counts.written),
            form=form,
            examples=self._given_as_examples(tool, name) if kin is not None else (),
        )
        return argument, [support for _, support in frequent]

    def _closed_set(
        self, name: str, counts: _ArgumentCounts, known: Collection[str]
    ) -> list[tuple[Constant, set[str] | None]]:
        """What results say under the argument's name, where that is from a few values."""
        if secret_field((name,)) or set(counts.kinds) != {"string"}:
            return []
        return [
            (Constant(value, 0.0), tasks)
            for value, tasks in self._closed.of(name)
            if value not in known and not self._private.value(value)
        ]

    def _given_as_examples(self, tool: str, name: str) -> tuple[str, ...]:
        examples = self._examples.get(tool, {}).get(name, ())
        return tuple(one for one in examples[:MAX_EXAMPLES] if not self._private.value(one))

    def _chosen(
        self, tool: str, name: str, known: set[str]
    ) -> list[tuple[Constant, set[str] | None]]:
        """What the schema lets an argument take beside the constants that are known."""
        choices = self._choices.get(tool, {}).get(name, ())
        choices = choices or choices_of_kin(tool, name, self._choices)
        return [
            (Constant(value, 0.0), None)
            for value in choices[:MAX_CHOICES]
            if plain_text(value) not in known and not self._private.value(value)
        ]

    def _kept_slot(self, slot: str) -> bool:
        """Whether a slot's name may be kept: keys of objects are data where they name people."""
        if slot.startswith(KEYED):
            return len(self._key_tasks[slot.removeprefix(KEYED)]) >= MIN_TASKS
        kind, _, place = slot.partition(":")
        if kind in ("out", "kv", "tx") and self._private.tool(place.partition(":")[0]):
            return False
        if kind not in ("out", "kv", "sys", "prev"):
            return True  # named after a shape: its letters and digits stand for any
        path = _path(slot)
        return len(self._slot_tasks[path]) >= MIN_TASKS and not self._private.name(path)


def _path(slot: str) -> str:
    """What of a slot's name comes from data: a path in results, whatever the tool, or a name."""
    kind, _, place = slot.partition(":")
    return place.partition(":")[2] if kind in ("out", "kv") else place


def _filling_order(argument: Argument) -> tuple[bool, float, str]:
    best = argument.slots[0].hit_rate if argument.slots else 0.0
    return (argument.kind in ("list", "objects", "object"), -best, argument.name)
