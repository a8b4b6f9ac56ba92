"""How many GPUs, which weights and which KV cache: the first choice that holds what is wished.

Weights stay as they are stored unless another format is asked for or they do not fit otherwise; of
what remains, the fewest GPUs.
"""

from collections.abc import Iterator

import msgspec

from reflexarc.steps.errors import ConfigError
from reflexarc.upstream.engines.gpus import Gpu, load_gpus
from reflexarc.upstream.engines.models import Model
from reflexarc.upstream.engines.sizing import Memory, memory

GGUF = ("q8_0", "q6_k", "q5_k_m", "q4_k_m")


class Choice(msgspec.Struct, frozen=True):
    """`full` sequences of the whole context fit at once."""

    gpus: int
    weights: str
    kv: str
    memory: Memory
    full: int


def choose(
    engine: str,
    gpu: Gpu,
    model: Model,
    draft: Model | None,
    *,
    gpus: int | None,
    weights: str,
    kv: str,
    context_tokens: int,
    agents: int,
) -> Choice:
    """The first that holds all agents at their whole context, else the one that holds most of
    them with the weights that are changed least. `full` is 0 where not even one fits. Raises
    `ConfigError` for a wish that cannot be granted."""
    counts = _counts(engine, gpu, model, gpus)
    caches = _caches(engine, gpu, model, kv)
    best: Choice | None = None
    for format_ in _formats(engine, gpu, model, weights):
        found = list(_all(engine, gpu, model, draft, format_, counts, caches, context_tokens))
        whole = next((one for one in found if one.full >= agents), None)
        if whole is not None:
            return whole
        most = max(found, key=_held)
        if best is None or (best.full == 0 and most.memory.kv_tokens >= best.memory.kv_tokens):
            best = most
    assert best is not None  # there is always a format, a count and a cache
    return best


def _held(choice: Choice) -> tuple[int, int, int]:
    """More is better; where nothing fits, what comes nearest."""
    size = choice.memory
    return choice.full, size.kv_tokens, -size.weights_bytes


def _all(
    engine: str,
    gpu: Gpu,
    model: Model,
    draft: Model | None,
    format_: str,
    counts: list[int],
    caches: list[str],
    context_tokens: int,
) -> Iterator[Choice]:
    for count in counts:
        for cache in caches:
            size = memory(engine, gpu, count, model, format_, cache, draft)
            yield Choice(count, format_, cache, size, size.kv_tokens // context_tokens)


def _counts(engine: str, gpu: Gpu, model: Model, gpus: int | None) -> list[int]:
    """Numbers of GPUs to try."""
    if gpus is None:
        counts = [n for n in (1, 2, 4, 8, 16) if n <= gpu.per_machine]
        return [n for n in counts if engine == "llamacpp" or model.divides(n)]
    if gpus > gpu.per_machine:
        raise ConfigError(
            f"--gpus {gpus}: a machine has at most {gpu.per_machine} of {gpu.name}, and plans over "
            "several machines are not made here; plan one machine and run several of them"
        )
    if engine != "llamacpp" and not model.divides(gpus):
        legal = [n for n in range(1, gpus) if model.divides(n)]
        raise ConfigError(
            f"--gpus {gpus}: this model's attention ({model.heads or 'unknown'} heads, "
            f"{model.kv_heads} of KV) cannot be divided among {gpus} GPUs; it can among "
            f"{', '.join(map(str, legal))}"
        )
    return [gpus]


def _formats(engine: str, gpu: Gpu, model: Model, weights: str) -> list[str]:
    """Formats of weights to try, the ones that change least first."""
    plain = model.stored == "bf16"
    if engine == "llamacpp":
        if weights == "auto":
            return ["mxfp4"] if model.stored == "mxfp4" else list(GGUF)
        if weights not in (*GGUF, "f16", "bf16", "mxfp4"):
            raise ConfigError(
                f"--weights {weights}: for llama.cpp one of auto, f16, {', '.join(GGUF)}"
            )
        return ["f16" if weights == "bf16" else weights]
    if weights in ("auto", model.stored):
        able = plain and weights == "auto"
        return [
            model.stored,
            *(["fp8"] if able and gpu.fp8 else []),
            *(["nvfp4"] if able and gpu.fp4 == "nvfp4" else []),
        ]
    if weights not in ("bf16", "fp8", "fp4"):
        raise ConfigError(
            f"--weights {weights}: one of auto, bf16, fp8, fp4; other formats come with files that "
            "hold them: say so with --stored"
        )
    if weights == "fp4" and model.stored in ("mxfp4", "nvfp4"):
        return [model.stored]
    if not plain:
        raise ConfigError(
            f"--weights {weights}: the model is stored as {model.stored}, which is not made into "
            "another format at the start; leave --weights out"
        )
    if weights == "bf16":
        return ["bf16"]
    known = load_gpus().values()
    can = gpu.fp8 if weights == "fp8" else gpu.fp4 == "nvfp4"
    if not can:
        able_ones = [one.name for one in known if (one.fp8 if weights == "fp8" else one.fp4)]
        raise ConfigError(
            f"--weights {weights}: {gpu.name} does not compute in it, or no engine here makes its "
            f"kind of it at the start; of those known here these do: {', '.join(able_ones)}"
        )
    return ["fp8" if weights == "fp8" else "nvfp4"]


def _caches(engine: str, gpu: Gpu, model: Model, kv: str) -> list[str]:
    """Formats of the KV cache to try."""
    own, small = ("f16", "q8_0") if engine == "llamacpp" else ("bf16", "fp8")
    latent = model.kv_elements_per_layer is not None
    can = engine == "llamacpp" or (gpu.fp8 and not latent)
    if kv == "auto":
        return [own, *([small] if can else [])]
    wanted = {"16bit": own, "8bit": small}[kv]
    if wanted == small and not can:
        raise ConfigError(
            "--kv 8bit: which small caches there are for latent attention depends on the kernels"
            if latent
            else f"--kv 8bit: {gpu.name} does not compute in FP8"
        )
    return [wanted]
