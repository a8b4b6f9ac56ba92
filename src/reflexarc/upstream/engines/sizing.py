"""What fits into the memory of so many GPUs: weights, and how many tokens of KV cache beside them.

Reckoned from sizes alone, never measured: an engine needs memory for its activations that depends
on the model and its kernels, and says itself at its start how many tokens it holds.
"""

import math

import msgspec

from reflexarc.upstream.engines.gpus import Gpu
from reflexarc.upstream.engines.models import Model

BITS = {
    "bf16": 16.0,
    "f16": 16.0,
    "fp8": 8.0,
    "nvfp4": 4.5,  # 4 bits, and 8 of scale for each 16 weights
    "mxfp4": 4.25,  # 4 bits, and 8 of scale for each 32
    "int4": 4.25,  # 4 bits, and 32 of scale and zero for each 128
    "q8_0": 8.5,  # 34 bytes for each 32, as llama.cpp lays its blocks out
    "q6_k": 6.5625,
    "q5_k_m": 5.7,  # a mixture: about so much over a whole model
    "q4_k_m": 4.85,
}
"""Bits a weight by format."""
KV_BITS = {"bf16": 16.0, "f16": 16.0, "fp8": 8.0, "q8_0": 8.5}
KEPT_LARGE = 1.05
"""Quantized files keep embeddings and norms in 16 bits: counted as 5% more."""
_GIB = 1024**3


class Share(msgspec.Struct, frozen=True):
    """How an engine shares out a GPU's memory. `used` is the part it may take; `reserved_bytes` of
    that are counted for activations and graphs."""

    used: float
    reserved_bytes: int


SHARES = {
    "vllm": Share(0.9, 3 * _GIB),  # --gpu-memory-utilization counts its activations in
    "sglang": Share(0.85, 0),  # --mem-fraction-static leaves them the rest
    "llamacpp": Share(1.0, 3 * _GIB),  # its margin of 1 GiB and compute buffers
}


class Memory(msgspec.Struct, frozen=True):
    """Of each GPU, in bytes; `kv_tokens` of all of them together (each token lies on every GPU, or
    a layer of it does)."""

    gpu_bytes: int
    usable_bytes: int
    weights_bytes: int
    draft_bytes: int
    kv_bytes_per_token: int
    kv_tokens: int


def weights_bytes(model: Model, format_: str) -> int:
    """Of a whole model in a format."""
    kept = 1.0 if BITS[format_] == 16 else KEPT_LARGE
    return round(model.parameters * BITS[format_] / 8 * kept)


def memory(
    engine: str, gpu: Gpu, gpus: int, model: Model, weights: str, kv: str, draft: Model | None
) -> Memory:
    """What is left for KV cache. A draft model is counted whole, in 16 bits, on every GPU, and its
    own cache likewise. `kv_tokens` is 0 where the weights alone do not fit."""
    share = SHARES[engine]
    reserved = min(share.reserved_bytes, gpu.memory_bytes // 8)
    usable = round(gpu.memory_bytes * share.used) - reserved
    layered = engine == "llamacpp"  # it divides layers among GPUs, not heads
    per_token = model.kv_elements_per_token(1 if layered else gpus) * KV_BITS[kv] / 8
    if layered:
        per_token /= gpus
    weights_each = -(-weights_bytes(model, weights) // gpus)
    draft_each = 0
    if draft is not None:
        draft_each = weights_bytes(draft, "bf16")
        per_token += draft.kv_elements_per_token(1) * KV_BITS["bf16"] / 8
    left = usable - weights_each - draft_each
    return Memory(
        gpu_bytes=gpu.memory_bytes,
        usable_bytes=usable,
        weights_bytes=weights_each,
        draft_bytes=draft_each,
        kv_bytes_per_token=math.ceil(per_token),
        kv_tokens=max(0, int(left / per_token)),
    )
