"""The tools a request offers: read once per distinct text, each with a validator for its calls.

Remote references in a schema are never fetched; such a schema cannot be checked, and a call that
cannot be checked is not made.
"""

from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple, cast
from urllib.parse import unquote

import jsonschema_rs
import msgspec
import xxhash

from reflexarc.steps import ToolSpec
from reflexarc.steps.errors import RequestError
from reflexarc.wire.chat import tool_from_chat
from reflexarc.wire.json import decode_strict

MAX_TOOLS_BYTES = 1024 * 1024
"""A longer list of tools is not read."""
MAX_SCHEMA_NODES = 10_000
MAX_SCHEMA_STEPS = 1_000_000
"""Objects and lists of one tool's schema, each `$ref` counted as what it stands for; and what
checking one call may take where the schema contains itself."""


class Tools:
    """Tools as read. `refusal` is a reason to escalate whatever the conversation says."""

    def __init__(self, specs: tuple[ToolSpec, ...], refusal: str | None, bytes_read: int) -> None:
        self.specs = specs
        self.refusal = refusal
        self.bytes_read = bytes_read
        self._by_name = {spec.name: spec for spec in specs}
        self._validators: dict[tuple[str, Collection[str]], _Checker | str] = {}

    def get(self, name: str) -> ToolSpec | None:
        return self._by_name.get(name)

    def fault(
        self, name: str, arguments: dict[str, Any], left_open: frozenset[str] = frozenset()
    ) -> tuple[str, str] | None:
        """Why a call does not fit its tool's schema: a path (`/order_id`, or `parameters` where
        the schema itself is unusable) and a detail. None where it fits. Arguments `left_open` may
        be missing although the schema requires them."""
        validator = self._validators.get((name, left_open))
        if validator is None:
            validator = _validator(self._by_name[name], left_open)
            self._validators[name, left_open] = validator
        if isinstance(validator, str):
            return "parameters", validator
        if validator.steps(arguments) > MAX_SCHEMA_STEPS:
            return "parameters", f"the schema of {name} contains itself too often for such a call"
        for error in validator.validator.iter_errors(arguments):
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
        if len(memoryview(raw)) > MAX_TOOLS_BYTES:
            return Tools((), "too_long", 0)
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


def tools_given(tools: Tools | Sequence[ToolSpec | Mapping[str, Any]]) -> Tools:
    """Tools from a caller in this process: read before, our own, or chat objects. Raises
    `RequestError`."""
    if isinstance(tools, Tools):
        return tools
    if isinstance(tools, str | bytes | Mapping) or not isinstance(tools, Sequence):  # pyright: ignore[reportUnnecessaryIsInstance] - what callers really give
        raise RequestError("tools must be a list of tools", param="tools")
    return _tools(tools, 0)


def _read(text: bytes, max_depth: int) -> Tools:
    value = decode_strict(text, "tools", max_depth)
    if not isinstance(value, list):
        raise RequestError("tools must be a list", param="tools")
    return _tools(cast(list[Mapping[str, Any]], value), len(text))


def _tools(given: Sequence[ToolSpec | Mapping[str, Any]], bytes_read: int) -> Tools:
    specs: list[ToolSpec] = []
    refusal: str | None = None
    for index, entry in enumerate(given):
        if isinstance(entry, ToolSpec):
            specs.append(entry)
            continue
        kind = entry.get("type") if isinstance(entry, Mapping) else None  # pyright: ignore[reportUnnecessaryIsInstance] - the type names what is hoped for
        if isinstance(kind, str) and kind != "function":
            refusal = refusal or f"tool_type:{kind}"
            continue
        specs.append(tool_from_chat(entry, f"tools[{index}]"))
    names = {spec.name for spec in specs}
    if len(names) != len(specs):
        refusal = refusal or "duplicate_tools"
    if not specs:
        refusal = refusal or "no_tools"
    return Tools(tuple(specs), refusal, bytes_read)


