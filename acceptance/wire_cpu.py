"""What a streamed chunk costs: CPU of the gateway beside that of a proxy that copies bytes.

python -m acceptance.wire_cpu [--passes N]

Every client's dialect over every upstream's. Gateway, proxy and upstream are processes of their
own; the clients are this one. An arm is `STREAMS` answers streamed at once, an event of the
upstream's in every write, beside a steady rate of chat requests. In each pass, for each upstream
dialect: the proxy, its own dialect and the three others through the gateway, the proxy again. A
ratio is of CPU per chunk that the upstream sent, to the mean of the two proxies around it; what is
judged is the median over the passes.

CPU is user and system time of all threads of one process, by its CPU clock: the gateway's own
process. Its worker and its recorder decide, compare and keep, and touch no stream; what the whole
tree used is told beside it.

What is beside the streams is the same for both: the same requests at the same rate. The gateway's
System 1 answers them, with a reflex learned from the returns desk; through the proxy they go to
the upstream, which answers at once. What such a request costs, alone, is measured before each pass
for both, and taken off both, as is what each does when idle: a decision's CPU is no chunk's. What
decisions do to streams stays in. Ratios with nothing taken off are told as well.
"""

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from acceptance.gateway_world import (
    MAX_ERROR,
    Answered,
    desk_reflex,
    desk_sessions,
    load,
    read_requests,
)
from acceptance.lines import Lines
from acceptance.processes import cpu_s, process
from acceptance.wire_cpu_clients import beside, streams
from acceptance.wire_cpu_streams import CALL_DELTAS, events
from acceptance.wire_cpu_upstream import PACE_S
from reflexarc.bench.desk.schemas import READ_TOOLS, TOOLS

DIALECTS = ("chat", "responses", "messages", "gemini")
SAME_BOUND, CONVERTED_BOUND = 2.0, 5.0
PASSES = 3
STREAMS = 20
RATE_PER_S = 25
_ALONE_S = 2.0
_LEAST_APART, _LEAST_ACTED = 0.8, 0.9


class Where(NamedTuple):
    """An arm's process, and its address; of the gateway's, its own children by name."""

    base: str
    pid: int
    children: dict[str, int]

    def cpu_s(self) -> dict[str, float]:
        """CPU of each of its processes since it began."""
        return {name: cpu_s(pid) for name, pid in {"itself": self.pid, **self.children}.items()}


class Alone(NamedTuple):
    """CPU of an arm's process with no streams: of a second of idling, of one request beside."""

    idle_s: float
    request_s: float

    def __str__(self) -> str:
        idle_ms, request_ms = self.idle_s * 1e3, self.request_s * 1e3
        return f"idle {idle_ms:.1f} ms a second, a request alone {request_ms:.2f} ms"


class Arm(NamedTuple):
    """One arm of one pass. Microseconds of CPU per chunk: of the process; of the same and of its
    whole tree with nothing taken off. `apart`: HTTP chunks that its clients read per event of
    the upstream's that says something in their dialect (Gemini's calls come whole); `decisions`
    on the requests beside."""

    own_us: float
    plain_us: float
    tree_us: float
    apart: float
    decisions: Counter[str]


def measure(lines: Lines, passes: int = PASSES) -> None:
    """Lines 3.0 to 3.2."""
    with tempfile.TemporaryDirectory(prefix="reflexarc-cpu-") as name:
        folder = Path(name)
        sessions = desk_sessions()
        desk_reflex(sessions, folder / "desk.reflex")
        bodies = read_requests(sessions, list(TOOLS), READ_TOOLS)
        with _started("acceptance.wire_cpu_upstream") as upstream:
            config = folder / "gateway.toml"
            config.write_text(_config(folder, upstream.base))
            with (
                _started("acceptance.wire_cpu_proxy", upstream.base) as proxy,
                process("serve", "--config", str(config), "--port", "0") as served,
            ):
                gateway = Where(served.base, served.process.pid, served.children())
                _judge(lines, asyncio.run(_passes(lines, gateway, proxy, bodies, passes)))


def _config(folder: Path, upstream: str) -> str:
    """A live route for each dialect of the upstream, at a path of that name. Nothing is audited:
    an audit would ask the upstream again. The deadline is long: what is measured is what decisions
    cost, not how busy this machine is."""
    lines = [f'state = "{folder / "state"}"']
    for dialect in DIALECTS:
        version = "v1beta" if dialect == "gemini" else "v1"
        lines += [
            "[[route]]", f'path = "/{dialect}/v1"', f'upstream = "{upstream}/{version}"',
            f'dialect = "{dialect}"', f'reflex = "{folder / "desk.reflex"}"', 'mode = "live"',
            f"max_error = {MAX_ERROR}", "audit = 0.0", "deadline_ms = 1000",
        ]  # fmt: skip
    return "\n".join(lines) + "\n"


