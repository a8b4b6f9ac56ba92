"""`reflexarc engines`: launch commands for engines on GPUs, planned here, run elsewhere."""

from typing import cast, get_args

import click
from rich.console import Console

from reflexarc.cli.tables import json_option, out, table, write_json
from reflexarc.steps.errors import ReflexarcError
from reflexarc.upstream.engines import (
    ENGINES,
    Plan,
    Wish,
    load_engine,
    load_gpus,
    load_models,
    plan,
)
from reflexarc.upstream.engines.choosing import GGUF
from reflexarc.upstream.engines.models import Given, Stored

_GB = 1e9


class DoesNotFitError(ReflexarcError):
    """The plan was made, and says that nothing fits."""

    code = "does_not_fit"


@click.group(name="engines")
def command() -> None:
    """Plan a vLLM, SGLang or llama.cpp server on GPUs: what fits, and the command to start it."""


@command.command(name="list")
@json_option
def list_(json_path: str | None) -> None:
    """The engines, GPUs and models that are known here."""
    gpus, models = load_gpus(), load_models()
    engines = {name: load_engine(name) for name in ENGINES}
    console = out()
    console.print(
        table(
            "Engines, and the version whose documented options are known",
            ("engine", "is", "version", "options", "model"),
            [(k, e.name, e.version, len(e.options), e.model_is) for k, e in engines.items()],
        )
    )
    console.print(
        table(
            "GPUs (memory as sold)",
            ("gpu", "is", "GB", "FP8", "FP4", "in a machine"),
            [
                (k, g.name, g.memory_gb, "yes" if g.fp8 else "", g.fp4, g.per_machine)
                for k, g in gpus.items()
            ],
        )
    )
    console.print(
        table(
            "Models; others by --parameters, --layers, --kv-heads and --head-dim",
            ("model", "10^9 parameters", "stored as", "context"),
            [(k, f"{m.parameters_b:g}", m.stored, m.context_tokens) for k, m in models.items()],
        )
    )
    write_json(json_path, {"engines": engines, "gpus": gpus, "models": models})


@command.command(name="plan")
@click.option("--engine", required=True, type=click.Choice(ENGINES))
@click.option("--gpu", required=True, help="A short name of `reflexarc engines list`.")
@click.option("--model", required=True, help="Its repository's name.")
@click.option("--gpus", type=click.IntRange(1), help="How many; default: as few as are needed.")
@click.option("--agents", default=8, show_default=True, type=click.IntRange(1, 100_000),
              help="Agents that ask at once.")  # fmt: skip
@click.option("--context", type=click.IntRange(1), help="Longest prompt and answer, in tokens.")
@click.option("--weights", default="auto", show_default=True,
              type=click.Choice(["auto", "bf16", "fp8", "fp4", "f16", "mxfp4", *GGUF]))  # fmt: skip
@click.option("--kv", default="auto", show_default=True,
              type=click.Choice(["auto", "16bit", "8bit"]), help="KV cache.")  # fmt: skip
@click.option("--draft", default="none", show_default=True,
              help="Speculation: none, ngram, or a small model's name.")  # fmt: skip
@click.option("--lmcache", is_flag=True, help="KV caches in main memory too, by LMCache.")
@click.option("--tool-parser", help="How the model writes its calls, as the engine names it.")
@click.option("--file", "file", help="llama.cpp: the GGUF file.")
@click.option("--host", default="127.0.0.1", show_default=True)
@click.option("--port", default=8000, show_default=True, type=click.IntRange(1, 65535))
@click.option("--parameters", help="Of a model that is not known here, such as 70B.")
@click.option("--layers", type=click.IntRange(1), help="num_hidden_layers of its config.json.")
@click.option("--kv-heads", type=click.IntRange(1), help="num_key_value_heads.")
@click.option("--head-dim", type=click.IntRange(1), help="head_dim.")
@click.option("--heads", type=click.IntRange(1), help="num_attention_heads.")
@click.option("--stored", type=click.Choice(get_args(Stored)), help="What its files hold.")
@click.option("--draft-parameters", help="Of a draft model that is not known here.")
@json_option
def plan_(
    engine: str,
    gpu: str,
    model: str,
    gpus: int | None,
    agents: int,
    context: int | None,
    weights: str,
    kv: str,
    draft: str,
    lmcache: bool,
    tool_parser: str | None,
    file: str | None,
    host: str,
    port: int,
    parameters: str | None,
    layers: int | None,
    kv_heads: int | None,
    head_dim: int | None,
    heads: int | None,
    stored: str | None,
    draft_parameters: str | None,
    json_path: str | None,
) -> None:
    """Print a launch command, each flag with its reason and where the engine documents it.

    Nothing is started and nothing is measured: memory is reckoned from sizes. Exit status 1 where
    it does not fit.
    """
    made = plan(
        Wish(
            engine=engine,
            gpu=gpu,
            model=model,
            given=Given(
                parameters, layers, kv_heads, head_dim, heads, cast("Stored | None", stored)
            ),
            gpus=gpus,
            agents=agents,
            context_tokens=context,
            weights=weights,
            kv=kv,
            draft=draft,
            draft_parameters=draft_parameters,
            lmcache=lmcache,
            tool_parser=tool_parser,
            file=file,
            host=host,
            port=port,
        )
    )
    write_json(json_path, made)
    if not made.fits:
        raise DoesNotFitError(" ".join(made.notes))
    _show(out(), made)


def _show(console: Console, made: Plan) -> None:
    size = made.memory_estimated
    head = f"[bold]{made.engine} {made.engine_version}[/bold] on {made.gpus} x {made.gpu}"
    console.print(head, highlight=False, soft_wrap=True)
    _plain(
        console,
        f"Estimated, of each GPU's {size.gpu_bytes / _GB:.0f} GB: weights ({made.weights}) "
        f"{size.weights_bytes / _GB:.1f} GB"
        + (f", draft model {size.draft_bytes / _GB:.1f} GB" if size.draft_bytes else "")
        + f", KV cache ({made.kv_cache}) {size.kv_bytes_per_token:,} bytes a token: room for "
        f"{size.kv_tokens:,} tokens, which is {made.full_sequences} of {made.agents} agents with "
        f"{made.context_tokens:,} each.",
    )
    console.print()
    _plain(console, made.command_line)
    console.print()
    console.print(
        table(
            f"Flags; documented in {made.documented_in}",
            ("flag", "because", "documented at"),
            [(" ".join(flag.arguments), flag.why, flag.page) for flag in made.flags],
        )
    )
    console.print(
        table(
            "What requests should carry",
            ("member", "value", "because"),
            [(field.name, field.value, field.why) for field in made.requests],
        )
    )
    for note in made.notes:
        _plain(console, note)
    console.print(f"[bold]{made.not_run}[/bold]", highlight=False, soft_wrap=True)


def _plain(console: Console, text: str) -> None:
    console.print(text, highlight=False, markup=False, soft_wrap=True)
