"""Between what a number of the configuration must be."""

from collections.abc import Callable

import msgspec

from reflexarc.steps.errors import ConfigError

_GIB = 1024**3
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
    "cache_s": (0.001, _WEEK_S),
    "keep_turns": (1, 1_000),
    "least_tokens": (0, 1_000_000),
    "least_step_tokens": (0, 10_000_000),
    "margin": (0, 1_000),
    "image_tokens": (0, 10_000_000),
    "image_bytes": (0, _GIB),
    "expected_turns": (0, 100_000),
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
    "max_parallel": (1, 1_000_000),
    "first_token_ms": (1, _WEEK_S * 1000),
    "token_ms": (0.001, _WEEK_S * 1000),
    "first_token_s": (0.001, _WEEK_S),
    "attempts": (1, 20),
    "max_output_tokens": (1, 10_000_000),
    "max_entries": (1, 1_000_000),
    "retention_hours": (0.01, 24 * 365),
    "parallel": (1, 1_000),
}


def check_ranges(values: msgspec.Struct, here: Callable[[str], str], prefix: str) -> None:
    """Raises `ConfigError`; `here` says where a key stands, `prefix` is the section that the values
    are in."""
    for name in values.__struct_fields__:
        if name in _RANGES:
            low, high = _RANGES[name]
            value = getattr(values, name)
            if isinstance(value, float | int) and not low <= value <= high:  # a NaN is in no range
                raise ConfigError(
                    f"{here(name)}: {prefix}{name} must be from {low} to {high}, not {value}"
                )
