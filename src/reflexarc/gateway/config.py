"""The gateway's configuration as structs. `config_reading` makes them of TOML."""

from typing import Literal

import msgspec

from reflexarc.gateway.config_pool import (
    MODELS,
    AccountsConfig,
    ModelConfig,
    Price,
    ProviderConfig,
    QueueConfig,
    Tier,
    TiersConfig,
)
from reflexarc.gateway.config_prune import PruneConfig
from reflexarc.gateway.system1 import System1Limits
from reflexarc.steps import Effect
from reflexarc.store.records import Policy
from reflexarc.upstream import Timeouts
from reflexarc.upstream.embedded import EngineOptions

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


class Repair(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is mended of prompts so that they begin as the ones before them: nothing unless asked.

    `tool_order`: `stable` keeps tools in the order in which a session had them first.
    `volatile_system`: `move` tells lines of the system prompt that hold clocks, ids or counters,
    and were seen changing, at the end of the prompt. `breakpoints`: `auto` sets Anthropic's marks
    for caches where a prompt is read again. `prompt_cache_key`: `session` names the session to
    OpenAI's API. `keep_warm`: a prompt is asked with again before its cache ends, where that is
    cheaper than what is to be expected without.
    """

    tool_order: Literal["off", "stable"] = "off"
    volatile_system: Literal["off", "move"] = "off"
    breakpoints: Literal["off", "auto"] = "off"
    prompt_cache_key: Literal["off", "session"] = "off"
    keep_warm: bool = False

    @property
    def mends(self) -> bool:
        """Whether anything of a request may change."""
        words = self.tool_order, self.volatile_system, self.breakpoints, self.prompt_cache_key
        return words != ("off",) * 4


class Route(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One agent's door: requests under `path` go to `upstream` (its base URL, with `/v1`, or
    `embedded`, or `models`: to a deployment of the model that is asked for).

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
    for what steps cost. `cache_s`: how long a prompt stays in its cache that is not asked with
    again; what a request itself says of that goes before. `repair`: docs/context.md. `prune`,
    where given: what is out of date in a prompt may be left out of it (docs/pruning.md).

    With `upstream = "models"`: `models` are those that may be asked for (none named: all), `tier`
    is where a step belongs that says nothing of it, and what is `local_only` never leaves for a
    provider that is not local.
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
    cache_s: float = 300.0
    repair: Repair = Repair()
    prune: PruneConfig | None = None
    models: tuple[str, ...] = ()
    tier: Tier | None = None
    local_only: bool = False

    @property
    def pooled(self) -> bool:
        """Whether the request's model says where it goes."""
        return self.upstream == MODELS

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
    provider: dict[str, ProviderConfig] = {}
    model: dict[str, ModelConfig] = {}
    alias: dict[str, str] = {}
    tier: TiersConfig = TiersConfig()
    accounts: AccountsConfig = AccountsConfig()
    queue: QueueConfig = QueueConfig()
    engine: EngineOptions = EngineOptions()
    state: str | None = None
