"""The shadow report of a real gateway beside `reflexarc eval` on the same sessions.

Learns on a part of a set, replays sessions through `reflexarc serve` in shadow before a server that
answers each request with the recorded next turn (whole and streamed answers in turn), and compares
`reflexarc report --json` with `reflexarc eval --json`, figure by figure. Run alone:
`python -m acceptance.gateway_shadow`.

A gateway sees requests: a session without one (no messages, or no turn of an assistant after one of
a user) is counted by eval and can be seen by no gateway. Such sessions are counted here and left
out of the comparison of `sessions` and of what is per session; everything else is the same.
"""

import asyncio
import gzip
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast
from urllib.request import urlopen

import aiohttp
import msgspec
from aiohttp import web

from acceptance.lines import Lines
from acceptance.processes import REFLEXARC, process
from reflexarc.reflex import learn
from reflexarc.steps.items import decision_items
from reflexarc.traces import read_sessions, split_sessions

SESSIONS = Path(__file__).resolve().parents[2] / "shared" / "data" / "sessions"
SHARE_TOLERANCE = 1e-6
"""Shares are rounded to six digits on both sides; counts must be equal."""
_CONCURRENCY = 2
_UPSTREAM_S = 0.005
_MOST_BEHIND = 100
"""Agents wait for an LLM, so System 1 keeps up with them; here the next session waits for it."""
_PATIENCE_S = 120


class Case(msgspec.Struct, frozen=True):
    """One set of sessions. `max_error`: also a level at which the reflex answers something, so
    that there is something to compare; `sessions`: how many are replayed (None: all), those of
    tasks not learned from last."""

    identity: str
    name: str
    what: str
    max_error: float
    sessions: int | None = None


CASES = (
    Case("7", "tau1_retail_fork", "240 retail sessions", 0.25),
    Case("7b", "apiflow_terra_ops", "sessions with parallel calls", 0.05, 48),
)


def measure(lines: Lines) -> None:
    """Lines 7 and following."""
    for case in CASES:
        with tempfile.TemporaryDirectory(prefix="reflexarc-shadow-") as folder:
            _measure(lines, case, Path(folder))


def _measure(lines: Lines, case: Case, folder: Path) -> None:
    source = SESSIONS / f"{case.name}.jsonl.gz"
    sessions = read_sessions([source])
    texts = gzip.decompress(source.read_bytes()).decode().splitlines()
    assert len(texts) == len(sessions), "every line of the set is a session"
    split = split_sessions(sessions, test_share=0.33, seed=1)
    learn([sessions[i] for i in split.train], max_error=case.max_error).save(folder / "it.reflex")
    order = [*split.train, *split.test] if case.sessions is None else split.test[: case.sessions]
    seen = [i for i in order if any(True for _ in decision_items(sessions[i]))]
    whole, fresh = folder / "seen.jsonl", folder / "fresh.jsonl"
    whole.write_text("\n".join(texts[i] for i in seen))
    learned_from = set(split.train)
    new = [i for i in seen if i not in learned_from]
    fresh.write_text("\n".join(texts[i] for i in new))
    steps = sum(len({item.step for item in decision_items(sessions[i])}) for i in seen)

    began_new_s = asyncio.run(
        _replay(
            folder,
            [json.loads(texts[i]) for i in seen if i in learned_from],
            [json.loads(texts[i]) for i in new],
        )
    )
    say = (
        f"{len(order)} sessions, {len(order) - len(seen)} of them without a step; {steps} steps; "
        f"{len(new)} sessions of tasks not learned from"
    )
    lines.say(say)
    _compare(lines, case.identity, f"{case.what}: the shadow report says what eval says",
             _report(folder), _eval(folder, whole), steps)  # fmt: skip
    if len(seen) < len(order):
        _compare_unseen(lines, case, folder, [texts[i] for i in order], whole)
    if len(new) < len(seen):
        _compare(lines, f"{case.identity}n", f"{case.what}, tasks not learned from: the same",
                 _report(folder, "--since", began_new_s), _eval(folder, fresh), None)  # fmt: skip


