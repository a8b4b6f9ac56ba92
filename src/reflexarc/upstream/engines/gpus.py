"""Accelerators by a short name: memory, number formats, how many a machine has at most."""

import difflib

import msgspec

from reflexarc.steps.errors import ConfigError
from reflexarc.upstream.engines.documented import data_file


class Gpu(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`memory_gb` as sold, in 10^9 bytes. `fp4` names its format, "" where it has none."""

    name: str
    vendor: str
    memory_gb: int
    fp8: bool
    fp4: str
    per_machine: int
    source: str

    @property
    def memory_bytes(self) -> int:
        return self.memory_gb * 10**9


def load_gpus() -> dict[str, Gpu]:
    """All that are known, by short name."""
    return msgspec.convert(data_file("gpus.toml"), dict[str, Gpu])


def gpu_named(name: str) -> Gpu:
    """Raises `ConfigError` with the nearest name."""
    known = load_gpus()
    found = known.get(name.strip().lower().replace(" ", "-"))
    if found is None:
        near = difflib.get_close_matches(name.lower(), known, 1, 0.4)
        meant = f" (did you mean {near[0]}?)" if near else ""
        raise ConfigError(f"there is no GPU {name!r} here{meant}; there are {', '.join(known)}")
    return found
