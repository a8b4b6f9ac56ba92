"""The gateway's configuration: structs, and their reading from TOML. Unknown keys are refused."""

import difflib
import re
import tomllib
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, cast

import msgspec
import yarl

from reflexarc.gateway.system1 import System1Limits
from reflexarc.lifecycle.standing_file import name_of
from reflexarc.steps import Effect
from reflexarc.steps.errors import ConfigError
from reflexarc.store.records import Policy
from reflexarc.upstream import Timeouts
from reflexarc.wire import price
from reflexarc.wire.dialects import NAMES

Mode = Literal["off", "shadow", "managed", "live"]
ACTING_MODES: tuple[Mode, ...] = ("managed", "live")
"""In which System 1 may act."""
DEFAULT_PORT = 8411
DEFAULT_MAX_ERROR = 0.05
EMBEDDED = "embedded"
"""As an upstream: the engine that `reflexarc serve` runs itself; docs/local.md."""
_GIB = 1024**3


class Limits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a client may send: bytes of a body, bytes of all headers, JSON levels that System 1
    and the native endpoint read. `observed_bytes`: the largest answer that shadow mode keeps a
    copy of."""

    body_bytes: int = 32 * 1024 * 1024
    header_bytes: int = 64 * 1024
    json_depth: int = 128
    observed_bytes: int = 8 * 1024 * 1024


class Price(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """System 2's, in dollars a million tokens. Without `cached`, cached input costs as the rest;
    without `cache_write` what is written to its cache does; without `cache_write_1h` what is kept
    there for an hour costs as the rest of it."""

    input: float
    output: float
    cached: float | None = None
    cache_write: float | None = None
    cache_write_1h: float | None = None

    def of_tokens(self) -> price.Price:
        """The same in exact decimals, as they stand in the file: 0.1 is a tenth."""

        def exact(value: float) -> Decimal:
            return Decimal(repr(value))

        def written(value: float | None) -> Decimal | None:
            return None if value is None else exact(value)

        return price.Price(
            exact(self.input), exact(self.output), written(self.cached), written(self.cache_write),
            written(self.cache_write_1h),
        )  # fmt: skip


class Route(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One agent's door: requests under `path` go to `upstream` (its base URL, with `/v1`, or
    `embedded`).

    `reflex` is the path of an artifact; without one the route only passes on. `mode`: `off` asks
    System 1 nothing, `shadow` compares it with System 2, `live` lets its reads act within
    `max_error`, `managed` does so once they were promoted (`reflexarc reflex promote`); what was
    demoted acts in neither. `promote`: whether a newly learned version that later sessions bear
    out takes over by itself. `writes`: the tools whose writes may act, each with a certificate of
    its own and a person who promoted it. `deadline_ms` bounds the wait for a decision.
    `api_key_env` names an environment variable whose value replaces the client's key.

    `record`: what is kept of each step, by value (`full`), by keyed hash, or not at all. `canary`:
    the share of sessions that it acts for. `audit`: the share of acts that System 2 is asked
    about as well, to see that they still hold: `adaptive` (docs/lifecycle.md) or a fixed one.
    `dialect`: what the upstream speaks (`chat`, `responses`, `messages`, `gemini`), one or several;
    a request in one of these passes untouched, any other is converted to the first. `call_ids`:
    `mistral` for an upstream that takes ids of calls of nine letters and digits alone.
    `partial`: whether System 2 may be told which tool to call where only free text is missing.
    `warm_connections`: opened to the upstream before the first request. `price` is System 2's,
    for what steps cost.
    """

    upstream: str
    path: str = "/v1"
    reflex: str | None = None
    mode: Mode = "shadow"
    max_error: float = DEFAULT_MAX_ERROR
    deadline_ms: float = 5.0
    dialect: str | tuple[str, ...] = "chat"
    call_ids: Literal["usual", "mistral"] = "usual"
    api_key_env: str | None = None
    record: Policy = "hashed"
    canary: float = 1.0
    audit: float | Literal["adaptive"] = "adaptive"
    promote: Literal["by_hand", "automatic"] = "by_hand"
    writes: tuple[str, ...] = ()
    partial: Literal["off", "force_tool_choice"] = "off"
    effects: dict[str, Effect] = {}
    warm_connections: int = 0
    price: Price | None = None

    @property
    def dialects(self) -> tuple[str, ...]:
        """What the upstream speaks; in the first it is asked by those whose own it does not."""
        return (self.dialect,) if isinstance(self.dialect, str) else self.dialect


class StoreLimits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is recorded goes after `retention_days`, and before, oldest first, past `max_bytes`.
    What waits to be written past `max_waiting_bytes` is dropped; a recorder silent for `silent_s`
    counts as down."""

    retention_days: float = 30.0
    max_bytes: int = 2 * _GIB
    max_waiting_bytes: int = 64 * 1024 * 1024
    silent_s: float = 10.0


class Lifecycle(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`relearn`: how often the reflex of each route that records in full is learned again, in a
    process of its own that may use `learn_cpu_s` of one core and `learn_memory_bytes`."""

    relearn: Literal["off", "hourly", "daily", "weekly"] = "off"
    learn_cpu_s: int = 1800
    learn_memory_bytes: int = 4 * _GIB