@contextmanager
def _started(module: str, *arguments: str) -> Generator[Where]:
    running = subprocess.Popen(
        (sys.executable, "-m", module, *arguments), stdout=subprocess.PIPE, text=True
    )
    try:
        assert running.stdout is not None
        base = running.stdout.readline().strip()
        if not base:
            raise RuntimeError(f"{module} did not start")
        yield Where(base, running.pid, {})
    finally:
        running.terminate()
        running.wait()


Measured = dict[tuple[str, str], list[tuple[Arm, Arm, Arm]]]
"""By client's and upstream's dialect: the arm and the two proxies around it, of each pass."""


class _World(NamedTuple):
    """`asked` is what streams answer, `bodies` what is asked beside them."""

    gateway: Where
    proxy: Where
    asked: bytes
    bodies: list[bytes]

    def addresses(self, where: Where, upstream: str) -> tuple[str, str]:
        """Of an upstream's streams, and of what is asked beside them."""
        if where == self.proxy:
            return where.base, where.base
        return f"{where.base}/{upstream}", f"{where.base}/chat"


async def _passes(
    lines: Lines, gateway: Where, proxy: Where, bodies: Sequence[bytes], passes: int
) -> Measured:
    world = await _warmed(gateway, proxy, bodies)
    measured: Measured = {}
    for number in range(passes):
        began_s = time.monotonic()
        ours, theirs = await _alone(world, gateway), await _alone(world, proxy)
        for upstream in DIALECTS if number % 2 == 0 else DIALECTS[::-1]:
            before = await _arm(world, proxy, upstream, upstream, theirs)
            clients = (upstream, *(name for name in DIALECTS if name != upstream))
            found = [await _arm(world, gateway, name, upstream, ours) for name in clients]
            after = await _arm(world, proxy, upstream, upstream, theirs)
            for client, arm in zip(clients, found, strict=True):
                measured.setdefault((client, upstream), []).append((arm, before, after))
        lines.say(
            f"      pass {number + 1} of {passes}: {time.monotonic() - began_s:.0f} s; "
            f"gateway {ours}; proxy {theirs}"
        )
    return measured


async def _warmed(gateway: Where, proxy: Where, bodies: Sequence[bytes]) -> _World:
    """What is compiled and connected once is no chunk's."""
    bodies, asked = await _sorted(f"{gateway.base}/chat", bodies)
    world = _World(gateway, proxy, asked, bodies)
    for upstream in DIALECTS:
        base, _ = world.addresses(gateway, upstream)
        asking = [streams(base, client, 2, asked) for client in DIALECTS]
        await asyncio.gather(*asking, streams(proxy.base, upstream, 2, asked))
    return world


async def _sorted(asked_at: str, bodies: Sequence[bytes]) -> tuple[list[bytes], bytes]:
    """Of some requests those that System 1 answers, and one that it leaves to System 2: that is
    what streams answer, another agent's would be a change that demotes."""
    answers = await load(asked_at, bodies, RATE_PER_S, 2 * _ALONE_S)
    _check(answers)
    pairs = list(zip(bodies, answers, strict=False))
    return [body for body, answer in pairs if answer.acted], next(
        body for body, answer in pairs if not answer.acted
    )


async def _alone(world: _World, where: Where) -> Alone:
    _, asked_at = world.addresses(where, "chat")
    before_s = cpu_s(where.pid)
    await asyncio.sleep(_ALONE_S)
    idle_s = (cpu_s(where.pid) - before_s) / _ALONE_S
    before_s, began_s = cpu_s(where.pid), time.monotonic()
    answers = await load(asked_at, world.bodies, RATE_PER_S, _ALONE_S)
    _check(answers)
    took_s = time.monotonic() - began_s
    return Alone(idle_s, (cpu_s(where.pid) - before_s - idle_s * took_s) / len(answers))


