"""The flags of each engine for what was chosen, each with its reason."""

from collections.abc import Iterator

import msgspec

from reflexarc.steps.errors import ConfigError
from reflexarc.upstream.engines.choosing import Choice
from reflexarc.upstream.engines.documented import Engine, Flag, RequestField, Value
from reflexarc.upstream.engines.gpus import Gpu

CHUNK_TOKENS = 8192
DRAFT_TOKENS = 5
NGRAM = "ngram"
PRIORITY = "0 interactive, 10 standard, 20 batch"
_PRIORITIES = "requests of the tier interactive go before standard and batch when it is full"


class Setting(msgspec.Struct, frozen=True):
    """What a command has to say. `draft`: a model's name, `ngram`, or None."""

    model: str
    gpu: Gpu
    stored: str
    choice: Choice
    context_tokens: int
    sequences: int
    draft: str | None
    lmcache: bool
    tool_parser: str | None
    host: str
    port: int


Line = tuple[str, Value | None, str]


def flags(key: str, engine: Engine, setting: Setting) -> list[Flag]:
    """Raises `ConfigError` where an engine cannot do what is wished."""
    lines = {"vllm": _vllm, "sglang": _sglang, "llamacpp": _llamacpp}[key]
    return [engine.flag(option, value, why) for option, value, why in lines(setting)]


def requests(key: str, engine: Engine) -> list[RequestField]:
    """What requests should carry, so that tenants and tiers are kept apart."""
    if key == "llamacpp":
        return [
            engine.field("cache_prompt", "true", "the prefix of the last request is read no more"),
            engine.field("id_slot", "a number", "a session comes back to the slot with its prefix"),
        ]
    salt = "a secret for each tenant: nobody finds by its speed what others have asked"
    return [
        engine.field("cache_salt", "a random text for each tenant", salt),
        engine.field("priority", PRIORITY, "lower goes first: " + _PRIORITIES),
    ]


def _vllm(setting: Setting) -> Iterator[Line]:
    choice = setting.choice
    yield "--host", setting.host, "where it listens: reflexarc stands before it"
    yield "--port", setting.port, "its port"
    if choice.gpus > 1:
        yield "--tensor-parallel-size", choice.gpus, _divided(choice)
    yield "--max-model-len", setting.context_tokens, "the longest prompt and answer together"
    yield "--gpu-memory-utilization", 0.9, "what it may take of each GPU; the plan reckons with it"
    if choice.weights != setting.stored:
        form = {"fp8": "fp8_per_tensor", "nvfp4": "nvfp4_per_token"}[choice.weights]
        yield "--quantization", form, _made_smaller(choice)
    if choice.kv == "fp8":
        yield "--kv-cache-dtype", "fp8", _small_cache("FP8")
    yield "--enable-prefix-caching", None, "an agent's next step finds its prompt already read"
    yield (
        "--enable-chunked-prefill",
        None,
        "long prompts are read in pieces: others write on",
    )
    chunk = max(CHUNK_TOKENS, setting.sequences)
    yield "--max-num-batched-tokens", chunk, "how much is read or written in one pass"
    yield "--max-num-seqs", setting.sequences, "agents that are answered at once"
    yield "--scheduling-policy", "priority", _PRIORITIES
    yield "--enable-prompt-tokens-details", None, "its answers say how much of a prompt was cached"
    if setting.draft == NGRAM:
        lookup: dict[str, str | int | float] = {
            "method": "ngram",
            "num_speculative_tokens": DRAFT_TOKENS,
            "prompt_lookup_max": 4,
            "prompt_lookup_min": 2,
        }
        yield "--speculative-config", lookup, _guessed("what stood in the prompt before")
    elif setting.draft is not None:
        drafted: dict[str, str | int | float] = {
            "method": "draft_model",
            "model": setting.draft,
            "num_speculative_tokens": DRAFT_TOKENS,
        }
        yield "--speculative-config", drafted, _guessed("a small model of the same vocabulary")
    if setting.lmcache:
        connector: dict[str, str | int | float] = {
            "kv_connector": "LMCacheConnectorV1",
            "kv_role": "kv_both",
        }
        yield "--kv-transfer-config", connector, _kept_elsewhere()
    if setting.tool_parser is not None:
        yield "--enable-auto-tool-choice", None, "the model may call tools"
        yield "--tool-call-parser", setting.tool_parser, "how this model writes its calls"


