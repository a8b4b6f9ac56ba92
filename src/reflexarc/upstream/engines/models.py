"""What a model's memory follows from: its parameters and the shape of its attention."""

import difflib
import re
from typing import Literal, get_args

import msgspec

from reflexarc.steps.errors import ConfigError
from reflexarc.upstream.engines.documented import data_file

Stored = Literal["bf16", "fp8", "mxfp4", "nvfp4", "int4"]
STORED: tuple[str, ...] = get_args(Stored)
_UNITS = {"": 1e-9, "k": 1e-6, "m": 1e-3, "b": 1.0, "t": 1e3}
_count = re.compile(r"(\d+(?:\.\d+)?)\s*([kmbt]?)", re.IGNORECASE)


class Model(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`parameters_b` in 10^9, all of them. `kv_elements_per_layer`: per token, where attention is
    latent and every GPU holds the same; else None. `heads` None: not known. `context_tokens` None:
    not known."""

    parameters_b: float
    layers: int
    kv_heads: int
    head_dim: int
    heads: int | None = None
    kv_elements_per_layer: int | None = None
    context_tokens: int | None = None
    stored: Stored = "bf16"

    def __post_init__(self) -> None:
        for name in ("parameters_b", "layers", "kv_heads", "head_dim"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be positive, not {getattr(self, name)}")

    @property
    def parameters(self) -> int:
        return round(self.parameters_b * 1e9)

    def kv_elements_per_token(self, gpus: int) -> int:
        """That each of so many GPUs holds with tensor parallelism: heads are divided as long as
        there are some, and then kept by several GPUs."""
        if self.kv_elements_per_layer is not None:
            return self.layers * self.kv_elements_per_layer
        heads = max(1, -(-self.kv_heads // gpus))
        return 2 * self.layers * heads * self.head_dim

    def divides(self, gpus: int) -> bool:
        """Whether tensor parallelism over so many is possible, as far as is known."""
        if self.heads is not None and self.heads % gpus:
            return False
        if self.kv_elements_per_layer is not None:
            return True
        return self.kv_heads % gpus == 0 or gpus % self.kv_heads == 0


class Given(msgspec.Struct, frozen=True):
    """A model's shape as options give it; None: not given."""

    parameters: str | None = None
    layers: int | None = None
    kv_heads: int | None = None
    head_dim: int | None = None
    heads: int | None = None
    stored: Stored | None = None


def load_models() -> dict[str, Model]:
    """All that are known, by the name of their repository."""
    return msgspec.convert(data_file("models.toml"), dict[str, Model])


def whole_name(name: str) -> str:
    """The repository that is meant by its name or the part of it after the slash, in any case;
    what is not known is left as it is."""
    wanted = name.lower()
    for known in load_models():
        if wanted in (known.lower(), known.lower().rpartition("/")[2]):
            return known
    return name


def known_model(name: str) -> Model | None:
    """None: nothing is known of it here."""
    return load_models().get(whole_name(name))


def model_named(name: str, given: Given) -> Model:
    """What is known, with what is given in its place. Raises `ConfigError` that says what must be
    given for a model that is not known."""
    known = known_model(name)
    billions = None if given.parameters is None else parameters_b(given.parameters)
    layers, kv_heads, head_dim = given.layers, given.kv_heads, given.head_dim
    if known is not None:
        shape = {"layers": layers, "kv_heads": kv_heads, "head_dim": head_dim}
        changed = {key: value for key, value in shape.items() if value is not None}
        return msgspec.structs.replace(
            known,
            parameters_b=billions or known.parameters_b,
            heads=given.heads or known.heads,
            stored=given.stored or known.stored,
            kv_elements_per_layer=None if changed else known.kv_elements_per_layer,
            **changed,
        )
    if billions is None or layers is None or kv_heads is None or head_dim is None:
        raise ConfigError(_what_to_give(name, given))
    try:
        return Model(
            billions, layers, kv_heads, head_dim, given.heads, None, None, given.stored or "bf16"
        )
    except ValueError as error:
        raise ConfigError(f"the model {name!r}: {error}") from error


def parameters_b(text: str) -> float:
    """`70B`, `0.6b`, `671000M` or a plain number, in 10^9. Raises `ConfigError`."""
    found = _count.fullmatch(text.strip())
    billions = float(found[1]) * _UNITS[found[2].lower()] if found else 0.0
    if billions <= 0:
        raise ConfigError(f"{text!r} is no number of parameters: give one such as 70B or 135M")
    return billions


def _what_to_give(name: str, given: Given) -> str:
    options = {
        "--parameters (such as 70B)": given.parameters,
        "--layers": given.layers,
        "--kv-heads": given.kv_heads,
        "--head-dim": given.head_dim,
    }
    missing = ", ".join(option for option, value in options.items() if value is None)
    # People leave out the owner, and do not mind capitals.
    known = {one.rpartition("/")[2].lower(): one for one in load_models()}
    near = difflib.get_close_matches(name.rpartition("/")[2].lower(), known, 1, 0.6)
    meant = (
        f" Did you mean {known[near[0]]}?" if near else " reflexarc engines list has those known."
    )
    return (
        f"nothing is known here of the model {name!r}, so its memory cannot be reckoned: give "
        f"{missing}. Its config.json has them: num_hidden_layers, num_key_value_heads, head_dim "
        f"(or hidden_size / num_attention_heads). {meant}"
    )