def _compare(
    lines: Lines, identity: str, what: str, reported: Any, evaluated: Any, steps: int | None
) -> None:
    route = reported["routes"][0]
    ours, theirs = dict(_flat(route["evaluation"])), dict(_flat(evaluated))
    different = [
        f"{key}: {ours.get(key)} beside {theirs.get(key)}"
        for key in sorted(ours.keys() | theirs.keys())
        if not key.startswith("latency_ms") and not _equal(ours.get(key), theirs.get(key))
    ]
    compared = sum(not key.startswith("latency_ms") for key in theirs)
    answered = {level: one["answered"] for level, one in evaluated["certified"].items()}
    lines.say(f"  answered by level: {answered}; not judged: {route['unjudged'] or 'none'}")
    whole = steps is None or ours["steps"] == steps
    lines.add(
        identity,
        what,
        f"every count equal, every share within {SHARE_TOLERANCE:g}",
        f"{compared - len(different)} of {compared} figures over {ours['steps']} steps"
        + (f"; {'; '.join(different)}" if different else ""),
        whole and not different and compared > 0 and any(answered.values()),
    )


def _compare_unseen(
    lines: Lines, case: Case, folder: Path, texts: Sequence[str], whole: Path
) -> None:
    """What eval says once more for sessions that no gateway can see."""
    everything = folder / "everything.jsonl"
    everything.write_text("\n".join(texts))
    ours, theirs = dict(_flat(_eval(folder, whole))), dict(_flat(_eval(folder, everything)))
    different = [
        key
        for key in ours
        if not key.startswith("latency_ms") and not _equal(ours[key], theirs[key])
    ]
    lines.add(
        f"{case.identity}u",
        f"{case.what}: those without a step change what eval says",
        "in the count of sessions alone",
        ", ".join(f"{key}: {ours[key]} beside {theirs[key]}" for key in different) or "nothing",
        different == ["sessions"],
    )


def _flat(value: Any, at: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, inner in cast("dict[str, Any]", value).items():
            yield from _flat(inner, f"{at}.{key}" if at else key)
    else:
        yield at, value


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, int | float):
        return abs(one - other) <= SHARE_TOLERANCE
    return one == other


