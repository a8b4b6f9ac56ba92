"""`reflexarc replay-test`: may System 1 act between the turns of a model that thinks?"""

import asyncio
import json
import os
import time
from pathlib import Path
from typing import Any, cast

import click
import msgspec
import yarl

from reflexarc.lifecycle.replay_test import Replayed, replay_test
from reflexarc.lifecycle.replaying import Passed, note_failed, note_passed
from reflexarc.steps.errors import ConfigError, ReflexarcError
from reflexarc.store.place import make_private, state_dir
from reflexarc.upstream import Timeouts, Transport


@click.command(name="replay-test")
@click.option("--upstream", required=True, help="Base URL of System 2, with its /v1.")
@click.option("--model", required=True, help="The model's name as agents send it.")
@click.option("--api-key-env", help="Environment variable with the API key.")
@click.option(
    "--fields",
    default="{}",
    help='Further fields of each request: \'{"reasoning_effort": "low"}\'.',
)
@click.option("--timeout", "timeout_s", default=120.0, type=click.FloatRange(1, 3600))
@click.option(
    "--state", type=click.Path(path_type=Path, file_okay=False), help="The state directory."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    upstream: str, model: str, api_key_env: str | None, fields: str, timeout_s: float,
    state: Path | None, as_json: bool,
) -> None:  # fmt: skip
    """Ask System 2 whether it accepts histories that hold turns of System 1 beside its own, with
    their thinking. Nine short requests, billed as such. Where all are accepted, live mode may act
    for this model at this upstream though it thinks; gateways see it within seconds."""
    more = _fields(fields)
    headers = [("content-type", "application/json")]
    if api_key_env is not None:
        key = os.environ.get(api_key_env)
        if not key:
            raise ConfigError(f"the environment variable {api_key_env} is not set")
        headers.append(("authorization", f"Bearer {key}"))
    url = yarl.URL(f"{upstream.rstrip('/')}/chat/completions")

    def ask(body: bytes) -> tuple[int, str, bytes]:
        return asyncio.run(_ask(url, headers, body, timeout_s))

    found = replay_test(ask, model, more)
    directory = make_private(state_dir(state))
    base = upstream.rstrip("/")
    if found.passed:
        checks = tuple(check.name for check in found.checks)
        note_passed(directory, Passed(base, model, "chat", time.time(), checks))
    else:
        note_failed(directory, base, model)
    _say(found, model, as_json)
    if not found.thinks:
        raise ReflexarcError(
            f"{model} showed no thinking, so nothing was tested: is it on? see --fields. A model "
            "that does not think needs no test"
        )
    if not found.passed:
        raise ReflexarcError(f"{model} at {base} does not take turns of System 1: it is left alone")


def _say(found: Replayed, model: str, as_json: bool) -> None:
    if as_json:
        said = {"passed": found.passed, "thinks": found.thinks, "checks": found.checks}
        click.echo(msgspec.json.encode(said).decode())
        return
    for check in found.checks:
        click.echo(f"{'accepted' if check.accepted else 'REFUSED '}  {check.name}  {check.detail}")
    if found.passed:
        click.echo(f"passed: live mode may act for {model}")


def _fields(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise ConfigError(f"--fields is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise ConfigError("--fields must be a JSON object")
    return cast("dict[str, Any]", value)


async def _ask(
    url: yarl.URL, headers: list[tuple[str, str]], body: bytes, timeout_s: float
) -> tuple[int, str, bytes]:
    transport = Transport(
        Timeouts(first_byte_s=timeout_s, idle_s=timeout_s, total_s=timeout_s), time.perf_counter
    )
    try:
        answer = await transport.send("POST", url, headers, body)
        kinds = {name.lower(): value for name, value in answer.headers}
        parts = [chunk async for chunk in answer.chunks()]
        answer.release()
        return answer.status, kinds.get(b"content-type", b"").decode("latin-1"), b"".join(parts)
    finally:
        await transport.close()