class Tls(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """PEM files. `cert` and `key`: what the gateway listens with; plain HTTP without them.
    `ca_file`: authorities that upstreams are believed by besides the usual ones."""

    cert: str | None = None
    key: str | None = None
    ca_file: str | None = None


class GatewayConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All of `reflexarc.toml`. `grace_s`: how long requests in flight may take at the end.
    `state`: the directory of the store, of what is switched off, of keys; None takes the usual
    one."""

    route: tuple[Route, ...]
    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    grace_s: float = 10.0
    max_consecutive_acts: int = 20
    limits: Limits = Limits()
    timeouts: Timeouts = Timeouts()
    system1: System1Limits = System1Limits()
    store: StoreLimits = StoreLimits()
    lifecycle: Lifecycle = Lifecycle()
    tls: Tls = Tls()
    state: str | None = None


_OWN_PATHS = ("/admin", "/healthz", "/readyz", "/metrics", "/api/v1")
_WEEK_S = 7 * 24 * 3600
# Inclusive. A body crosses to System 1 with its length in 32 bits; deeper JSON than 500 levels
# overruns Python's stack; a socket timeout of 0 would mean none.
_RANGES: dict[str, tuple[float, float]] = {
    "deadline_ms": (0.001, 600_000),
    "grace_s": (0, _WEEK_S),
    "max_consecutive_acts": (1, 1_000_000),
    "body_bytes": (1, _GIB),
    "header_bytes": (1, 16 * 1024**2),
    "json_depth": (1, 500),
    "observed_bytes": (1, _GIB),
    "connect_s": (0.001, _WEEK_S),
    "first_byte_s": (0.001, _WEEK_S),
    "idle_s": (0.001, _WEEK_S),
    "total_s": (0.001, _WEEK_S),
    "hang_s": (0.001, _WEEK_S),
    "start_s": (0.001, _WEEK_S),
    "max_waiting": (1, 1_000_000),
    "max_waiting_bytes": (1, 64 * _GIB),
    "canary": (0, 1),
    "audit": (0, 1),
    "warm_connections": (0, 1000),
    "retention_days": (0.01, 36_500),
    "max_bytes": (1024**2, 64 * 1024 * _GIB),
    "silent_s": (0.1, _WEEK_S),
    "learn_cpu_s": (1, 86_400),
    "learn_memory_bytes": (256 * 1024**2, 1024 * _GIB),
    "input": (0, 1_000_000),
    "output": (0, 1_000_000),
    "cached": (0, 1_000_000),
    "cache_write": (0, 1_000_000),
    "cache_write_1h": (0, 1_000_000),
}


def with_embedded(config: GatewayConfig, base_url: str) -> GatewayConfig:
    """The same with the running engine's base URL wherever a route names it."""
    return msgspec.structs.replace(
        config,
        route=tuple(
            msgspec.structs.replace(route, upstream=base_url)
            if route.upstream == EMBEDDED
            else route
            for route in config.route
        ),
    )


def load_config(path: Path) -> GatewayConfig:
    """Raises `ConfigError` that names the file and, where it can be told, line and nearest key."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from error
    try:
        raw: dict[str, Any] = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: {error}") from error
    _refuse_unknown_keys(path, text, raw)
    try:
        config = msgspec.convert(raw, GatewayConfig)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{path}: {_placed(text, str(error))}") from error
    checked(config, str(path))
    return config


def checked(config: GatewayConfig, where: str) -> GatewayConfig:
    """The same configuration if it can be meant. Raises `ConfigError`."""
    if not config.route:
        raise ConfigError(f"{where}: at least one [[route]] is needed")
    paths: set[str] = set()
    audits: dict[str, float | str] = {}
    for index, route in enumerate(config.route):
        here = f"{where}: route {index + 1}"
        _check_dialects(route, here)
        if route.upstream != EMBEDDED:
            _check_url(route.upstream, here)
        elif route.api_key_env is not None:
            raise ConfigError(f"{here}: api_key_env has no use: upstream {EMBEDDED} takes no key")
        if not re.fullmatch(r"(/[A-Za-z0-9._~-]+)+", route.path):
            raise ConfigError(f"{here}: path must look like /v1 or /agents/returns/v1")
        if {".", ".."} & set(route.path.split("/")):
            raise ConfigError(f"{here}: path holds . or .., which clients resolve on their own")
        if any(f"{route.path}/".startswith(f"{own}/") for own in _OWN_PATHS):
            raise ConfigError(f"{here}: path {route.path} is the gateway's own")
        if route.path in paths:
            raise ConfigError(f"{here}: another route has the path {route.path}")
        paths.add(route.path)
        if not 0 < route.max_error < 1:
            raise ConfigError(f"{here}: max_error must be between 0 and 1, not {route.max_error}")
        _check_ranges(route, here, "")
        if route.price is not None:
            _check_ranges(route.price, here, "price.")
        if route.mode in ACTING_MODES and route.reflex is None:
            raise ConfigError(f"{here}: mode {route.mode} needs a reflex")
        if route.mode in ACTING_MODES and route.reflex is not None:
            other = audits.setdefault(name_of(route.reflex), route.audit)
            if other != route.audit:
                # Its acts are watched together, wherever they are made.
                raise ConfigError(
                    f"{here}: audit is {route.audit}, but {other} where else {route.reflex} may act"
                )
        if len(set(route.writes)) < len(route.writes) or not all(route.writes):
            raise ConfigError(f"{here}: writes names tools, each once")
    if not 0 <= config.port <= 65535:
        raise ConfigError(f"{where}: port must be from 0 to 65535, not {config.port}")
    if not config.host or config.host != config.host.strip():
        raise ConfigError(f"{where}: host must name an address, not {config.host!r}")
    _check_ranges(config, where, "")
    for section in _SECTIONS:
        _check_ranges(getattr(config, section), where, f"{section}.")
    return config


def _check_ranges(values: msgspec.Struct, here: str, prefix: str) -> None:
    for name in values.__struct_fields__:
        if name in _RANGES:
            low, high = _RANGES[name]
            value = getattr(values, name)
            if isinstance(value, float | int) and not low <= value <= high:  # a NaN is in no range
                raise ConfigError(
                    f"{here}: {prefix}{name} must be from {low} to {high}, not {value}"
                )


def _check_dialects(route: Route, here: str) -> None:
    known = ", ".join(NAMES)
    if not route.dialects or len(set(route.dialects)) < len(route.dialects):
        raise ConfigError(f"{here}: dialect names what the upstream speaks, each once: {known}")
    for name in route.dialects:
        if name not in NAMES:
            near = difflib.get_close_matches(name, NAMES, n=1)
            hint = f"did you mean {near[0]}?" if near else f"known are {known}"
            raise ConfigError(f"{here}: there is no dialect {name!r}; {hint}")
    if route.upstream == EMBEDDED and route.dialects != ("chat",):
        raise ConfigError(f"{here}: upstream {EMBEDDED} speaks chat; leave dialect out")


def _check_url(text: str, here: str) -> None:
    try:
        url = yarl.URL(text)
        fits = url.scheme in ("http", "https") and bool(url.host) and url.port is not None
        more = [
            name
            for name, given in (
                ("a user name or password", url.raw_user or url.raw_password),
                ("a query", "?" in text),
                ("a fragment", "#" in text),
            )
            if given
        ]
    except ValueError:
        fits, more = False, []
    if more:
        # The text is not repeated: what is wrong with it may be a secret.
        hint = "; keys belong in the variable that api_key_env names" if "@" in text else ""
        raise ConfigError(f"{here}: upstream must not hold {' or '.join(more)}{hint}")
    if not fits:
        shown = "what is given" if "@" in text else repr(text)
        raise ConfigError(
            f"{here}: upstream must be a URL such as http://127.0.0.1:9100/v1, or {EMBEDDED}, "
            f"not {shown}"
        )


_SECTIONS: dict[str, type[msgspec.Struct]] = {
    "limits": Limits,
    "timeouts": Timeouts,
    "system1": System1Limits,
    "store": StoreLimits,
    "lifecycle": Lifecycle,
    "tls": Tls,
}


def _refuse_unknown_keys(path: Path, text: str, raw: dict[str, Any]) -> None:
    """Before the decoder does: this side knows lines and nearest keys."""
    _refuse(path, text, raw, GatewayConfig, "")
    for section, kind in _SECTIONS.items():
        if isinstance(raw.get(section), dict):
            _refuse(path, text, raw[section], kind, f"{section}.")
    routes = raw.get("route")
    if isinstance(routes, list):
        for route in cast(list[Any], routes):
            if isinstance(route, dict):
                _refuse(path, text, cast(dict[str, Any], route), Route, "route.")


def _refuse(
    path: Path, text: str, given: dict[str, Any], kind: type[msgspec.Struct], prefix: str
) -> None:
    known = kind.__struct_fields__
    for key in given:
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}"
            raise ConfigError(f"{path}{_line_of(text, key)}: {prefix}{key} is not known; {hint}")


def _line_of(text: str, key: str) -> str:
    for number, line in enumerate(text.splitlines(), 1):
        if re.match(rf'\s*\[*\s*"?{re.escape(key)}"?\s*[\]=.]', line):
            return f":{number}"
    return ""


def _placed(text: str, message: str) -> str:
    """A decoder's message with the line of the key it names at its end (`$.route[0].mode`)."""
    found = re.search(r"`\$\.?([^`]*)`$", message)
    key = re.split(r"[.\[]", found.group(1))[-1] if found and found.group(1) else ""
    line = _line_of(text, key) if key and not key.endswith("]") else ""
    return f"line {line[1:]}: {message}" if line else message