async def _arm(world: _World, where: Where, client: str, upstream: str, alone: Alone) -> Arm:
    each = len(events(upstream))
    base, asked_at = world.addresses(where, upstream)
    before = where.cpu_s()
    found = await beside(
        base, client, STREAMS, world.asked, asked_at, world.bodies, RATE_PER_S, each * PACE_S
    )
    used = {name: cpu - before[name] for name, cpu in where.cpu_s().items()}
    _check(found.answers)
    for told in found.streams:
        if fault := told.fault(client, upstream):
            raise RuntimeError(f"{client} over {upstream}: {fault}")
    chunks = STREAMS * each
    requests = len(found.answers)
    own_s = used["itself"] - alone.idle_s * found.seconds - alone.request_s * requests
    silent = STREAMS * CALL_DELTAS if client == "gemini" != upstream else 0
    pieces = sum(len(told.pieces) for told in found.streams)
    return Arm(
        own_s * 1e6 / chunks,
        used["itself"] * 1e6 / chunks,
        sum(used.values()) * 1e6 / chunks,
        pieces / (chunks - silent),
        Counter(_shown(answer.decision) for answer in found.answers),
    )


def _shown(decision: str) -> str:
    """`live; act`, or why it did not."""
    words = decision.split("; ")
    return "; ".join(words[:2] if words[1:2] == ["act"] else words[:3])


def _check(answers: Sequence[Answered]) -> None:
    failed = [answer for answer in answers if answer.status != 200]
    if failed:
        raise RuntimeError(f"{len(failed)} of {len(answers)} requests failed: {failed[0]}")


def _judge(lines: Lines, measured: Measured) -> None:
    ratios: dict[tuple[str, str], list[float]] = {}
    for (client, upstream), found in measured.items():
        base = [(before.own_us + after.own_us) / 2 for _, before, after in found]
        plain = [(before.plain_us + after.plain_us) / 2 for _, before, after in found]
        ours = [arm for arm, _, _ in found]
        ratios[client, upstream] = [arm.own_us / us for arm, us in zip(ours, base, strict=True)]
        taken = [arm.plain_us / us for arm, us in zip(ours, plain, strict=True)]
        lines.say(
            f"      {client:>9} over {upstream:<9} {_spread(ratios[client, upstream])} times; "
            f"{_median(arm.own_us for arm in ours):.0f} us to {_median(base):.0f} us a chunk; "
            f"nothing taken off {_median(taken):.2f} times, "
            f"{_median(arm.plain_us for arm in ours):.0f} us, with worker and recorder "
            f"{_median(arm.tree_us for arm in ours):.0f} us; "
            f"chunks apart {_median(arm.apart for arm in ours):.0%}"
        )
    arms = [arm for found in measured.values() for group in found for arm in group]
    ours = [arm for found in measured.values() for arm, _, _ in found]
    decisions = sum((arm.decisions for arm in ours), Counter[str]())
    acted = min(arm.decisions["live; act"] / arm.decisions.total() for arm in ours)
    apart = min(arm.apart for arm in arms)
    lines.say(f"      decisions beside: {dict(decisions.most_common(5))}")
    lines.add(
        "3.0", "control: System 1 acts beside the streams, and chunks come one by one",
        f"on >= {_LEAST_ACTED:.0%} of requests, >= {_LEAST_APART:.0%} of chunks, in each arm",
        f"{acted:.0%} and {apart:.0%} at least", acted >= _LEAST_ACTED and apart >= _LEAST_APART,
    )  # fmt: skip
    for name in DIALECTS:
        lines.at_most(
            f"3.1 {name}", f"CPU per chunk, {name} on both sides, to that of a copying proxy",
            _median(ratios[name, name]), SAME_BOUND, " times",
        )  # fmt: skip
    converted = {pair: _median(found) for pair, found in ratios.items() if pair[0] != pair[1]}
    worst = max(converted, key=lambda pair: converted[pair])
    lines.at_most(
        "3.2", f"CPU per chunk converted, worst of {len(converted)} pairs ({worst[0]} over "
        f"{worst[1]})", converted[worst], CONVERTED_BOUND, " times",
    )  # fmt: skip


def _median(values: "Sequence[float] | Generator[float]") -> float:
    return statistics.median(values)


def _spread(values: Sequence[float]) -> str:
    return f"{_median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def main() -> int:
    parser = argparse.ArgumentParser(prog="acceptance.wire_cpu", description=__doc__)
    parser.add_argument("--passes", type=int, default=PASSES, help="rounds over all pairs")
    arguments = parser.parse_args()
    lines = Lines("wire_cpu", os.cpu_count() or 1)
    lines.part("3", "CPU per streamed chunk", lambda: measure(lines, arguments.passes))
    return lines.finish(write=False)


if __name__ == "__main__":
    raise SystemExit(main())
