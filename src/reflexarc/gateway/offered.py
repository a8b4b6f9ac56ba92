"""The tools a request offers: read once per distinct text, each with a validator for its calls.

Remote references in a schema are never fetched; such a schema cannot be checked, and a call that
cannot be checked is not made.
"""

from collections import OrderedDict
from typing import Any, cast

import jsonschema_rs
import msgspec
import xxhash

from reflexarc.steps import ToolSpec
from reflexarc.steps.errors import RequestError
from reflexarc.wire.chat import tool_from_chat
from reflexarc.wire.json import decode_strict


class Tools:
    """Tools as read. `refusal` is a reason to escalate whatever the conversation says."""

    def __init__(self, specs: tuple[ToolSpec, ...], refusal: str | None, bytes_read: int) -> None:
        self.specs = specs
        self.refusal = refusal
        self.bytes_read = bytes_read
        self._by_name = {spec.name: spec for spec in specs}
        self._validators: dict[str, jsonschema_rs.Validator | str] = {}

    def get(self, name: str) -> ToolSpec | None:
        return self._by_name.get(name)

    def fault(self, name: str, arguments: dict[str, Any]) -> tuple[str, str] | None:
        """Why a call does not fit its tool's schema: a path (`/order_id`, or `parameters` where
        the schema itself is unusable) and a detail. None where it fits."""
        validator = self._validators.get(name)
        if validator is None:
            validator = self._validators[name] = _validator(self._by_name[name])
        if isinstance(validator, str):
            return "parameters", validator
        for error in validator.iter_errors(arguments):
            path = "".join(f"/{part}" for part in error.instance_path)
            return path or "/", error.message
        return None


class ToolReader:
    """Reads tools, with a memory of the last lists seen."""

    def __init__(self, max_depth: int, max_lists: int = 128) -> None:
        self._max_depth = max_depth
        self._max_lists = max_lists
        self._seen: OrderedDict[bytes, Tools] = OrderedDict()

    def read(self, raw: msgspec.Raw) -> Tools:
        """Raises `MalformedError`, or `RequestError` with the path of the fault; hosted and custom
        tools are no fault but a `refusal`."""
        text = bytes(raw)
        digest = xxhash.xxh3_128_digest(text)
        known = self._seen.get(digest)
        if known is not None:
            self._seen.move_to_end(digest)
            return known
        tools = _read(text, self._max_depth)
        self._seen[digest] = tools
        if len(self._seen) > self._max_lists:
            self._seen.popitem(last=False)
        return tools


def _read(text: bytes, max_depth: int) -> Tools:
    value = decode_strict(text, "tools", max_depth)
    if not isinstance(value, list):
        raise RequestError("tools must be a list", param="tools")
    specs: list[ToolSpec] = []
    refusal: str | None = None
    for index, entry in enumerate(cast(list[dict[str, Any]], value)):
        kind = entry.get("type") if isinstance(entry, dict) else None  # pyright: ignore[reportUnnecessaryIsInstance] - the cast names what is hoped for
        if isinstance(kind, str) and kind != "function":
            refusal = refusal or f"tool_type:{kind}"
            continue
        specs.append(tool_from_chat(entry, f"tools[{index}]"))
    names = {spec.name for spec in specs}
    if len(names) != len(specs):
        refusal = refusal or "duplicate_tools"
    if not specs:
        refusal = refusal or "no_tools"
    return Tools(tuple(specs), refusal, len(text))


def _validator(spec: ToolSpec) -> "jsonschema_rs.Validator | str":
    try:
        return jsonschema_rs.validator_for(spec.parameters, retriever=_never_fetch)
    except (ValueError, RecursionError) as error:  # ValidationError and ReferencingError among them
        return f"the schema of {spec.name} is unusable: {str(error).splitlines()[0]}"


def _never_fetch(uri: str) -> Any:
    raise ValueError(f"remote references are not fetched: {uri}")
