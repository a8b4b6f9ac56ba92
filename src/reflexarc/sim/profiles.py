"""Latency and price profiles of the simulated System 2, read from `profiles.toml`."""

import math
import tomllib
from decimal import Decimal
from importlib import resources
from pathlib import Path

import msgspec

from reflexarc.steps.errors import ConfigError

PUBLISHED_PROMPT_TOKENS = 25_000
PUBLISHED_OUTPUT_TOKENS = 15
PUBLISHED_LATENCY_MS = {"gpu": 1440.0, "lpu": 580.0}


class Profile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One service. Times in ms, rates in tokens a second, prices in dollars a million tokens.
    `power_w`: what its device takes while it works, in watts; None: not known, and nothing is said
    of energy."""

    description: str
    network_ms: float
    queue_ms: float
    prefill_tokens_per_s: float
    output_tokens_per_s: float
    cache_block_tokens: int
    cache_min_tokens: int
    cache_capacity_tokens: int
    usd_per_million_input: Decimal
    usd_per_million_cached_input: Decimal
    usd_per_million_output: Decimal
    power_w: float | None = None

    def __post_init__(self) -> None:
        for name in ("prefill_tokens_per_s", "output_tokens_per_s", "cache_block_tokens"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be positive, not {getattr(self, name)}")
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if isinstance(value, int | float | Decimal) and not 0 <= value < math.inf:
                raise ValueError(f"{name} must not be negative, not {value}")
        if self.power_w == 0:
            raise ValueError("power_w must be positive; leave it out where it is not known")

    def first_token_ms(self, prompt_tokens: int, cached_tokens: int) -> float:
        """Until the first output token begins: network, queue, prefill of what is not cached."""
        uncached_tokens = max(0, prompt_tokens - cached_tokens)
        return self.network_ms + self.queue_ms + uncached_tokens / self.prefill_tokens_per_s * 1e3

    def latency_ms(self, prompt_tokens: int, cached_tokens: int, output_tokens: int) -> float:
        """Of a whole answer."""
        writing_ms = output_tokens / self.output_tokens_per_s * 1e3
        return self.first_token_ms(prompt_tokens, cached_tokens) + writing_ms

    def energy_j(self, prompt_tokens: int, cached_tokens: int, output_tokens: int) -> float | None:
        """Of a whole answer, in joules: power times the time in which it reads what is not cached
        and writes. Not divided among requests that the device serves at once, and nothing for
        network, queue or an idle device. None where the power is not known."""
        if self.power_w is None:
            return None
        reading_s = max(0, prompt_tokens - cached_tokens) / self.prefill_tokens_per_s
        return self.power_w * (reading_s + output_tokens / self.output_tokens_per_s)

    def cost_usd(self, prompt_tokens: int, cached_tokens: int, output_tokens: int) -> Decimal:
        """Each token counted once: cached input, other input, output."""
        return (
            (prompt_tokens - cached_tokens) * self.usd_per_million_input
            + cached_tokens * self.usd_per_million_cached_input
            + output_tokens * self.usd_per_million_output
        ) / 1_000_000


ENERGY = (
    "energy is simulated: {power_w:g} W while a request is read and written, not divided among "
    "requests served at once; nothing for network, queue, idle devices or System 1"
)
"""How figures of energy are to be read; to be filled in with the profile's power."""


def profile_named(name: str, path: Path | None = None) -> Profile:
    """One of them. Raises `ConfigError` that names the others."""
    known = load_profiles(path)
    if name not in known:
        raise ConfigError(f"there is no profile {name!r}; there are {', '.join(known)}")
    return known[name]


def load_profiles(path: Path | None = None) -> dict[str, Profile]:
    """The shipped profiles, or those of another file of the same form. Raises `ConfigError`."""
    where = str(path) if path is not None else "the shipped profiles.toml"
    try:
        if path is not None:
            text = path.read_text("utf-8")
        else:
            text = resources.files("reflexarc.sim").joinpath("profiles.toml").read_text("utf-8")
        return msgspec.convert(tomllib.loads(text), dict[str, Profile])
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{where} cannot be read: {error}") from error
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise ConfigError(f"{where} is not a file of profiles: {error}") from error
