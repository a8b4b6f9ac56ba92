"""What a model server of one's own tells of its load: `/metrics` of vLLM, SGLang and llama.cpp, and
llama.cpp's `/slots`. Pure: bytes to numbers.

Names as their documentation and sources have them (docs.vllm.ai usage/metrics, docs.sglang.io
production_metrics, llama.cpp tools/server): of several the first that is there, since they were
renamed between versions.
"""

import math
import re
from collections.abc import Iterable

import msgspec

MAX_BYTES = 4 * 1024 * 1024
"""Of one answer; what is longer is not read."""
MAX_SLOTS = 4096

_RUNNING = ("vllm:num_requests_running", "sglang:num_running_reqs", "llamacpp:requests_processing")
_WAITING = ("vllm:num_requests_waiting", "sglang:num_queue_reqs", "llamacpp:requests_deferred")
_CACHE = (
    "vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc", "sglang:token_usage",
    "llamacpp:kv_cache_usage_ratio",
)  # fmt: skip
_QUERIED = (
    "vllm:prefix_cache_queries_total", "vllm:prefix_cache_queries",
    "vllm:gpu_prefix_cache_queries_total", "vllm:gpu_prefix_cache_queries",
    "sglang:prompt_tokens_total",
)  # fmt: skip
_HIT = (
    "vllm:prefix_cache_hits_total", "vllm:prefix_cache_hits",
    "vllm:gpu_prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits",
    "sglang:cached_tokens_total", "llamacpp:prompt_tokens_cached_total",
)  # fmt: skip
_READ = ("llamacpp:prompt_tokens_total",)
"""Tokens that were looked up and not found."""
_STARTED = ("process_start_time_seconds",)
_WANTED = frozenset((*_RUNNING, *_WAITING, *_CACHE, *_QUERIED, *_HIT, *_READ, *_STARTED))
_line = re.compile(
    r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{((?:[^\"}]|\"(?:[^\"\\]|\\.)*\")*)\})?[ \t]+([^ \t]+)"
)
_label = re.compile(r"([a-zA-Z_][a-zA-Z0-9_]*)=(\"(?:[^\"\\]|\\.)*\")")
# Ranks that work on the same requests: each tells of all of them.
_SAME_WORK = frozenset({"tp_rank", "pp_rank", "moe_ep_rank", "pid"})


class Reading(msgspec.Struct, frozen=True):
    """At one moment; None what was not told. `running` and `waiting` are requests, `cache_share`
    how full the cache is (0 to 1). Since the server began: `queried` tokens looked up in the prefix
    cache and `hit` found, by which a server that began anew is known, or by `started_s`. `slots`:
    how many requests it works on at most."""

    running: float | None = None
    waiting: float | None = None
    cache_share: float | None = None
    queried: float | None = None
    hit: float | None = None
    started_s: float | None = None
    slots: int | None = None

    @property
    def load(self) -> float | None:
        """Requests at work or waiting."""
        if self.running is None and self.waiting is None:
            return None
        return (self.running or 0.0) + (self.waiting or 0.0)

    def began_anew(self, before: "Reading") -> bool:
        """Whether the server is another process than it was: nothing is cached there."""
        if self.started_s is not None and before.started_s is not None:
            return self.started_s != before.started_s
        pairs = ((self.queried, before.queried), (self.hit, before.hit))
        return any(now is not None and was is not None and now < was for now, was in pairs)


class _Slot(msgspec.Struct):
    id: int
    is_processing: bool = False


_slots = msgspec.json.Decoder(list[_Slot])


def read_metrics(data: bytes) -> Reading | None:
    """Of Prometheus' text. None where nothing is known; what cannot be read is passed over."""
    found: dict[str, dict[str, float]] = {}
    for line in data[:MAX_BYTES].decode("utf-8", "replace").split("\n"):
        matched = _line.match(line)
        if matched is None or matched[1] not in _WANTED:
            continue
        value = _number(matched[3])
        if value is None:
            continue
        of = found.setdefault(matched[1], {})
        which = _labels(matched[2] or "")
        of[which] = max(of.get(which, 0.0), value)
    if not found.keys() - {*_STARTED}:
        return None
    cache = _first(found, _CACHE)
    queried, hit, read = (_sum(_first(found, of)) for of in (_QUERIED, _HIT, _READ))
    return Reading(
        running=_sum(_first(found, _RUNNING)),
        waiting=_sum(_first(found, _WAITING)),
        cache_share=None if cache is None else min(1.0, max(cache)),
        queried=queried if read is None else read + (hit or 0.0),
        hit=hit,
        started_s=_sum(_first(found, _STARTED)),
    )


def read_slots(data: bytes) -> Reading | None:
    """Of llama.cpp's `/slots`. None for what is no such list."""
    try:
        slots = _slots.decode(data)
    except (msgspec.DecodeError, RecursionError):
        return None
    if not 0 < len(slots) <= MAX_SLOTS:
        return None
    return Reading(running=float(sum(slot.is_processing for slot in slots)), slots=len(slots))


def together(metrics: Reading | None, slots: Reading | None) -> Reading | None:
    """What both tell."""
    if metrics is None or slots is None:
        return metrics or slots
    running = slots.running if metrics.running is None else metrics.running
    return msgspec.structs.replace(metrics, running=running, slots=slots.slots)


def _labels(text: str) -> str:
    pairs = (found for found in _label.findall(text) if found[0] not in _SAME_WORK)
    return ",".join(sorted(f"{name}={value}" for name, value in pairs))


def _first(found: dict[str, dict[str, float]], names: Iterable[str]) -> list[float] | None:
    return next((list(found[name].values()) for name in names if name in found), None)


def _sum(values: list[float] | None) -> float | None:
    return None if values is None else sum(values)


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None
