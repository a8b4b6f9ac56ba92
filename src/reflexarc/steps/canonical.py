"""Canonical JSON: the one form in which values and calls are compared.

Keys sorted, no white space, integral floats written as integers (as RFC 8785 does),
text kept as UTF-8. `1` and `1.0` are equal, `1` and `"1"` are not.
"""

import json
import math
import re
from typing import Any

_BRACKET = re.compile(r"[][{}]")


def canonical_json(value: Any) -> str:
    """The canonical text of a JSON value."""
    if type(value) is str:
        return json.dumps(value, ensure_ascii=False)
    return json.dumps(_normal(value), sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def call_key(name: str, arguments: dict[str, Any]) -> str:
    """Two calls are the same call exactly if their keys are equal."""
    return f"{name}({canonical_json(arguments)})"


def _normal(value: Any) -> Any:
    if isinstance(value, float) and math.isfinite(value) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {str(k): _normal(v) for k, v in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(value, list):
        return [_normal(v) for v in value]  # pyright: ignore[reportUnknownVariableType]
    return value


def nests_deeper(text: str, limit: int) -> bool:
    """Whether JSON text nests deeper than a limit, or might: brackets within strings count too."""
    if text.count("{") + text.count("[") <= limit:
        return False
    depth = 0
    for match in _BRACKET.finditer(text):
        depth += 1 if match.group() in "{[" else -1
        if depth > limit:
            return True
    return False
