"""`reflexarc sim`: the simulated System 2 on a port of this machine."""

import os
import socket
from contextlib import suppress
from pathlib import Path

import click
import uvicorn

from reflexarc.bench.desk import ReturnsDeskSystem2
from reflexarc.sim import Policy, RecordedPolicy, SimulatedSystem2, profile_named
from reflexarc.steps.errors import ConfigError
from reflexarc.traces import read_sessions

_GRACE_S = 2
_SCRIPTED = {"returns_desk": ReturnsDeskSystem2}


@click.command(name="sim")
@click.option(
    "--profile",
    default="gpu",
    show_default=True,
    help="Latency profile: gpu, lpu, jalapeno, jalapeno-turbo, or one of --profiles.",
)
@click.option("--port", default=9100, show_default=True, type=click.IntRange(0, 65535))
@click.option("--host", default="127.0.0.1", show_default=True)
@click.option(
    "--policy",
    default="scripted:returns_desk",
    show_default=True,
    help="scripted:NAME, or recorded:FILE of session JSONL.",
)
@click.option("--salt", default="", help="Another draw of a scripted policy's variation.")
@click.option("--model", default=None, help="Name of the model; default: the policy's own.")
@click.option(
    "--time-scale",
    default=1.0,
    show_default=True,
    type=click.FloatRange(0, 100),
    help="Multiplies every wait; 0 answers at once.",
)
@click.option(
    "--profiles",
    default=None,
    type=click.Path(path_type=Path, dir_okay=False),
    help="A file of profiles instead of the shipped one.",
)
def command(
    profile: str,
    port: int,
    host: str,
    policy: str,
    salt: str,
    model: str | None,
    time_scale: float,
    profiles: Path | None,
) -> None:
    """Serve an OpenAI-compatible simulated LLM: POST /v1/chat/completions, GET /v1/models.

    Its answers are scripted or recorded; its latency follows the profile. Port 0 takes a free one.
    """
    service = profile_named(profile, profiles)
    chosen = _policy(policy, salt)
    app = SimulatedSystem2(chosen, service, time_scale=time_scale, model=model)
    try:
        listener = socket.create_server((host, port), backlog=1024)
    except OSError as error:
        # an address error says its place twice; a name that is not found has numbers of its own
        if error.errno is None or isinstance(error, socket.gaierror):
            why = error.strerror
        else:
            why = os.strerror(error.errno)
        raise ConfigError(f"cannot listen on {host}:{port}: {why}") from error
    where = f"http://{host}:{listener.getsockname()[1]}/v1"
    what = f"{model or chosen.model}, profile {profile}, {policy}"
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, timeout_graceful_shutdown=_GRACE_S
    )
    server = _Server(config, f"simulated System 2 on {where} ({what})")
    with suppress(KeyboardInterrupt):  # uvicorn has stopped in order, then passes Ctrl-C on
        server.run(sockets=[listener])


class _Server(uvicorn.Server):
    """Says where it listens once it does; callers that start it wait for this line."""

    def __init__(self, config: uvicorn.Config, banner: str) -> None:
        super().__init__(config)
        self._banner = banner

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        click.echo(self._banner)


def _policy(text: str, salt: str) -> Policy:
    kind, _, name = text.partition(":")
    if kind == "scripted" and name in _SCRIPTED:
        return _SCRIPTED[name](salt)
    if kind == "recorded" and name:
        sessions = read_sessions([name], on_bad_line=lambda error: click.echo(error, err=True))
        if not sessions:
            raise ConfigError(f"{name} holds no session to answer from")
        return RecordedPolicy(sessions)
    choices = ", ".join(f"scripted:{known}" for known in _SCRIPTED)
    raise ConfigError(f"--policy {text}: must be {choices} or recorded:FILE")