def _sglang(setting: Setting) -> Iterator[Line]:
    choice = setting.choice
    if setting.draft == NGRAM and setting.gpu.vendor != "nvidia":
        raise ConfigError("--draft ngram: SGLang does it on CUDA, not on this GPU; leave it out")
    yield "--host", setting.host, "where it listens: reflexarc stands before it"
    yield "--port", setting.port, "its port"
    if choice.gpus > 1:
        yield "--tp-size", choice.gpus, _divided(choice)
    yield "--context-length", setting.context_tokens, "the longest prompt and answer together"
    yield "--mem-fraction-static", 0.85, "for weights and KV cache; the plan reckons with it"
    if choice.weights != setting.stored:
        form = {"fp8": "fp8", "nvfp4": "nvfp4_online"}[choice.weights]
        yield "--quantization", form, _made_smaller(choice)
    if choice.kv == "fp8":
        yield "--kv-cache-dtype", "fp8_e4m3", _small_cache("FP8")
    yield (
        "--chunked-prefill-size",
        CHUNK_TOKENS,
        "long prompts are read in such pieces",
    )
    yield "--max-running-requests", setting.sequences, "agents that are answered at once"
    yield "--enable-priority-scheduling", None, _PRIORITIES
    yield "--schedule-low-priority-values-first", None, "as in vLLM: the lower number goes first"
    yield "--default-priority-value", 10, "requests that say nothing are standard"
    yield "--enable-cache-report", None, "its answers say how much of a prompt was cached"
    yield "--enable-metrics", None, "what its cache and its queue do can be watched"
    if setting.draft == NGRAM:
        yield "--speculative-algorithm", "NGRAM", _guessed("what was written before")
        yield "--speculative-num-draft-tokens", DRAFT_TOKENS, "tokens that are guessed at once"
    elif setting.draft is not None:
        yield "--speculative-algorithm", "STANDALONE", _guessed("a small model of the same kind")
        yield "--speculative-draft-model-path", setting.draft, "the small model"
        yield "--speculative-num-steps", DRAFT_TOKENS - 1, "steps of the small model"
        yield "--speculative-eagle-topk", 1, "one guess at each step"
        yield "--speculative-num-draft-tokens", DRAFT_TOKENS, "tokens that are guessed at once"
    if setting.lmcache:
        yield "--enable-lmcache", None, _kept_elsewhere()
    if setting.tool_parser is not None:
        yield "--tool-call-parser", setting.tool_parser, "how this model writes its calls"


def _llamacpp(setting: Setting) -> Iterator[Line]:
    choice = setting.choice
    if setting.lmcache:
        raise ConfigError("--lmcache: llama.cpp does not know it; it has --slot-save-path")
    if setting.tool_parser is not None:
        raise ConfigError("--tool-parser: llama.cpp goes by the model's own template")
    yield "--host", setting.host, "where it listens: reflexarc stands before it"
    yield "--port", setting.port, "its port"
    yield "--gpu-layers", "all", "every layer lies on a GPU"
    if choice.gpus > 1:
        yield "--split-mode", "layer", f"layers and their KV cache go to {choice.gpus} GPUs"
    whole = setting.context_tokens * setting.sequences
    yield "--ctx-size", whole, f"of all slots together: {setting.context_tokens} tokens for each"
    yield "--parallel", setting.sequences, "slots: agents that are answered at once"
    yield "--cont-batching", None, "an answer need not wait for the others' end"
    yield "--flash-attn", "on", "attention in pieces; a quantized cache of values needs it"
    if choice.kv == "q8_0":
        yield "--cache-type-k", "q8_0", _small_cache("8 bits")
        yield "--cache-type-v", "q8_0", _small_cache("8 bits")
    yield "--cache-prompt", None, "an agent's next step finds its prompt already read"
    yield "--slot-save-path", "slots", "an idle session's state can be saved and brought back"
    yield "--jinja", None, "the model's own template: tools need it"
    yield "--metrics", None, "what it does can be watched"
    if setting.draft == NGRAM:
        yield "--spec-type", "ngram-simple", _guessed("what stood in the prompt before")
    elif setting.draft is not None:
        yield "--spec-type", "draft-simple", _guessed("a small model of the same vocabulary")
        yield "--spec-draft-model", setting.draft, "the small model, a GGUF file"
        yield "--spec-draft-n-max", DRAFT_TOKENS, "tokens that are guessed at once"


def _divided(choice: Choice) -> str:
    return f"each layer is divided among {choice.gpus} GPUs"


def _made_smaller(choice: Choice) -> str:
    return (
        f"weights are made into {choice.weights.upper()} at the start; leave it out for files that "
        "hold it already. Check the answers: it changes them"
    )


def _small_cache(what: str) -> str:
    return f"KV cache in {what}: nearly twice the tokens. Check the answers: it changes them"


def _guessed(by: str) -> str:
    return (
        f"next tokens are guessed by {by} and checked at once: faster for few agents, perhaps "
        "slower when it is full; measure both"
    )


def _kept_elsewhere() -> str:
    return "LMCache (to be installed beside it) keeps KV caches in main memory when the GPU is full"