class _Checker(NamedTuple):
    """`size`: the schema's nodes, `returns`: the places where it comes back to itself."""

    validator: jsonschema_rs.Validator
    size: int
    returns: int

    def steps(self, arguments: dict[str, Any]) -> int:
        """At most so many steps check these arguments: each level of theirs may go through every
        place where the schema contains itself."""
        if self.returns < 2:
            return self.size
        values, depth = _extent(arguments)
        return values * self.size * self.returns**depth


def _validator(spec: ToolSpec, left_open: Collection[str]) -> "_Checker | str":
    parameters = spec.parameters
    required = parameters.get("required")
    if left_open and isinstance(required, list):
        needed = [name for name in cast(list[Any], required) if name not in left_open]
        parameters = {**parameters, "required": needed}
    try:
        size, returns = schema_extent(parameters)
        validator = jsonschema_rs.validator_for(parameters, retriever=_never_fetch)
    except (ValueError, RecursionError) as error:  # ValidationError and ReferencingError among them
        return f"the schema of {spec.name} is unusable: {str(error).splitlines()[0]}"
    return _Checker(validator, size, returns)


def schema_extent(schema: Any) -> tuple[int, int]:
    """Nodes (objects and lists) of a schema with every `$ref` written out, and how many of its
    `$ref`s lead back to what they are in. Data in it, such as an `enum`, counts too.

    Raises `ValueError` past `MAX_SCHEMA_NODES`, and for references whose targets this does not
    follow: other documents, anchors, dynamic ones, and any where a part has an `$id` of its own.
    """
    walk = _Walk(schema)
    walk.visit(schema)
    if walk.refers and walk.has_id:
        raise ValueError("it has both $ref and an inner $id")
    return walk.nodes, walk.returns


class _Walk:
    def __init__(self, root: Any) -> None:
        self.nodes = 0
        self.returns = 0
        self.refers = False
        self.has_id = False
        self._root = root
        self._inside: set[str] = {"#"}

    def visit(self, value: Any) -> None:
        if isinstance(value, list):
            self._count()
            for item in cast(list[Any], value):
                self.visit(item)
        elif isinstance(value, dict):
            self._count()
            node = cast(dict[str, Any], value)
            for name, part in node.items():
                if isinstance(part, str):
                    self._keyword(name, part, node is self._root)
                else:
                    self.visit(part)

    def _count(self) -> None:
        self.nodes += 1
        if self.nodes > MAX_SCHEMA_NODES:
            raise ValueError(f"it has more than {MAX_SCHEMA_NODES} parts, each $ref written out")

    def _keyword(self, name: str, text: str, is_root: bool) -> None:
        if name in ("$dynamicRef", "$recursiveRef"):
            raise ValueError(f"{name} is not followed")
        if name == "$id" and not is_root:
            self.has_id = True
        if name != "$ref":
            return
        self.refers = True
        if text in self._inside:
            self.returns += 1
            return
        self._inside.add(text)
        self.visit(_target(self._root, text))
        self._inside.discard(text)


def _target(root: Any, reference: str) -> Any:
    if not reference.startswith("#/"):
        raise ValueError(f"only references such as #/$defs/name are followed, not {reference!r}")
    value = root
    for written in unquote(reference[2:]).split("/"):
        part = written.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and part in value:
            value = cast(dict[str, Any], value)[part]
        elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):  # pyright: ignore[reportUnknownArgumentType] - of anything
            value = cast(list[Any], value)[int(part)]
        else:
            raise ValueError(f"{reference!r} leads nowhere")
    return value


def _extent(value: Any) -> tuple[int, int]:
    """Values inside a value, itself counted, and its depth."""
    level: list[Any] = [value]
    values = depth = 0
    while level:
        depth += 1
        values += len(level)
        below: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                below.extend(cast(dict[str, Any], item).values())
            elif isinstance(item, list):
                below.extend(cast(list[Any], item))
        level = below
    return values, depth


def _never_fetch(uri: str) -> Any:
    raise ValueError(f"remote references are not fetched: {uri}")
