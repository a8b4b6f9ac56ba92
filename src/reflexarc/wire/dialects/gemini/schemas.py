"""Schemas in Gemini's subset of OpenAPI 3.0, said again in JSON Schema.

Types are upper case there, `nullable` stands beside the type, counts may be text, and an order of
properties is a list of its own. A schema that is JSON Schema already comes out as it went in.
"""

from typing import Any, cast

from reflexarc.wire.dialects.gemini.shapes import camel

_TYPES = {"STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL"}
_COUNTS = {"minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties"}
_ONE = {"items", "additionalProperties", "not"}
_MANY = {"anyOf", "oneOf", "allOf", "prefixItems"}
_NAMED = {"properties", "$defs", "patternProperties"}
_OTHERWISE = {"defs": "$defs", "ref": "$ref"}
_SPELT = _COUNTS | _ONE | _MANY | {"propertyOrdering"}


def to_json_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """A new schema; the one given is not changed."""
    made: dict[str, Any] = {}
    nullable = False
    order: list[str] = []
    for given, value in schema.items():
        name = _name(given)
        if name == "nullable":
            nullable = value is True
        elif name == "propertyOrdering" and isinstance(value, list):
            order = [n for n in cast("list[Any]", value) if isinstance(n, str)]
        elif name == "type":
            _put_type(made, value)
        elif name == "example" and "examples" not in schema:
            made["examples"] = [value]
        elif name != "format" or value != "enum":
            made[name] = _converted(name, value)
    if order and isinstance(made.get("properties"), dict):
        made["properties"] = _ordered(made["properties"], order)
    if nullable:
        _put_null(made)
    return made


def _name(given: str) -> str:
    spelt = camel(given)
    return _OTHERWISE.get(given, spelt if spelt in _SPELT else given)


def _put_type(made: dict[str, Any], value: Any) -> None:
    if isinstance(value, list):
        made["type"] = [_lower(one) for one in cast("list[Any]", value)]
    elif value != "TYPE_UNSPECIFIED":
        made["type"] = _lower(value)


def _lower(value: Any) -> Any:
    return value.lower() if isinstance(value, str) and value.upper() in _TYPES else value


def _converted(name: str, value: Any) -> Any:
    converted: Any = value
    if isinstance(value, dict):
        inner = cast("dict[str, Any]", value)
        if name in _ONE:
            converted = to_json_schema(inner)
        elif name in _NAMED:
            converted = {key: _schema(one) for key, one in inner.items()}
    elif isinstance(value, list) and name in _MANY:
        converted = [_schema(one) for one in cast("list[Any]", value)]
    elif isinstance(value, str) and name in _COUNTS and value.isdecimal():
        converted = int(value)
    return converted


def _schema(value: Any) -> Any:
    return to_json_schema(cast("dict[str, Any]", value)) if isinstance(value, dict) else value


def _ordered(properties: dict[str, Any], order: list[str]) -> dict[str, Any]:
    first = {name: properties[name] for name in order if name in properties}
    return {**first, **properties}


def _put_null(made: dict[str, Any]) -> None:
    kind = made.get("type")
    if isinstance(kind, str) and kind != "null":
        made["type"] = [kind, "null"]
    elif isinstance(kind, list) and "null" not in kind:
        made["type"] = [*cast("list[Any]", kind), "null"]
    choices = made.get("anyOf")
    if isinstance(choices, list) and {"type": "null"} not in choices:
        made["anyOf"] = [*cast("list[Any]", choices), {"type": "null"}]
    values = made.get("enum")
    if isinstance(values, list) and None not in values:
        made["enum"] = [*cast("list[Any]", values), None]
