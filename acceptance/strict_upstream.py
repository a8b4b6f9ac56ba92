"""A System 2 as strict about histories as the strictest provider: what does not hold is a 400.

Every call of an assistant turn is answered by exactly one tool message right after it, and no tool
message answers anything else; ids are unique, 1 to 40 of `A-Za-z0-9_-`; arguments are JSON objects
that fit the offered tool's schema; a turn holds text or calls; roles and types are the API's.
"""

import json
import re
from collections.abc import Sequence
from typing import Any, cast

import jsonschema_rs

_ID = re.compile(r"[A-Za-z0-9_-]{1,40}")
_KEYS = {
    "system": {"role", "content", "name"},
    "user": {"role", "content", "name"},
    "assistant": {"role", "content", "refusal", "tool_calls", "name", "annotations", "audio"},
    "tool": {"role", "content", "tool_call_id"},
}


def faults(messages: Sequence[Any], tools: Sequence[Any]) -> list[str]:
    """What a strict provider would say of a history; empty where it accepts it."""
    found: list[str] = []
    schemas = {tool["function"]["name"]: tool["function"]["parameters"] for tool in tools}
    waiting: dict[str, int] = {}
    known: set[str] = set()
    for at, message in enumerate(messages):
        role = message.get("role")
        if role not in _KEYS:
            found.append(f"{at}: role {role!r}")
            continue
        if extra := set(message) - _KEYS[role]:
            found.append(f"{at}: {role} has {sorted(extra)}")
        if role == "tool":
            identity = message.get("tool_call_id")
            if identity not in waiting:
                found.append(f"{at}: an orphan result for {identity!r}")
            waiting.pop(identity, None)
            if not isinstance(message.get("content"), str):
                found.append(f"{at}: a result without text")
            continue
        if waiting:
            found.append(f"{at}: {sorted(waiting)} were never answered")
            waiting = {}
        if role != "assistant":
            if not isinstance(message.get("content"), str):
                found.append(f"{at}: {role} without text")
            continue
        calls = message.get("tool_calls")
        if calls is None:
            if not isinstance(message.get("content"), str):
                found.append(f"{at}: a turn without text or calls")
            continue
        if not isinstance(calls, list) or not calls:
            found.append(f"{at}: tool_calls is not a list of calls")
            continue
        for call in cast("list[Any]", calls):
            found += [f"{at}: {fault}" for fault in _call_faults(call, known, schemas)]
            waiting[call.get("id")] = at
    if waiting:
        found.append(f"end: {sorted(waiting)} were never answered")
    return found


def _call_faults(call: Any, known: set[str], schemas: dict[str, Any]) -> list[str]:
    found: list[str] = []
    identity = call.get("id")
    if not isinstance(identity, str) or _ID.fullmatch(identity) is None:
        found.append(f"id {identity!r}")
    elif identity in known:
        found.append(f"id {identity!r} twice")
    else:
        known.add(identity)
    if set(call) != {"id", "type", "function"} or call["type"] != "function":
        return [*found, f"a call with {sorted(call)}"]
    function = call["function"]
    if set(function) != {"name", "arguments"}:
        return [*found, f"a function with {sorted(function)}"]
    schema = schemas.get(function["name"])
    if schema is None:
        return [*found, f"{function['name']!r} is not offered"]
    try:
        arguments = json.loads(function["arguments"])
    except (TypeError, ValueError):
        return [*found, "arguments are not JSON"]
    if not jsonschema_rs.is_valid(schema, arguments):
        found.append(f"arguments of {function['name']} do not fit its schema")
    return found
