"""A context beside another: what is told to it, the other never hears."""

from collections import deque
from copy import copy
from typing import Any, cast

from reflexarc.reflex.context import Context


def fork(context: Context) -> Context:
    """A context that stands where this one stands and goes its own way from there. What was read
    is shared, only what holds it is copied: a small part of what reading it again would cost."""
    other = Context()
    for name, value in vars(context).items():
        setattr(other, name, _copied(value))
    # Rankings are worked out as they are asked for, in the context they were made for.
    other.ranked = other.remembered = None
    other.tape = None
    other.memo = copy(context.memo)
    other.memo.said = set(context.memo.said)
    return other


def _copied(value: Any) -> Any:
    """Containers are copied, and those in a dict or a tuple too, which is as deep as a context
    changes anything."""
    if isinstance(value, dict):
        fresh = copy(cast("dict[Any, Any]", value))  # a Counter or defaultdict stays one
        for key, inner in fresh.items():
            fresh[key] = _copied(inner)
        return fresh
    if isinstance(value, tuple):
        return tuple(_copied(part) for part in cast("tuple[Any, ...]", value))
    if isinstance(value, list | set | deque):
        return copy(cast("list[Any]", value))
    return value
