"""Learns the forms of calls: which leaves are said again and again, and which are holes.

A part of a text, or a whole leaf, is kept as it is where three tasks say it and it does not name
one thing (an id has digits: a hole takes it, and may hold it as a constant all the same). A form is
kept where three tasks have it. Nothing personal or secret is kept: such a leaf is a hole.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterator, Sequence
from typing import Any

from reflexarc.provenance.parts import delimiter, names_one, text_parts
from reflexarc.provenance.words import plain_text
from reflexarc.reflex.forms import (
    LONGEST_LITERAL,
    MAX_FORMS,
    MAX_HOLES,
    Form,
    FormIndex,
    Leaf,
    Path,
    composes,
    leaves_of,
)
from reflexarc.reflex.private import Private
from reflexarc.reflex.sensitive import MIN_TASKS, personal_field
from reflexarc.steps import Session, ToolCall, decision_items

_COMPOSED_SHARE = 0.1
_CONSTANT_SHARE = 0.4
_COVERED_SHARE = 0.85
_FILLED_SHARE = 0.5
_OWN_CALLS = 12
"""A form seen so often has holes of its own; rarer forms share those of the same place."""
_MAX_OPENED = 16
_CREDENTIALS = frozenset(("authorization", "bearer", "basic", "cookie", "apikey", "credential"))


class Place:
    """Where the values of a hole are counted: its number, its name, the form (-1: several), and
    whether it takes what is personal or secret, of which no constant is kept."""

    __slots__ = ("at", "form", "name", "secret")

    def __init__(self, at: int, name: str, form: int, secret: bool) -> None:
        self.at = at
        self.name = name
        self.form = form
        self.secret = secret


class LearnedForms:
    """The forms of one tool while learning: with the tasks of each, and the places of holes."""

    def __init__(self, forms: list[Form], tasks: list[set[str]], places: list[Place]) -> None:
        self.only_composed = False
        self.forms = forms
        self.tasks = tasks
        self.places = places
        self.index = FormIndex(forms)


def learn_forms(
    sessions: Sequence[Session], thinking: Collection[str], private: Private
) -> dict[str, "LearnedForms"]:
    """The forms in recorded sessions by tool; `thinking` names the tools that have none."""
    learner = FormLearner(private)
    for session in sessions:
        for item in decision_items(session):
            if item.recorded is not None and item.recorded.name not in thinking:
                learner.observe(item.recorded, session.task)
    return learner.finish()


class FormLearner:
    """Collects calls; `finish()` gives the forms of the tools that have some."""

    def __init__(self, private: Private) -> None:
        self._private = private
        self._calls: defaultdict[str, list[tuple[list[tuple[Path, Any]], str]]] = defaultdict(list)
        self._counts: Counter[str] = Counter()

    def observe(self, call: ToolCall, task: str) -> None:
        """Count one recorded call."""
        self._counts[call.name] += 1
        leaves = leaves_of(call.arguments) if call.well_formed else None
        if leaves is not None:
            self._calls[call.name].append((leaves, task))

    def finish(self) -> dict[str, LearnedForms]:
        """By tool."""
        found: dict[str, LearnedForms] = {}
        for tool, calls in sorted(self._calls.items()):
            if self._private.tool(tool):
                continue
            learned = _ToolForms(calls, self._private).learn()
            if learned is not None and _structured(learned, self._counts[tool]):
                found[tool] = learned
        return found


def _structured(learned: LearnedForms, calls: int) -> bool:
    """Whether plain arguments would not do: enough calls are nested or composed; or many are made
    of nothing but constants (`search("", "spec")`, then `search("", "variable")`), so that which
    of them comes next is asked best of whole calls."""
    nested = composed = constant = covered = 0
    for form in learned.forms:
        nested += form.calls * any(len(leaf.path) > 1 for leaf in form.leaves)
        composed += form.calls * any(len(leaf.parts) > 1 for leaf in form.leaves)
        constant += form.calls * (len(form.leaves) > 1 and not form.holes)
        covered += form.calls
    if nested >= _COMPOSED_SHARE * calls:
        return True
    if constant >= _CONSTANT_SHARE * calls and covered >= _COVERED_SHARE * calls:
        return True
    learned.only_composed = composed >= _COMPOSED_SHARE * calls
    return learned.only_composed


def worth_it(learned: LearnedForms, known: list[float]) -> bool:
    """Whether forms help, now that it is known which share of the values of each hole is found in
    the conversation or is a constant: texts that are only composed of what is found nowhere are
    better left to the other ways of making values."""
    if not learned.only_composed:
        return True
    calls = filled = 0.0
    for form in learned.forms:
        if any(len(leaf.parts) > 1 for leaf in form.leaves):
            calls += form.calls
            filled += form.calls * min((known[at] for at in form.holes), default=1.0)
    return filled >= _FILLED_SHARE * calls


class _Sightings:
    """Forms by how often and in which tasks they were seen."""

    def __init__(self) -> None:
        self._counts: Counter[Hashable] = Counter()
        self._tasks: defaultdict[Hashable, set[str]] = defaultdict(set)
        self._forms: dict[Hashable, tuple[Leaf, ...]] = {}

    def add(self, form: tuple[Leaf, ...], task: str) -> None:
        self._add(_keys(form), task, form)

    def add_opened(self, form: tuple[Leaf, ...], keys: tuple[Hashable, ...], task: str) -> None:
        """Every form that has one more hole for a leaf of this one; `keys` are `_keys(form)`."""
        for at, leaf in enumerate(form):
            if leaf.parts != (None,):
                hole = (Leaf(leaf.path, (None,)),)
                opened = (*keys[:at], *_keys(hole), *keys[at + 1 :])
                self._add(opened, task, form[:at] + hole + form[at + 1 :])

    def _add(self, key: tuple[Hashable, ...], task: str, form: tuple[Leaf, ...]) -> None:
        self._forms[key] = form
        self._counts[key] += 1
        self._tasks[key].add(task)

    def frequent(self) -> list[tuple[Leaf, ...]]:
        """Those of enough tasks, the most frequent first."""
        return [
            self._forms[key]
            for key, _ in self._counts.most_common()
            if len(self._tasks[key]) >= MIN_TASKS
            and sum(leaf.holes for leaf in self._forms[key]) <= MAX_HOLES
        ]


class _ToolForms:
    def __init__(self, calls: list[tuple[list[tuple[Path, Any]], str]], private: Private) -> None:
        self._calls = calls
        self._private = private
        self._whole: defaultdict[Hashable, set[str]] = defaultdict(set)
        self._parts: defaultdict[Hashable, set[str]] = defaultdict(set)
        self._refused: dict[str, bool] = {}
        for leaves, task in calls:
            for path, value in leaves:
                self._whole[path, _typed(value)].add(task)
                if isinstance(value, str):
                    for part in text_parts(value):
                        self._parts[path, part].add(task)

    def learn(self) -> LearnedForms | None:
        sightings = _Sightings()
        for leaves, task in self._calls:
            if all(self._may_name(path) for path, _ in leaves):
                sightings.add(tuple(self._leaf(path, value) for path, value in leaves), task)
        kept = sightings.frequent()[:MAX_FORMS]
        kept += self._opened(kept)
        if not kept:
            return None
        # Counted anew: a call has the form that says most of it.
        index = FormIndex([Form(leaves, (), 0, 0) for leaves in kept])
        calls: Counter[int] = Counter()
        tasks: defaultdict[int, set[str]] = defaultdict(set)
        for leaves, task in self._calls:
            found = index.find_leaves(leaves)
            if found is not None:
                calls[found[0]] += 1
                tasks[found[0]].add(task)
        places: dict[tuple[str, int, bool], Place] = {}
        forms: list[Form] = []
        for number, leaves in enumerate(kept):
            own = number if calls[number] >= _OWN_CALLS else -1
            holes: list[int] = []
            for name, secret, within in holes_of(leaves):
                place = places.setdefault(
                    (name, own, within), Place(len(places), name, own, secret)
                )
                holes.append(place.at)
            forms.append(Form(leaves, tuple(holes), calls[number], len(tasks[number])))
        found_in = [tasks[number] for number in range(len(kept))]
        return LearnedForms(forms, found_in, list(places.values()))

    def _opened(self, kept: list[tuple[Leaf, ...]]) -> list[tuple[Leaf, ...]]:
        """Forms for the calls that have none so far: one leaf of theirs made a hole, so that
        enough of them are alike. The form that takes in most calls first."""
        index = FormIndex([Form(leaves, (), 0, 0) for leaves in kept])
        rest: list[tuple[list[tuple[Path, Any]], tuple[Leaf, ...], tuple[Hashable, ...], str]] = []
        for leaves, task in self._calls:
            if index.find_leaves(leaves) is None and all(
                self._may_name(path) for path, _ in leaves
            ):
                form = tuple(self._leaf(path, value) for path, value in leaves)
                rest.append((leaves, form, _keys(form), task))
        opened: list[tuple[Leaf, ...]] = []
        while rest and len(opened) < _MAX_OPENED and len(kept) + len(opened) < MAX_FORMS:
            wider = _Sightings()
            for _, form, keys, task in rest:
                wider.add_opened(form, keys, task)
            best = next(iter(wider.frequent()), None)
            if best is None:
                break
            opened.append(best)
            one = FormIndex([Form(best, (), 0, 0)])
            rest = [call for call in rest if one.find_leaves(call[0]) is None]
        return opened

    def _leaf(self, path: Path, value: Any) -> Leaf:
        plain = value is None or isinstance(value, bool)
        if secret_field(path) and not plain:
            return Leaf(path, self._parted(path, value, ("Bearer", "Basic", "Token", " ")))
        if isinstance(value, (dict, list)) and value:
            return Leaf(path, (None,))
        if isinstance(value, str):
            parts = [part for part in text_parts(value) if not delimiter(part)]
            literal = not any(names_one(part) for part in parts)
        else:
            literal = True
        if literal and len(self._whole[path, _typed(value)]) >= MIN_TASKS and self._may_keep(value):
            return Leaf(path, (), value)
        return Leaf(path, self._parted(path, value, None))

    def _parted(
        self, path: Path, value: Any, only: tuple[str, ...] | None
    ) -> tuple[str | None, ...]:
        """The parts of a text with holes; a hole of the whole where that says nothing, or where the
        parts would not be found again (`2027-03-12.csv`: a day, and what adjoins it)."""
        if not isinstance(value, str):
            return (None,)
        parts: list[str | None] = [
            part if self._kept_part(path, part, only) else None for part in text_parts(value)
        ]
        says = any(part is not None and len(part) > 1 for part in parts)
        return tuple(parts) if says and None in parts and composes(parts) else (None,)

    def _kept_part(self, path: Path, part: str, only: tuple[str, ...] | None) -> bool:
        if only is not None:
            return part in only
        if delimiter(part):
            return True
        return (
            not names_one(part)
            and len(self._parts[path, part]) >= MIN_TASKS
            and self._may_keep(part)
        )

    def _may_keep(self, value: Any) -> bool:
        text = plain_text(value)
        if text not in self._refused:
            self._refused[text] = len(text) > LONGEST_LITERAL or self._private.value(value)
        return not self._refused[text]

    def _may_name(self, path: Path) -> bool:
        return not any(self._private.name(key) for key in path)


def secret_field(path: Path) -> bool:
    """Whether a leaf holds what is personal or a credential."""
    last = path[-1]
    return personal_field(last) or any(
        word in last.lower().replace("-", "").replace("_", "") for word in _CREDENTIALS
    )


def holes_of(leaves: tuple[Leaf, ...]) -> Iterator[tuple[str, bool, bool]]:
    """(name, whether it takes a secret, whether it is within a text) of a form's holes: the path,
    and in a text what stands before the hole; a name that comes again is numbered."""
    names: Counter[str] = Counter()
    for leaf in leaves:
        path, secret = ".".join(leaf.path), secret_field(leaf.path)
        before = ""
        for part in leaf.parts:
            if part is None:
                name = path if len(leaf.parts) == 1 else f"{path}~{before}"
                names[name] += 1
                if names[name] > 1:
                    name = f"{name}~{names[name]}"
                yield name, secret, len(leaf.parts) > 1
            elif not delimiter(part):
                before = part


def _keys(form: tuple[Leaf, ...]) -> tuple[Hashable, ...]:
    """What tells a form from others: true is no 1."""
    return tuple((leaf.path, leaf.parts, _typed(leaf.value)) for leaf in form)


def _typed(value: Any) -> str:
    return f"{type(value).__name__}:{plain_text(value)}"