def _report(folder: Path, *more: str) -> Any:
    done = subprocess.run(
        (*REFLEXARC, "report", "--json", "--state", str(folder / "state"), *more),
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return json.loads(done.stdout)


def _eval(folder: Path, sessions: Path) -> Any:
    figures = folder / "eval.json"
    subprocess.run(
        (*REFLEXARC, "eval", str(folder / "it.reflex"), str(sessions), "--json", str(figures)),
        capture_output=True, check=True,
    )  # fmt: skip
    return json.loads(figures.read_text())


async def _replay(folder: Path, learned_from: Sequence[Any], new: Sequence[Any]) -> str:
    """Both parts one after the other; gives the time between them."""
    upstream = _Upstream([*learned_from, *new])
    url = await upstream.start()
    config = folder / "reflexarc.toml"
    config.write_text(
        f'state = "{folder / "state"}"\n'
        f'[[route]]\nupstream = "{url}"\nreflex = "{folder / "it.reflex"}"\n'
    )
    try:
        with process("serve", "--config", str(config), "--port", "0") as gateway:
            base = gateway.base
            async with aiohttp.ClientSession() as client:
                asked = await _part(client, base, learned_from, 0, 0)
                # A moment in which no step begins.
                await asyncio.sleep(0.01)
                between = await asyncio.to_thread(_now)
                await asyncio.sleep(0.01)
                await _part(client, base, new, len(learned_from), asked)
    finally:
        await upstream.stop()
    return between


def _now() -> str:
    return datetime.now(UTC).isoformat()


async def _part(
    client: aiohttp.ClientSession, base: str, sessions: Sequence[Any], first: int, asked: int
) -> int:
    """Plays sessions, `asked` requests having been made before; gives how many there are now."""
    waiting = list(enumerate(sessions, first))[::-1]

    async def work() -> None:
        nonlocal asked
        while waiting:
            number, session = waiting.pop()
            await _compared(base, asked - _MOST_BEHIND)
            turns = await _play(client, base, number, session)
            asked += turns

    await asyncio.gather(*(work() for _ in range(_CONCURRENCY)))
    await _compared(base, asked)
    return asked


async def _play(client: aiohttp.ClientSession, base: str, number: int, session: Any) -> int:
    """Asks as the agent did, turn by turn; gives how often."""
    turns = 0
    for index, message in enumerate(session["messages"]):
        if message["role"] != "assistant":
            continue
        request = {
            "model": session.get("model") or "unknown",
            "messages": session["messages"][:index],
            "tools": session["tools"],
            "stream": index % 2 == 1,
        }
        headers = {
            "x-reflexarc-session": session["id"],
            "x-reflexarc-task": session["task"],
            "x-replay": f"{number}:{index}",
        }
        async with client.post(
            f"{base}/v1/chat/completions", json=request, headers=headers
        ) as answer:
            await answer.read()
            if answer.status != 200:
                raise RuntimeError(f"{session['id']}, message {index}: {answer.status}")
        turns += 1
    return turns


async def _compared(base: str, steps: int) -> None:
    """Waits until so many answers were compared; raises where that goes nowhere."""
    before, left_s = -1.0, float(_PATIENCE_S)
    while left_s > 0:
        text = await asyncio.to_thread(_metrics, base)
        now = sum(_value(line) for line in text.splitlines() if _is_comparison(line))
        if now >= steps:
            return
        left_s = left_s - 0.2 if now == before else float(_PATIENCE_S)
        before = now
        await asyncio.sleep(0.2)
    raise RuntimeError(f"{before:.0f} answers were compared, not {steps}")


def _metrics(base: str) -> str:
    with urlopen(f"{base}/metrics", timeout=10) as answer:
        return answer.read().decode()


def _is_comparison(line: str) -> bool:
    return line.startswith("reflexarc_shadow_total{")


def _value(line: str) -> float:
    return float(line.rsplit(" ", 1)[1])


class _Upstream:
    """System 2 as it was recorded: a real server on a port of its own."""

    def __init__(self, sessions: Sequence[Any]) -> None:
        self._sessions = sessions
        self._runner: web.AppRunner | None = None

    async def start(self) -> str:
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_post("/v1/chat/completions", self._answer)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        port = self._runner.addresses[0][1]
        return f"http://127.0.0.1:{port}/v1"

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        number, index = map(int, request.headers["x-replay"].split(":"))
        turn = self._sessions[number]["messages"][index]
        asked = await request.json()
        await asyncio.sleep(_UPSTREAM_S)
        if not asked["stream"]:
            choice = {"index": 0, "message": turn, "finish_reason": "stop"}
            return web.json_response({"object": "chat.completion", "choices": [choice]})
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        for delta in _deltas(turn):
            choice = {"index": 0, "delta": delta, "finish_reason": None}
            await response.write(_event({"choices": [choice]}))
        await response.write(
            _event({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
        )
        await response.write(b"data: [DONE]\n\n")
        await response.write_eof()
        return response


def _event(value: Any) -> bytes:
    return f"data: {json.dumps({'object': 'chat.completion.chunk', **value})}\n\n".encode()


def _deltas(turn: Any) -> Iterator[Any]:
    yield {"role": "assistant"}
    text = turn.get("content") or ""
    if text:
        middle = len(text) // 2
        yield {"content": text[:middle]}
        yield {"content": text[middle:]}
    for at, call in enumerate(turn.get("tool_calls") or ()):
        function = call["function"]
        yield {
            "tool_calls": [
                {
                    "index": at,
                    "id": call.get("id"),
                    "type": "function",
                    "function": {"name": function["name"], "arguments": ""},
                }
            ]
        }
        arguments = function["arguments"]
        middle = len(arguments) // 2
        for part in (arguments[:middle], arguments[middle:]):
            yield {"tool_calls": [{"index": at, "function": {"arguments": part}}]}


def main() -> None:
    lines = Lines("gateway_shadow", cores=2)
    lines.part("7", "The shadow report beside eval", lambda: measure(lines))
    sys.exit(lines.finish(write=False))


if __name__ == "__main__":
    main()
