"""Whether a schema leaves nothing open, as strict tools must: elsewhere strictness is refused.

The responses API makes a tool strict by itself, whatever its schema; others take only a schema that
already is.
"""

from typing import Any, cast


def is_closed(schema: Any, *, complete: bool) -> bool:
    """Every object in it forbids further properties; with `complete` it requires all it has."""
    left: list[Any] = [schema]
    while left:
        value = left.pop()
        if isinstance(value, list):
            left.extend(cast("list[Any]", value))
        elif isinstance(value, dict):
            fields = cast("dict[str, Any]", value)
            if not _is_closed(fields, complete):
                return False
            for name, inner in fields.items():
                if name in ("properties", "$defs", "definitions") and isinstance(inner, dict):
                    left.extend(cast("dict[str, Any]", inner).values())
                elif name not in ("enum", "const", "default", "examples"):
                    left.append(inner)
    return True


def _is_closed(fields: dict[str, Any], complete: bool) -> bool:
    kind = fields.get("type")
    if kind != "object" and not (isinstance(kind, list) and "object" in kind):
        return True
    if fields.get("additionalProperties") is not False:
        return False
    properties, required = fields.get("properties"), fields.get("required")
    named = set(cast("dict[str, Any]", properties)) if isinstance(properties, dict) else set[str]()
    needed = cast("list[Any]", required) if isinstance(required, list) else []
    return not complete or all(name in needed for name in named)
