"""What TLS on both sides of the gateway costs, and how many handshakes its upstream sees.

The method is that of `reflexarc.bench.latency`: real processes, one request at a time, arms
interleaved request by request. Four arms: straight to an upstream and through a gateway, both plain
and both over TLS (client to gateway, gateway to upstream). What a gateway adds is the difference of
the p50 to the direct arm of the same kind. Run alone: `python -m acceptance.gateway_tls`.
"""

import asyncio
import os
import ssl
import sys
import tempfile
from pathlib import Path

import aiohttp

from acceptance.lines import Lines
from reflexarc.bench import latency_arms as arms
from reflexarc.bench import latency_workload as workload
from reflexarc.bench.latency import WARM_UP, measure_arms, quantile
from reflexarc.bench.latency_upstream import BODY
from reflexarc.reflex import learn

MOST_TIMES_PLAIN = 1.5
REQUESTS = 1000
CLIENTS = 8
RUNS = 3
PER_RUN = {"small": 800, "large": 300}
PAUSE_S = {"small": 0.002, "large": 0.004}
"""Between rounds, so that System 1 has decided before the next."""


def measure(lines: Lines) -> None:
    """Lines 6.1 to 6.3."""
    reflex = learn(workload.sessions(60))
    with tempfile.TemporaryDirectory(prefix="reflexarc-accept-") as name:
        folder = Path(name)
        path = folder / "bench.reflex"
        reflex.save(path)
        files = arms.certificate(folder)
        believed = ssl.create_default_context(cafile=str(files[0]))
        _handshakes(lines, path, files, believed)
        with (
            arms.fixed_upstream() as plain,
            arms.fixed_tls_upstream(*files) as upstream,
            arms.gateway(plain, path) as plain_gateway,
            arms.gateway(upstream.port, path, files) as gateway,
        ):
            ports = {
                "direct": plain,
                "through": plain_gateway,
                "direct over TLS": upstream.port,
                "through over TLS": gateway,
            }
            tls = {arm: believed for arm in ports if arm.endswith("TLS")}
            for identity, size in (("6.2", "small"), ("6.3", "large")):
                _added(lines, identity, size, ports, tls)


def _added(
    lines: Lines, identity: str, size: str, ports: dict[str, int], tls: dict[str, ssl.SSLContext]
) -> None:
    import uvloop

    taken_ms: dict[str, list[float]] = {arm: [] for arm in ports}
    ratios: list[float] = []
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        for number in range(RUNS):
            bodies = workload.bodies(size == "large", PER_RUN[size] + WARM_UP, seed=number)
            one = runner.run(measure_arms(ports, bodies, PAUSE_S[size], tls))
            plain_ms, over_tls_ms = _added_ms(one)
            ratios.append(over_tls_ms / plain_ms)
            for arm, more in one.items():
                taken_ms[arm] += more
    plain_ms, over_tls_ms = _added_ms(taken_ms)
    for arm, taken in taken_ms.items():
        lines.say(f"  {size:6} {arm:17} p50 {quantile(taken, 0.5):.3f} ms")
    ratio = over_tls_ms / plain_ms
    runs = ", ".join(f"{one:.2f}" for one in ratios)
    lines.add(
        identity,
        f"added p50 of {size} bodies with TLS on both sides",
        f"<= {MOST_TIMES_PLAIN:g} times plain",
        f"{ratio:.2f} times ({over_tls_ms:.3f} ms; plain {plain_ms:.3f} ms; runs {runs}; "
        f"{len(taken_ms['direct'])} requests per arm)",
        0 < ratio <= MOST_TIMES_PLAIN and plain_ms > 0,
    )


def _added_ms(taken_ms: dict[str, list[float]]) -> tuple[float, float]:
    """The gateway's share of the p50: plain, and with TLS on both sides."""
    p50_ms = {arm: quantile(taken, 0.5) for arm, taken in taken_ms.items()}
    return (
        p50_ms["through"] - p50_ms["direct"],
        p50_ms["through over TLS"] - p50_ms["direct over TLS"],
    )


def _handshakes(
    lines: Lines, reflex: Path, files: tuple[Path, Path], believed: ssl.SSLContext
) -> None:
    with (
        arms.fixed_tls_upstream(*files) as upstream,
        arms.gateway(upstream.port, reflex, files) as gateway,
    ):
        answered = asyncio.run(_ask(gateway, believed))
        counts = upstream.counts()
    lines.add(
        "6.1",
        f"{REQUESTS} requests of {CLIENTS} clients at once through TLS on both sides",
        f"one handshake per upstream connection, at most {CLIENTS} of each",
        f"{counts['handshakes']} handshakes, {counts['accepted']} connections, "
        f"{answered} requests answered",
        counts["handshakes"] == counts["accepted"] <= CLIENTS and answered == REQUESTS,
    )


async def _ask(port: int, believed: ssl.SSLContext) -> int:
    """How many requests were answered by the upstream."""
    bodies = workload.bodies(False, REQUESTS, seed=1)
    connector = aiohttp.TCPConnector(limit=CLIENTS, ssl=believed)
    async with aiohttp.ClientSession(f"https://127.0.0.1:{port}", connector=connector) as session:

        async def client(first: int) -> int:
            answered = 0
            for body in bodies[first::CLIENTS]:
                async with session.post("/v1/chat/completions", data=body) as answer:
                    answered += await answer.read() == BODY
            return answered

        return sum(await asyncio.gather(*(client(first) for first in range(CLIENTS))))


if __name__ == "__main__":
    own = Lines("gateway_tls", os.cpu_count() or 1)
    own.part("6", "TLS on both sides", lambda: measure(own))
    sys.exit(own.finish(write=False))
