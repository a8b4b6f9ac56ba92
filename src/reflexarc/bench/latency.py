"""What the gateway adds to a request: `python -m reflexarc.bench.latency [--json FILE]`.

One run, arms interleaved request by request over kept-alive connections, one request at a time:
straight to a minimal upstream, through the gateway (shadow mode, a reflex loaded and deciding),
and through nginx. Rounds of large bodies are paced, so that System 1 decides on all of them: back
to back it would drop most, and the gateway would look faster than it is. Reported are p50 and p99
per arm and the p50 added over the direct arm; the exit status is 1 where the gateway adds more than
is required.
"""

import asyncio
import gc
import json
import ssl
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, cast

import click

from reflexarc.bench import latency_arms as arms
from reflexarc.bench import latency_workload as workload
from reflexarc.bench.latency_upstream import BODY
from reflexarc.reflex import learn

REQUIRED_ADDED_MS = {"small": 0.4, "large": 0.8}
WARM_UP = 200
_SETTLE_S = 0.5  # in shadow System 1 decides after the answer, the last of a size after the clock


class _Client(asyncio.Protocol):
    """One kept-alive connection; one request at a time."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._waiter: asyncio.Future[bytes] | None = None
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0 or self._waiter is None:
            return
        head = bytes(self._buffer[:end]).lower()
        if b"content-length: " in head:
            size = int(head.split(b"content-length: ")[1].split(b"\r\n")[0])
            body = bytes(self._buffer[end + 4 :])
        else:  # chunked: complete once its last chunk is there
            if not self._buffer.endswith(b"0\r\n\r\n"):
                return
            size = int(self._buffer[end + 4 :].split(b"\r\n")[0], 16)
            body = bytes(self._buffer[end + 4 :]).split(b"\r\n", 1)[1][:size]
        if len(body) >= size:
            self._buffer.clear()
            waiter, self._waiter = self._waiter, None
            waiter.set_result(body)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(exc or ConnectionError("connection closed"))

    async def ask(self, request: bytes) -> bytes:
        assert self._transport is not None
        self._waiter = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return await self._waiter

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()


@click.command()
@click.option("--small", default=2000, show_default=True, help="Requests per arm of about 1 KB.")
@click.option("--large", default=1000, show_default=True, help="Requests per arm of about 100 KB.")
@click.option(
    "--json",
    "json_path",
    type=click.Path(path_type=Path, dir_okay=False, writable=True),
    help="Write the figures.",
)
@click.option("--nginx/--no-nginx", "with_nginx", default=True, show_default=True)
@click.option(
    "--install-nginx",
    is_flag=True,
    help="Where nginx is absent, install it with apt-get (as root).",
)
@click.option(
    "--small-pause-ms", default=0.0, show_default=True, help="Between rounds of small bodies."
)
@click.option(
    "--large-pause-ms",
    default=4.0,
    show_default=True,
    help="Between rounds of large bodies. System 1 reads one for milliseconds: sent without a "
    "pause, most are dropped undecided.",
)
def main(
    small: int,
    large: int,
    json_path: Path | None,
    with_nginx: bool,
    install_nginx: bool,
    small_pause_ms: float,
    large_pause_ms: float,
) -> None:
    """Measure what the gateway adds to a request."""
    if json_path is not None:  # first, so that a place that cannot be made costs no measuring
        try:
            json_path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise click.BadParameter(f"{json_path.parent}: {error.strerror}") from error
    if with_nginx and install_nginx:
        arms.install_nginx()
    click.echo("learning a reflex for the bench's agent ...")
    reflex = learn(workload.sessions(60))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        reflex.save(folder / "bench.reflex")
        with (
            arms.fixed_upstream() as upstream,
            arms.gateway(upstream, folder / "bench.reflex") as gateway,
            arms.nginx(upstream, folder, wanted=with_nginx) as nginx,
        ):
            ports = {"direct": upstream, "reflexarc": gateway}
            if nginx is not None:
                ports["nginx"] = nginx
            report = _run(
                ports,
                {
                    "small": _Load(small, small_pause_ms / 1e3),
                    "large": _Load(large, large_pause_ms / 1e3),
                },
            )
            report["nginx_wanted"] = with_nginx
            report["decisions"] = _decisions(arms.counters(gateway))
            # A gateway whose System 1 decides nothing would be fast for nothing.
            decided = all(row["shadow"]["decided"] > 0 for row in report["sizes"].values())
            report["passed"] = report["passed"] and decided
    _show(report)
    if json_path is not None:
        json_path.write_text(json.dumps(report, indent=2) + "\n")
    sys.exit(0 if report["passed"] else 1)


class _Load(NamedTuple):
    """Requests per arm, and the pause between one round over the arms and the next."""

    requests: int
    pause_s: float


def _run(ports: dict[str, int], loads: dict[str, _Load]) -> dict[str, Any]:
    import uvloop

    sizes: dict[str, Any] = {}
    passed = True
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        for size, (count, pause_s) in loads.items():
            bodies = workload.bodies(size == "large", count + WARM_UP, seed=len(size))
            click.echo(f"{size}: {count} requests per arm of about {len(bodies[0])} bytes ...")
            before = _decided_and_shed(arms.counters(ports["reflexarc"]))
            times_ms = runner.run(measure_arms(ports, bodies, pause_s))
            time.sleep(_SETTLE_S)
            after = _decided_and_shed(arms.counters(ports["reflexarc"]))
            figures: dict[str, Any] = {
                arm: {"p50_ms": quantile(taken, 0.5), "p99_ms": quantile(taken, 0.99)}
                for arm, taken in times_ms.items()
            }
            for arm in figures:
                figures[arm]["added_p50_ms"] = round(
                    figures[arm]["p50_ms"] - figures["direct"]["p50_ms"], 4
                )
            required = REQUIRED_ADDED_MS[size]
            met = figures["reflexarc"]["added_p50_ms"] <= required
            passed = passed and met
            sizes[size] = {
                "requests_per_arm": count,
                "pause_ms": pause_s * 1e3,
                "body_bytes": len(bodies[0]),
                "arms": figures,
                "required_added_p50_ms": required,
                "met": met,
                "shadow": {
                    "requests": len(bodies),
                    "decided": after[0] - before[0],
                    "shed": after[1] - before[1],
                    "decided_share": round((after[0] - before[0]) / len(bodies), 4),
                },
            }
    return {"sizes": sizes, "nginx": "nginx" in ports, "passed": passed}


async def measure_arms(
    ports: dict[str, int],
    bodies: list[bytes],
    pause_s: float,
    tls: Mapping[str, ssl.SSLContext] = MappingProxyType({}),
) -> dict[str, list[float]]:
    """Milliseconds per request and arm; the arms' order turns from one round to the next. The
    first 200 bodies warm up. `tls`: whom an arm's client believes, where that arm speaks TLS."""
    loop = asyncio.get_running_loop()
    clients: dict[str, _Client] = {}
    for arm, port in ports.items():
        _, clients[arm] = await loop.create_connection(_Client, "127.0.0.1", port, ssl=tls.get(arm))
    requests = [_request(body) for body in bodies]
    taken_ms: dict[str, list[float]] = {arm: [] for arm in ports}
    order = list(ports)
    gc.disable()
    try:
        for number, request in enumerate(requests):
            order.append(order.pop(0))
            # Awake: after a sleep the cores of a virtual machine take as long to wake as a request
            # takes, on every arm.
            until_s = time.perf_counter() + pause_s
            while time.perf_counter() < until_s:
                await asyncio.sleep(0)
            for arm in order:
                began_s = time.perf_counter()
                body = await clients[arm].ask(request)
                ended_s = time.perf_counter()
                if body != BODY:
                    raise click.ClickException(f"{arm} answered {body[:200]!r}")
                if number >= WARM_UP:
                    taken_ms[arm].append((ended_s - began_s) * 1e3)
    finally:
        gc.enable()
        for client in clients.values():
            client.close()
    return taken_ms


