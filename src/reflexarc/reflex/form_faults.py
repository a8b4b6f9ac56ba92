"""Checks that the forms of an artifact are such as learning makes: see `header.py`."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from reflexarc.provenance.words import plain_text
from reflexarc.reflex.forms import (
    LONGEST_LITERAL,
    MAX_FORMS,
    MAX_HOLES,
    MAX_LEAVES,
    MAX_LEVELS,
    Form,
    Leaf,
    composes,
)
from reflexarc.reflex.sources import Argument, Tool
from reflexarc.reflex.trail import MAX_MOVES, OPEN

_MAX_CALLS = 1 << 53


def form_faults(tool: Tool) -> Iterator[str]:
    """What is wrong with the forms, holes and moves of one tool."""
    where = tool.name[:80]
    if len(tool.forms) > MAX_FORMS or len(tool.holes) > MAX_FORMS * MAX_HOLES:
        yield f"{where}: {len(tool.forms)} forms with {len(tool.holes)} holes"
    if tool.holes and not tool.forms:
        yield f"{where}: holes without forms"
    for form in tool.forms:
        yield from (f"{where}: {fault}" for fault in _faults(form, tool.holes))
    if len(tool.moves) > MAX_MOVES or (tool.moves and not tool.forms):
        yield f"{where}: {len(tool.moves)} moves"
    for move in tool.moves:
        if not 0 <= move.key < 1 << 63:
            yield f"{where}: a move after what is no hash"
        if len(move.forms) > MAX_FORMS + 1 or not all(
            OPEN <= form < len(tool.forms) and 0 < calls < _MAX_CALLS for form, calls in move.forms
        ):
            yield f"{where}: a move to a form that is not there"
    for hole in tool.holes:
        if not OPEN <= hole.form < len(tool.forms):
            yield f"{where}: a hole of a form that is not there"


def _faults(form: Form, holes: Sequence[Argument]) -> Iterator[str]:
    paths = [leaf.path for leaf in form.leaves]
    if len(paths) > MAX_LEAVES or sorted(set(paths)) != paths:
        yield "the leaves of a form are too many, not sorted, or one stands twice"
    if any(not 0 < len(path) <= MAX_LEVELS + 1 for path in paths):
        yield "a leaf of a form stands too deep"
    if any(one == other[: len(one)] for one, other in pairwise(paths)):
        yield "a leaf of a form stands within another"
    if len(form.holes) > MAX_HOLES or sum(leaf.holes for leaf in form.leaves) != len(form.holes):
        yield "a form with more or fewer holes than its leaves have"
    elif not all(0 <= at < len(holes) for at in form.holes):
        yield "a hole that no argument fills"
    else:
        yield from _hole_faults(form, holes)
    if not 0 <= form.calls < _MAX_CALLS or not 0 <= form.tasks < _MAX_CALLS:
        yield "a form seen a number of times that cannot be"
    for leaf in form.leaves:
        if not composes(leaf.parts):
            yield "a text of a form that would not be taken apart as it is put together"
        if type(leaf.value) in (dict, list) and leaf.value not in ({}, []):
            yield "a form that says an object or a list as one value"
        elif any(len(text) > LONGEST_LITERAL for text in _literals(leaf)):
            yield "a form that says a longer text than is learned"


def _literals(leaf: Leaf) -> Iterator[str]:
    yield plain_text(leaf.value)
    yield from (part for part in leaf.parts if part is not None)


def _hole_faults(form: Form, holes: Sequence[Argument]) -> Iterator[str]:
    names = [holes[at].name for at in form.holes]
    if len(set(names)) < len(names):
        yield "two holes of one name in a form"
    if any(holes[at].absent_share > 0.0 for at in form.holes):
        yield "a hole that may be left out"
    within = [len(leaf.parts) > 1 for leaf in form.leaves for part in leaf.parts if part is None]
    for at, text in zip(form.holes, within, strict=True):
        constants = [constant.value for constant in holes[at].constants]
        if text and not (
            holes[at].kind == "string" and all(isinstance(value, str) for value in constants)
        ):
            yield "a hole of a text that takes what is no text"
