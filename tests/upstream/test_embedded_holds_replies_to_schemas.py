"""What the engine decodes under is narrower than the tool's schema, never wider."""

from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reflexarc.upstream.embedded.constrain import (
    MAX_INTEGER,
    MAX_ITEMS,
    MAX_STRING_CHARS,
    PROBE_MARK,
    exactly,
    narrowed,
    parameters_schema,
    probe_schema,
)

_leaf = st.sampled_from(
    [
        {},
        {"type": "string"},
        {"type": "string", "minLength": 2, "maxLength": 3},
        {"type": "integer"},
        {"type": "integer", "minimum": 3},
        {"type": "integer", "exclusiveMaximum": -2_000_000_000},
        {"type": "number"},
        {"type": "number", "minimum": 0.001, "maximum": 0.002},
        {"type": ["number", "null"], "exclusiveMinimum": 1.5},
        {"type": "boolean"},
        {"type": ["string", "null"]},
        {"enum": ["a", 1, None]},
        {"const": "a"},
        {"type": "object"},
        {"type": "object", "required": ["a"]},
        {"type": "object", "minProperties": 1},
        {"type": "array"},
        {"not": {"type": "string"}},
        {"description": "anything"},
    ]
)


def _compound(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    properties = st.dictionaries(st.sampled_from(["a", "b"]), inner, max_size=2)
    return st.one_of(
        st.builds(lambda i: {"type": "array", "items": i}, inner),
        st.builds(lambda p: {"type": "object", "properties": p, "required": list(p)}, properties),
        st.builds(lambda p, m: {"properties": p, "additionalProperties": m}, properties, inner),
        st.builds(lambda x, y: {"anyOf": [x, y]}, inner, inner),
        st.builds(lambda x, y: {"allOf": [x, y]}, inner, inner),
        st.builds(
            lambda p: {"type": "object", "properties": p, "anyOf": [{"required": ["a"]}, {}]},
            properties,
        ),
    )


schemas = st.recursive(_leaf, _compound, max_leaves=6)
values = st.recursive(
    st.sampled_from([None, True, 0, 1, 7, -3, 10**10, -(10**10), 1.5, "", "a", "ab", "x" * 300]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "b", "c"]), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(schemas, values)
@settings(max_examples=400, deadline=None)
def test_what_fits_the_narrowed_schema_fits_the_given_one(schema: Any, value: Any) -> None:
    if jsonschema_rs.validator_for(narrowed(schema)).is_valid(value):
        assert jsonschema_rs.validator_for(schema).is_valid(value)


def _accepts(schema: dict[str, Any], value: Any) -> bool:
    return jsonschema_rs.validator_for(parameters_schema(schema)).is_valid(value)


def test_strings_lists_and_integers_come_to_an_end() -> None:
    schema = {
        "type": "object",
        "properties": {
            "text": {"type": "string"},
            "many": {"type": "array", "items": {"type": "integer"}},
        },
    }
    assert _accepts(schema, {"text": "x" * MAX_STRING_CHARS, "many": [MAX_INTEGER] * MAX_ITEMS})
    assert not _accepts(schema, {"text": "x" * (MAX_STRING_CHARS + 1)})
    assert not _accepts(schema, {"many": [0] * (MAX_ITEMS + 1)})
    assert not _accepts(schema, {"many": [MAX_INTEGER + 1]})


def test_no_argument_is_made_up() -> None:
    assert not _accepts({"properties": {"a": {"type": "string"}}}, {"b": 1})
    assert not _accepts({}, {"b": 1})
    assert _accepts({}, {})


def test_bounds_that_are_given_stay() -> None:
    text = {"type": "string", "maxLength": 1000}
    schema = {"properties": {"text": text, "n": {"type": "integer", "minimum": 2_000_000_000}}}
    assert _accepts(schema, {"text": "x" * 1000, "n": 2_000_000_001})


def test_an_alternative_is_not_closed_against_what_stands_beside_it() -> None:
    schema = {
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        "anyOf": [{"required": ["a"]}, {"properties": {"b": {"const": "x"}}}],
    }
    assert _accepts(schema, {"a": "1", "b": "x"})


def test_arguments_are_an_object_whatever_the_tool_leaves_out() -> None:
    assert parameters_schema({"properties": {}})["type"] == "object"


def test_endless_nesting_is_refused() -> None:
    schema: dict[str, Any] = {}
    for _ in range(100):
        schema = {"type": "array", "items": schema}
    with pytest.raises(ValueError, match="nests deeper"):
        narrowed(schema)


def test_a_grammar_of_one_sentence_is_its_tokens() -> None:
    assert exactly([5, 17]) == "%llguidance {}\nstart: <[5]> <[17]>"


@pytest.mark.parametrize(
    "schema",
    [
        {"type": [{}]},
        {"type": "object", "properties": [], "required": True},
        {"required": [{}], "type": "object"},
        {"type": "string", "minLength": "two"},
        {"type": "number", "minimum": "low"},
        {"anyOf": {}, "items": [], "allOf": 3},
    ],
)
def test_a_schema_that_is_none_is_left_to_the_engine_to_refuse(schema: dict[str, Any]) -> None:
    assert narrowed(schema).keys() >= schema.keys()


def test_numbers_come_to_an_end_too() -> None:
    schema = {"properties": {"n": {"type": "number"}}}
    assert _accepts(schema, {"n": 12.25})
    assert not _accepts(schema, {"n": 12.125})
    assert not _accepts(schema, {"n": 1e10})


def test_a_probe_leads_references_to_where_they_led() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/short"}},
        "$defs": {"short": {"type": "string", "maxLength": 1}},
    }
    probe = jsonschema_rs.validator_for(probe_schema(schema))
    assert probe.is_valid({PROBE_MARK: {"a": "x"}})
    assert not probe.is_valid({PROBE_MARK: {"a": "xy"}})
