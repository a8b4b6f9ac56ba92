"""No text, however odd, costs more than its length: counted in work, not in seconds."""

import json
import re
import sys
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from reflexarc.provenance import (
    Origin,
    mentions,
    output_entries,
    parts,
    runs,
    spans,
    stems,
    times,
    words,
)
from reflexarc.provenance import outputs as outputs_module
from reflexarc.reflex import (
    Context,
    choice,
    cues,
    injection,
    looks,
    prompts,
    said,
    schema_choices,
    sensitive,
    sums,
    trail,
    written,
)
from reflexarc.reflex import context as context_module
from reflexarc.steps import Message

ODD = (
    "#",
    "/",
    " ",
    "\n",
    "a",
    "-",
    "@",
    ".",
    "a ",
    "{",
    '"',
    "to ",
    "9-",
    "a@",
    ":",
    "\t-",
    "_",
    "send ",
    "ignore ",
    "1 a ",
    "A ",
    "a, ",
    "A a, ",
    "- a:  ",
)
"""Runs that make a careless pattern try every start with every end."""


def patterns() -> Iterable[tuple[str, re.Pattern[str]]]:
    of_text = (words, spans, outputs_module, mentions, stems, times, parts, runs)
    of_talk = (prompts, looks, injection, sensitive, choice, cues, said, trail, context_module)
    for module in (*of_text, *of_talk, schema_choices, written, sums):
        for name, value in vars(module).items():
            if isinstance(value, re.Pattern):
                yield f"{module.__name__}.{name}", value
            elif name in ("_SIGNS", "_PATTERNS", "_TYPES"):
                for row in value:
                    yield f"{module.__name__} {row[0]}", row[-1]


def cost(pattern: re.Pattern[str], text: str) -> int:
    """CPU nanoseconds of the best of three searches through a text that does not match well."""
    import time

    best = sys.maxsize
    for _ in range(3):
        before = time.thread_time_ns()
        for _ in pattern.finditer(text):
            pass
        best = min(best, time.thread_time_ns() - before)
    return best


@pytest.mark.parametrize(("name", "pattern"), list(patterns()), ids=lambda value: str(value)[:60])
def test_no_pattern_is_quadratic(name: str, pattern: re.Pattern[str]) -> None:
    for odd in ODD:
        text = odd * (2_000 // len(odd)) + "!"
        short, long = cost(pattern, text), cost(pattern, text * 8)
        # Linear is 8, quadratic 64; what is cheap anyway is not judged by its noise.
        assert long < 30 * short or long < 3_000_000, f"{name} over {odd!r}: {short} to {long} ns"


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("role", ["user", "tool", "assistant", "system"])
def test_a_message_of_any_kind_is_read(role: Any, odd: str) -> None:
    context = Context()
    context.extend([Message(role, odd * (200_000 // len(odd)))])
    assert context.length == 1


def many(build: Callable[[int], str], size: int) -> str:
    return "{" + ",".join(build(at) for at in range(size)) + "}"


@pytest.mark.parametrize(
    "text",
    [
        many(lambda at: f'"k{at}": {at}', 20_000),
        many(lambda at: f'"id{at + 100}": {{"v": {at}}}', 8_000),
        many(lambda at: f'"a{at}": [{at}, {at + 1}]', 8_000),
    ],
)
def test_the_entries_of_a_result_are_bounded(text: str) -> None:
    found = output_entries("dump", text, Origin("tool_result", 0, 0, text))
    assert 1_000 <= len(found.entries) <= 1_500
    assert len(found.objects) <= 200
    assert all(len(entry.record.text) <= 1_000 for entry in found.entries)


def test_parts_of_values_are_bounded_too() -> None:
    """Each of 1,500 texts may name twenty things."""
    rows = [" ".join(f"x{row}-{at}" for at in range(20)) for row in range(1_500)]
    context = Context()
    context.extend([Message("tool", json.dumps(rows))])
    assert 2_900 <= len(context.entries) <= 3_100


def test_deep_results_are_read_as_text() -> None:
    deep = '{"a":' * 985 + "1" + "}" * 985
    found = output_entries("dump", deep, Origin("tool_result", 0, 0, deep))
    assert all(entry.slot.startswith(("tx:", "kv:")) for entry in found.entries)


def test_numbers_that_are_no_json_are_not_copied() -> None:
    for text in ('result {"a": NaN, "b": 1}', 'result {"a": Infinity}', '{"a": 1e999}'):
        found = output_entries("t", text, Origin("tool_result", 0, 0, text))
        assert all(isinstance(entry.value, str) for entry in found.entries)
    huge = '{"a": ' + "9" * 4_000 + "}"
    assert output_entries("t", huge, Origin("tool_result", 0, 0, huge)).entries == []


def test_results_in_any_order_find_their_calls() -> None:
    from reflexarc.steps import ToolCall

    names = [f"tool_{at % 7}" for at in range(4_000)]
    calls = tuple(ToolCall(f"c{at}", name, {}) for at, name in enumerate(names))
    context = Context()
    context.extend([Message("user", "go"), Message("assistant", "", calls)])
    context.extend([Message("tool", "ok", (), f"c{at}") for at in reversed(range(3_999))])
    context.extend([Message("tool", "ok")])
    assert context.symbols[-1] == f"O:{names[3_999]}"
