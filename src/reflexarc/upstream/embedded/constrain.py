"""What the engine may write: JSON schemas narrowed so that a small model comes to an end, and
grammars that admit one text only. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

MAX_STRING_CHARS = 200
MAX_ITEMS = 8
MAX_INTEGER = 1_000_000_000
NUMBER_STEP = 0.01
_MAX_SCHEMA_DEPTH = 64

# Commas and colons as compact JSON has them: free white space is one more way not to end.
_COMPACT = {"x-guidance": {"whitespace_flexible": False}}
_CHOSEN = frozenset(
    {"enum", "const", "$ref", "anyOf", "oneOf", "allOf", "not", "if", "pattern", "format"}
)
_ANNOTATIONS = frozenset({"description", "title", "default", "examples", "deprecated"})
# Not `allOf`, `not` and `if`: fewer values in a part of those can mean none, or more, of the whole.
_SCHEMAS_BY_NAME = ("properties", "$defs", "definitions", "patternProperties")
_SCHEMA_LISTS = ("prefixItems",)
_BRANCHES = ("anyOf", "oneOf")
_SCHEMAS = ("items", "additionalProperties")


def narrowed(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema of fewer values, all of them valid under the one given, for decoding greedily.

    Where nothing is said: strings of at most `MAX_STRING_CHARS`, lists of at most `MAX_ITEMS`,
    numbers up to `MAX_INTEGER` either way with two decimals, no properties but those named. Raises
    `ValueError` for nesting deeper than 64 levels.
    """
    return {**_narrowed(schema, 0), **_COMPACT}


def parameters_schema(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The schema that a tool's arguments are decoded under: always that of an object."""
    nothing: dict[str, Any] = {"properties": {}}
    return narrowed({"type": "object", **(parameters or nothing)})


PROBE_MARK = "zq81"


def probe_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Begins with `PROBE_OPENING` wherever `schema` became a grammar. Where it cannot, llama.cpp
    writes on unconstrained, and nothing else tells."""
    return {
        "type": "object",
        "properties": {PROBE_MARK: _moved(schema)},
        "required": [PROBE_MARK],
        "additionalProperties": False,
        **_COMPACT,
    }


def _moved(value: Any) -> Any:
    """With references that still lead to where they led, now that it is a property."""
    if isinstance(value, list):
        return [_moved(item) for item in cast(list[Any], value)]
    if not isinstance(value, dict):
        return value
    members = cast(dict[str, Any], value)
    moved = {name: _moved(inner) for name, inner in members.items()}
    target = members.get("$ref")
    if isinstance(target, str) and target.startswith("#"):
        moved["$ref"] = f"#/properties/{PROBE_MARK}{target[1:]}"
    return moved


PROBE_OPENING = f'{{"{PROBE_MARK}'


def exactly(tokens: Sequence[int]) -> str:
    """A grammar (llguidance) whose one sentence is these tokens. Held to a text instead, the model
    cuts it in its own way, often letter by letter, and what that is worth is chance."""
    return "%llguidance {}\nstart: " + " ".join(f"<[{token}]>" for token in tokens)


def _narrowed(schema: Mapping[str, Any], depth: int, *, branch: bool = False) -> dict[str, Any]:
    """`branch`: one of several beside which the schema around says more."""
    if depth > _MAX_SCHEMA_DEPTH:
        raise ValueError(f"it nests deeper than {_MAX_SCHEMA_DEPTH} levels")
    made = dict(schema)
    for key in _SCHEMAS:
        if isinstance(made.get(key), dict):
            made[key] = _or_as_is(made[key], depth)
    for key in _SCHEMA_LISTS:
        if isinstance(made.get(key), list):
            made[key] = [_or_as_is(item, depth) for item in cast(list[Any], made[key])]
    says_more = bool({"type", "properties", "required", "items"} & made.keys())
    for key in _BRANCHES:
        if isinstance(made.get(key), list):
            made[key] = [
                _or_as_is(item, depth, branch=says_more) for item in cast(list[Any], made[key])
            ]
    for key in _SCHEMAS_BY_NAME:
        if isinstance(made.get(key), dict):
            members = cast(dict[str, Any], made[key])
            made[key] = {name: _or_as_is(value, depth) for name, value in members.items()}
    if not branch:
        if made.keys() <= _ANNOTATIONS:
            made["type"] = ["string", "number", "boolean", "null"]
        if not _CHOSEN & made.keys():
            _bound(made)
    return made


def _or_as_is(value: Any, depth: int, *, branch: bool = False) -> Any:
    """Schemas may be `true` and `false` too."""
    if value is True:
        value = cast(dict[str, Any], {})
    if not isinstance(value, dict):
        return value
    return _narrowed(cast(dict[str, Any], value), depth + 1, branch=branch)


def _bound(schema: dict[str, Any]) -> None:
    kinds = schema.get("type")
    kind = cast(list[Any], kinds) if isinstance(kinds, list) else [kinds]
    if "string" in kind and "maxLength" not in schema:
        schema["maxLength"] = max(MAX_STRING_CHARS, _whole(schema.get("minLength")))
    if "array" in kind:
        if "maxItems" not in schema:
            schema["maxItems"] = max(MAX_ITEMS, _whole(schema.get("minItems")))
        if "items" not in schema and "prefixItems" not in schema:
            schema["items"] = _narrowed({}, 0)
    if ("integer" in kind or "number" in kind) and "multipleOf" not in schema:
        _bound_number(schema, is_whole="number" not in kind)
    if "object" in kind and not {"patternProperties", "minProperties"} & schema.keys():
        given = schema.get("properties")
        named = cast(dict[str, Any], given) if isinstance(given, dict) else {}
        needed = schema.get("required")
        listed = cast(list[Any], needed) if isinstance(needed, list) else []
        if all(isinstance(name, str) and name in named for name in listed):
            schema["additionalProperties"] = False


def _bound_number(schema: dict[str, Any], *, is_whole: bool) -> None:
    """Digits end on both sides of the point."""
    lows = [_number(schema[key]) for key in ("minimum", "exclusiveMinimum") if key in schema]
    highs = [_number(schema[key]) for key in ("maximum", "exclusiveMaximum") if key in schema]
    if not highs and all(low < MAX_INTEGER for low in lows):
        schema["maximum"] = MAX_INTEGER
    if not lows and all(high > -MAX_INTEGER for high in highs):
        schema["minimum"] = -MAX_INTEGER
    # Within less than one there may be no such number.
    if not is_whole and not (lows and highs and min(highs) - max(lows) < 1):
        schema["multipleOf"] = NUMBER_STEP


def _whole(value: Any) -> int:
    return value if isinstance(value, int) else 0


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
