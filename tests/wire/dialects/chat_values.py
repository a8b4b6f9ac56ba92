"""Drawn values of which chat requests and answers are made."""

from typing import Any

from hypothesis import strategies as st

words = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
full = words.filter(bool)
values: Any = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=6,
)
objects = st.dictionaries(full, values, max_size=3)
mark = st.just({"type": "ephemeral"})


def maybe(**members: Any) -> Any:
    return st.fixed_dictionaries({}, optional=members)


def both(required: dict[str, Any], optional: dict[str, Any]) -> Any:
    return st.fixed_dictionaries(required, optional=optional)
