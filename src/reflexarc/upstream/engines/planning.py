"""A plan for an engine on GPUs: whether it fits, the command with each flag's reason, what to know.

No plan has been run: it says so, and its figures of memory are estimates.
"""

import shlex
from pathlib import PurePosixPath

import msgspec

from reflexarc.steps.errors import ConfigError
from reflexarc.upstream.engines.choosing import Choice, choose
from reflexarc.upstream.engines.commands import NGRAM, Setting, flags, requests
from reflexarc.upstream.engines.documented import Engine, Flag, RequestField, load_engine
from reflexarc.upstream.engines.gpus import Gpu, gpu_named
from reflexarc.upstream.engines.models import (
    Given,
    Model,
    known_model,
    model_named,
    parameters_b,
    whole_name,
)
from reflexarc.upstream.engines.sizing import Memory

DEFAULT_CONTEXT_TOKENS = 32_768
NOT_RUN = (
    "This command was not run here, and nothing was measured: memory is reckoned from sizes, and "
    "flags are those the engine documents for this version. The engine itself says at its start "
    "how many tokens it holds."
)


class Wish(msgspec.Struct, frozen=True):
    """What is asked for. `gpus` None: as few as are needed. `context_tokens` None: the model's, at
    most 32,768. `weights`: auto, bf16, fp8, fp4, or a format of GGUF. `kv`: auto, 16bit, 8bit.
    `draft`: none, ngram or a model's name; `draft_parameters` where that is not known here.
    `file`: the GGUF file, for llama.cpp."""

    engine: str
    gpu: str
    model: str
    given: Given = Given()
    gpus: int | None = None
    agents: int = 8
    context_tokens: int | None = None
    weights: str = "auto"
    kv: str = "auto"
    draft: str = "none"
    draft_parameters: str | None = None
    lmcache: bool = False
    tool_parser: str | None = None
    file: str | None = None
    host: str = "127.0.0.1"
    port: int = 8000


class Plan(msgspec.Struct, frozen=True):
    """`command` is empty where it does not fit. `sequences` are answered at once; `full_sequences`
    of them fit with their whole context (estimated)."""

    engine: str
    engine_version: str
    documented_in: str
    gpu: str
    gpus: int
    model: str
    weights: str
    kv_cache: str
    context_tokens: int
    agents: int
    sequences: int
    full_sequences: int
    fits: bool
    memory_estimated: Memory
    command: tuple[str, ...]
    flags: tuple[Flag, ...]
    requests: tuple[RequestField, ...]
    notes: tuple[str, ...]
    was_run: bool = False
    not_run: str = NOT_RUN

    @property
    def command_line(self) -> str:
        return shlex.join(self.command)


def plan(wish: Wish) -> Plan:
    """Raises `ConfigError` for what is not known or cannot be granted, with what to give instead.
    What merely does not fit is a plan that says so."""
    engine = load_engine(wish.engine)
    gpu = gpu_named(wish.gpu)
    model = model_named(wish.model, wish.given)
    name = whole_name(wish.model)
    if gpu.vendor not in engine.gpu_vendors:
        raise ConfigError(f"{engine.name} does not run on {gpu.name}")
    if wish.agents < 1:
        raise ConfigError(f"--agents {wish.agents}: at least 1")
    context = _context(wish, model)
    draft = _draft(wish)
    choice = choose(
        wish.engine,
        gpu,
        model,
        draft,
        gpus=wish.gpus,
        weights=wish.weights,
        kv=wish.kv,
        context_tokens=context,
        agents=wish.agents,
    )
    fits = choice.full > 0
    # Slots of llama.cpp are fixed shares of the cache; the others share it as it is needed.
    slots = min(wish.agents, choice.full) if wish.engine == "llamacpp" else wish.agents
    sequences = slots if fits else 0
    lines: list[Flag] = []
    command: tuple[str, ...] = ()
    if fits:
        setting = Setting(
            model=name,
            gpu=gpu,
            stored=model.stored,
            choice=choice,
            context_tokens=context,
            sequences=sequences,
            draft=None if wish.draft == "none" else whole_name(wish.draft),
            lmcache=wish.lmcache,
            tool_parser=wish.tool_parser,
            host=wish.host,
            port=wish.port,
        )
        lines = flags(wish.engine, engine, setting)
        command = _command(engine, lines, _named(wish, choice))
    return Plan(
        engine=engine.name,
        engine_version=engine.version,
        documented_in=engine.source,
        gpu=gpu.name,
        gpus=choice.gpus,
        model=name,
        weights=choice.weights,
        kv_cache=choice.kv,
        context_tokens=context,
        agents=wish.agents,
        sequences=sequences,
        full_sequences=min(choice.full, wish.agents),
        fits=fits,
        memory_estimated=choice.memory,
        command=command,
        flags=tuple(lines),
        requests=tuple(requests(wish.engine, engine)) if fits else (),
        notes=tuple(_notes(wish, model, gpu, draft, choice, context)),
    )


