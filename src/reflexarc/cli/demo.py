"""`reflexarc demo`: the returns desk on four arms."""

import signal
import tempfile
from pathlib import Path
from types import FrameType
from urllib.parse import urlsplit

import click

from reflexarc.bench.demo import SLOW, DemoOptions, run_demo
from reflexarc.bench.demo_report import print_report
from reflexarc.bench.desk.world import MODEL
from reflexarc.cli.tables import Share, json_option, out, progress, write_json
from reflexarc.reflex.learning import LEAST_ERROR
from reflexarc.sim import profile_named
from reflexarc.steps.errors import ConfigError

_QUICK_TASKS = 10


@click.command(name="demo")
@click.option("--tasks", default=40, show_default=True, type=click.IntRange(1, 1000))
@click.option(
    "--learn-tasks",
    default=60,
    show_default=True,
    type=click.IntRange(1, 10_000),
    help="Tasks recorded to learn from.",
)
@click.option("--seed", default="1", show_default=True, help="Another seed, other tasks.")
@click.option(
    "--max-error",
    default=0.05,
    show_default=True,
    type=Share(LEAST_ERROR),
    help="Largest share of wrong acts System 1 may act under.",
)
@click.option(
    "--tool-time-ms",
    default=120.0,
    show_default=True,
    type=click.FloatRange(0, 60_000),
    help="Time that every tool call takes, the same on all arms.",
)
@click.option(
    "--time-scale",
    default=1.0,
    show_default=True,
    type=click.FloatRange(0, 100),
    help="Multiplies the simulated waits; 0 measures no latency, only behaviour.",
)
@click.option(
    "--profile",
    default="lpu",
    show_default=True,
    help="Simulated service of all arms but the first: one of those of `reflexarc sim`.",
)
@click.option("--quick", is_flag=True, help=f"{_QUICK_TASKS} new tasks instead of 40.")
@click.option("--upstream", default=None, help="A real System 2: base URL ending in /v1.")
@click.option("--model", default=None, help="With --upstream: the model to ask.")
@click.option(
    "--api-key-env",
    default="OPENAI_API_KEY",
    show_default=True,
    help="With --upstream: environment variable that holds its key.",
)
@json_option
def command(
    tasks: int,
    learn_tasks: int,
    seed: str,
    max_error: float,
    tool_time_ms: float,
    time_scale: float,
    profile: str,
    quick: bool,
    upstream: str | None,
    model: str | None,
    api_key_env: str,
    json_path: str | None,
) -> None:
    """Learn a returns desk from recorded tasks, then run new tasks on four arms and compare:
    a GPU and a fast service (simulated), the latter with a plain baseline and with reflexarc.

    Takes about a minute, 3 at most. Nothing is sent anywhere unless --upstream says so.
    """
    if upstream is not None and not _is_base_url(upstream):
        raise ConfigError(
            f"--upstream must be a base URL such as https://HOST/v1, not {upstream!r}"
        )
    if (upstream is None) != (model is None):
        raise ConfigError("--upstream and --model go together: give both or neither")
    if profile == SLOW:
        raise ConfigError(f"--profile {profile}: that is the first arm's; name another service")
    profile_named(profile)
    options = DemoOptions(
        tasks=_QUICK_TASKS if quick else tasks,
        learn_tasks=learn_tasks,
        seed=seed,
        max_error=max_error,
        tool_time_ms=tool_time_ms,
        time_scale=time_scale,
        upstream=upstream,
        model=model or MODEL,
        api_key_env=api_key_env,
        profile=profile,
    )
    # A polite kill goes the way of Ctrl-C, so that the child processes are stopped then, too.
    signal.signal(signal.SIGTERM, _interrupt)
    with tempfile.TemporaryDirectory(prefix="reflexarc-demo-") as folder, progress() as show:
        report = run_demo(options, Path(folder), show)
    print_report(report, out())
    write_json(json_path, report)


def _is_base_url(text: str) -> bool:
    try:
        url = urlsplit(text)
        named = bool(url.hostname) and url.port != 0  # a port that is no number raises
    except ValueError:
        return False
    return url.scheme in ("http", "https") and named and not (url.query or url.fragment)


def _interrupt(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - a signal handler's form
    raise KeyboardInterrupt
