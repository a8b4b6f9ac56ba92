"""Reads `reflexarc.toml`. Unknown keys are refused, with their line and the nearest that exists."""

import difflib
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import msgspec
from msgspec import inspect

from reflexarc.gateway.config import EMBEDDED, GatewayConfig
from reflexarc.gateway.config_checks import checked as checked
from reflexarc.gateway.config_lines import Lines
from reflexarc.gateway.config_lines import Path as KeyPath
from reflexarc.steps.errors import ConfigError


def load_config(path: Path) -> GatewayConfig:
    """Raises `ConfigError` that names the file and, where it can be told, line and nearest key."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from error
    return config_of(text, str(path))


def config_of(text: str, where: str) -> GatewayConfig:
    """The same of a text; `where` names it in errors."""
    try:
        raw: dict[str, Any] = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{where}: {error}") from error
    lines = Lines(text)
    _refuse_unknown(where, lines, raw)
    try:
        config = msgspec.convert(raw, GatewayConfig)
    except msgspec.ValidationError as error:
        key, said = _found(raw, str(error))
        line = lines.of(key) if key else None
        at = f"line {line}: " if line is not None else ""
        raise ConfigError(f"{where}: {at}{said}") from error
    return checked(config, where, lines)


def with_embedded(config: GatewayConfig, base_url: str) -> GatewayConfig:
    """The same with the running engine's base URL wherever a route or a provider names it."""
    return msgspec.structs.replace(
        config,
        route=tuple(
            msgspec.structs.replace(route, upstream=base_url)
            if route.upstream == EMBEDDED
            else route
            for route in config.route
        ),
        provider={
            name: msgspec.structs.replace(one, url=base_url) if one.kind == EMBEDDED else one
            for name, one in config.provider.items()
        },
    )


def uses_embedded(config: GatewayConfig) -> bool:
    """Whether anything is served by the engine that runs here."""
    routes = any(route.upstream == EMBEDDED for route in config.route)
    return routes or any(one.kind == EMBEDDED for one in config.provider.values())


def _refuse_unknown(where: str, lines: Lines, raw: dict[str, Any]) -> None:
    """Before the decoder does: this side knows lines and nearest keys."""
    for path, known in _unknown(raw, inspect.type_info(GatewayConfig), ()):
        key = str(path[-1])
        near = difflib.get_close_matches(key, known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}"
        line = lines.of(path)
        at = f":{line}" if line is not None else ""
        named = ".".join(part for part in path if isinstance(part, str))
        raise ConfigError(f"{where}{at}: {named} is not known; {hint}")


def _unknown(value: Any, kind: inspect.Type, path: KeyPath) -> Iterator[tuple[KeyPath, list[str]]]:
    """Keys that a struct does not have, each with those that it has."""
    if isinstance(kind, inspect.UnionType):
        for one in kind.types:
            if isinstance(one, inspect.StructType):
                yield from _unknown(value, one, path)
    elif isinstance(kind, inspect.StructType) and isinstance(value, dict):
        fields = {field.encode_name: field.type for field in kind.fields}
        for key, inner in cast("dict[str, Any]", value).items():
            if key not in fields:
                yield (*path, key), list(fields)
            else:
                yield from _unknown(inner, fields[key], (*path, key))
    elif isinstance(kind, inspect.DictType) and isinstance(value, dict):
        for key, inner in cast("dict[str, Any]", value).items():
            yield from _unknown(inner, kind.value_type, (*path, key))
    elif isinstance(kind, inspect.VarTupleType | inspect.ListType) and isinstance(value, list):
        for at, inner in enumerate(cast("list[Any]", value)):
            yield from _unknown(inner, kind.item_type, (*path, at))


_step = re.compile(r"\.([^.\[`]+)|\[(\d+|\.\.\.)\]")


def _found(raw: dict[str, Any], said: str) -> tuple[KeyPath, str]:
    """The key that a decoder's message means, and the message with it. The decoder says `[...]`
    for a name in a table of names: which one is found by reading each alone."""
    placed = re.search(r"`\$([^`]*)`$", said)
    if placed is None:
        return (), said
    path: KeyPath = ()
    for name, index in _step.findall(placed.group(1)):
        path = (*path, name or (int(index) if index.isdigit() else "..."))
    if "..." in path:
        at = path.index("...")
        named = _culprit(raw, path[:at], said)
        path = (*path[:at], named, *path[at + 1 :]) if named else path[:at]
        said = said.replace("[...]", f".{named}", 1) if named else said
    return path, said


def _culprit(raw: dict[str, Any], table: KeyPath, said: str) -> str:
    held: Any = raw
    kind: inspect.Type = inspect.type_info(GatewayConfig)
    for part in table:
        held = held[part]
        if isinstance(kind, inspect.StructType):
            kind = next(field.type for field in kind.fields if field.encode_name == part)
        elif isinstance(kind, inspect.VarTupleType):
            kind = kind.item_type
    if not isinstance(kind, inspect.DictType) or not isinstance(held, dict):
        return ""
    wanted = kind.value_type.cls if isinstance(kind.value_type, inspect.StructType) else None
    for name, value in cast("dict[str, Any]", held).items():
        try:
            msgspec.convert(value, wanted if wanted is not None else str)
        except msgspec.ValidationError as error:
            if str(error).split(" - ")[0] == said.split(" - ")[0]:
                return name
    return ""