def _command(engine: Engine, lines: list[Flag], model: str) -> tuple[str, ...]:
    first = (model,)
    if engine.model:
        first = engine.flag(engine.model, model, "the model").arguments
    elif model.startswith("-"):
        raise ConfigError(f"{model!r} is no model's name")
    return (*engine.launch, *first, *(text for line in lines for text in line.arguments))


def _context(wish: Wish, model: Model) -> int:
    own = model.context_tokens
    if wish.context_tokens is None:
        return min(own or DEFAULT_CONTEXT_TOKENS, DEFAULT_CONTEXT_TOKENS)
    if wish.context_tokens < 1:
        raise ConfigError(f"--context {wish.context_tokens}: at least 1")
    if own is not None and wish.context_tokens > own:
        raise ConfigError(f"--context {wish.context_tokens}: {wish.model} has {own:,} at most")
    return wish.context_tokens


def _draft(wish: Wish) -> Model | None:
    if wish.draft in ("none", NGRAM):
        return None
    known = known_model(wish.draft)
    if wish.draft_parameters is not None:
        size = parameters_b(wish.draft_parameters)
        if known is not None:
            return msgspec.structs.replace(known, parameters_b=size)
        return Model(size, 1, 1, 1)  # its shape is not known: its cache is not counted, and said so
    if known is None:
        raise ConfigError(
            f"nothing is known here of the draft model {wish.draft!r}: give --draft-parameters "
            "(such as 0.6B), or --draft ngram, which needs no model"
        )
    return known


def _named(wish: Wish, choice: Choice) -> str:
    if wish.engine != "llamacpp":
        if wish.file is not None:
            raise ConfigError("--file: only llama.cpp takes a GGUF file; give the model's name")
        return whole_name(wish.model)
    return wish.file or f"{PurePosixPath(wish.model).name}-{choice.weights}.gguf"


def _notes(
    wish: Wish, model: Model, gpu: Gpu, draft: Model | None, choice: Choice, context: int
) -> list[str]:
    notes: list[str] = []
    if choice.full == 0:
        need = choice.memory.weights_bytes + choice.memory.draft_bytes
        notes.append(
            f"It does not fit on {choice.gpus} of {gpu.name}: weights take about "
            f"{need / 1e9:.1f} GB of each one's {choice.memory.usable_bytes / 1e9:.1f} GB, which "
            f"leaves {choice.memory.kv_tokens:,} tokens of KV cache where one sequence needs "
            f"{context:,}. More or larger GPUs, smaller --weights or a "
            "shorter --context would help."
        )
        return notes
    if choice.full < wish.agents:
        wait = "have no slot and wait" if wish.engine == "llamacpp" else "wait or are read again"
        notes.append(
            f"About {choice.full} of {wish.agents} agents fit at once with {context:,} tokens "
            f"each; "
            f"past that, others {wait}. Prompts that are shorter or begin alike need less."
        )
    if choice.weights in ("fp8", "nvfp4", "mxfp4") and choice.weights == model.stored:
        units = gpu.fp8 if choice.weights == "fp8" else gpu.fp4 != ""
        if not units:
            notes.append(
                f"{gpu.name} does not compute in {choice.weights.upper()}: weights stay small in "
                "memory and are computed in 16 bits, where the engine has a kernel for that."
            )
    if model.context_tokens is None:
        notes.append("Its longest context is not known here: see max_position_embeddings.")
    if known_model(wish.model) is None:
        notes.append("The model's shape is as given, not known here.")
    if draft is not None and known_model(wish.draft) is None:
        notes.append("The draft model's own KV cache is not counted: its shape is not known here.")
    if gpu.vendor == "amd":
        notes.append("On AMD the engine must be its ROCm build; kernels for small formats vary.")
    if wish.engine == "llamacpp":
        notes.append(
            "Its prompt cache is not kept apart by tenant, and it knows no priorities: run one for "
            "each tenant that must not be seen by others; reflexarc's tiers still order what waits."
        )
        if wish.file is None:
            notes.append("The name of the GGUF file is a stand-in: give yours with --file.")
    elif wish.tool_parser is None:
        notes.append(
            "No parser of tool calls is set, so an agent's calls would come as text: give the "
            "model's with --tool-parser."
        )
    return notes
