"""Lists that an agent writes as text: `['1', '2']` where the schema wants `["1", "2"]`.

Some harnesses hand over arguments so, always or under one of their prompts. What is learned is, per
argument and prompt, in which form; candidates are made as lists and written in that form.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from typing import Any, Literal, cast

import msgspec

from reflexarc.steps import nests_deeper

Written = Literal["list", "json", "python"]
MAX_PROMPTS = 16
_MIN_TASKS = 3
_LONGEST = 4_000
_MAX_DEPTH = 4
_ESCAPE = r"\\(?:[\\'\"ntr]|x[0-9a-f]{2}|u(?!d[89a-f])[0-9a-f]{4}|U[0-9a-f]{8})"
_ITEM = (
    rf"(?:'(?:[^'\\\n]|{_ESCAPE})*+'|\"(?:[^\"\\\n]|{_ESCAPE})*+\""
    r"|-?\d++(?:\.\d++)?(?:e[+-]?\d++)?|True|False)"
)
_PYTHON = re.compile(rf"\[{_ITEM}(?:, {_ITEM})*+\]")
"""Lists of scalars as `repr` writes them, so that no other text is given to the parser."""


def read_list(text: str) -> tuple[list[Any], Written] | None:
    """The list that a text is, and how it is written; None where it is none. At most 4,000
    characters of scalars; literals only, nothing is evaluated."""
    if not text.startswith("[") or not text.endswith("]") or len(text) > _LONGEST:
        return None
    if nests_deeper(text, _MAX_DEPTH):
        return None
    attempts: tuple[tuple[Written, Any], ...] = (("json", _json(text)), ("python", _python(text)))
    for form, found in attempts:
        if isinstance(found, list) and found:
            values = cast("list[Any]", found)
            plain = all(isinstance(value, str | int | float | bool) for value in values)
            if plain and write_list(values, form) == text:
                return values, form
    return None


def _json(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return None


def _python(text: str) -> Any:
    if _PYTHON.fullmatch(text) is None:
        return None
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None


def as_list(value: Any) -> tuple[Any, Written]:
    """A value, as a list where it is the text of one; and the form of that list."""
    found = read_list(value) if isinstance(value, str) else None
    return found or (value, "list")


def write_list(values: list[Any], form: Written) -> Any:
    """The list, or the text it is written as."""
    if form == "list":
        return values
    if form == "python":
        return repr(values)
    return msgspec.json.encode(values).decode()


class WrittenAs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The form that lists have under a prompt (its hash), or under any other (an empty one)."""

    prompt: str
    form: Written


def written_as(seen: Mapping[tuple[str, Written], Set[str]]) -> tuple[WrittenAs, ...]:
    """The form of most tasks, by prompt and over all; none where lists are lists. `seen`: the tasks
    by prompt and form."""
    by_prompt: defaultdict[str, list[tuple[int, Written]]] = defaultdict(list)
    overall: defaultdict[Written, set[str]] = defaultdict(set)
    for (prompt, form), tasks in seen.items():
        by_prompt[prompt].append((len(tasks), form))
        overall[form] |= tasks
    if all(form == "list" or len(tasks) < _MIN_TASKS for form, tasks in overall.items()):
        return ()
    usual = max(sorted(overall), key=lambda form: len(overall[form]))
    found = [
        WrittenAs(prompt, form)
        for prompt, forms in sorted(by_prompt.items(), key=lambda pair: -max(pair[1])[0])
        if (form := max(forms)[1]) != usual and max(forms)[0] >= _MIN_TASKS
    ]
    return (*found[:MAX_PROMPTS], WrittenAs("", usual))


def form_under(written: Sequence[WrittenAs], prompt: str) -> Written:
    """The form of lists under a prompt."""
    for one in written:
        if one.prompt in (prompt, ""):
            return one.form
    return "list"