def _request(body: bytes) -> bytes:
    head = (
        "POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\naccept: application/json\r\n"
        "authorization: Bearer sk-bench\r\ncontent-type: application/json\r\n"
        f"user-agent: bench\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def quantile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return round(ordered[min(len(ordered) - 1, int(len(ordered) * share))], 4)


def _decisions(counters: dict[str, float]) -> dict[str, float]:
    """How System 1 decided meanwhile, by reason, and how often it could not."""
    return {
        name: value
        for name, value in counters.items()
        if name.startswith(("reflexarc_decisions_total", "reflexarc_system1_trouble_total"))
    }


def _decided_and_shed(counters: dict[str, float]) -> tuple[int, int]:
    """Requests that System 1 decided so far, and those it had no time for."""
    named = {n: v for n, v in counters.items() if n.startswith("reflexarc_decisions_total{")}
    shed = sum(value for name, value in named.items() if 'reason="system1_' in name)
    return int(sum(named.values()) - shed), int(shed)


def _show(report: dict[str, Any]) -> None:
    click.echo(f"\n{'size':8}{'arm':12}{'p50 ms':>9}{'p99 ms':>9}{'added p50':>11}{'required':>10}")
    for size, row in report["sizes"].items():
        for arm, figures in row["arms"].items():
            ours = arm == "reflexarc"
            required = f"<= {row['required_added_p50_ms']:g}" if ours else ""
            verdict = ("ok" if row["met"] else "SHORT") if ours else ""
            click.echo(
                f"{size:8}{arm:12}{figures['p50_ms']:9.3f}{figures['p99_ms']:9.3f}"
                f"{figures['added_p50_ms']:11.3f}{required:>10} {verdict}"
            )
    if not report["nginx"]:
        click.echo(arms.NGINX_ABSENT if report["nginx_wanted"] else "nginx: left out")
    for size, row in report["sizes"].items():
        seen = row["shadow"]
        click.echo(
            f"{size}: System 1 decided {seen['decided']} of {seen['requests']} requests in shadow "
            f"({seen['decided_share']:.0%}) and was too busy for {seen['shed']}"
        )
    click.echo("decisions meanwhile:")
    for name, value in report["decisions"].items():
        click.echo(f"  {value:7.0f}  {name}")


if __name__ == "__main__":
    main()
