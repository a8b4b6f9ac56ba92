"""Two slots of a real llama.cpp, six sessions that take turns, through the gateway: how much of
what a session sent before is found cached, with placement and without.

Each session begins with about 1,000 tokens that no other has, and grows by its answers and by what
is asked next. Its turns come in an order drawn anew for each round. Counted are the tokens of a
prompt that its session's last prompt held; CPU is that of the process that holds the model. Bare
llama.cpp is asked through the same gateway: with its slots taken in turn, and as it chooses itself,
without and with its own memory of prompts, which all who ask it share. About twelve minutes of one
core, niced.
"""

import itertools
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.request import Request, urlopen

import msgspec

from acceptance.context_placement_llama import KEY, SLOTS
from acceptance.lines import Lines
from acceptance.processes import Process, cpu_s, process
from acceptance.upstream_engine_asking import orders
from acceptance.upstream_world import toml

SESSIONS, TURNS = 6, 4
LEAST_SHARE = 0.8
LEAST_TOKENS = 1000
_RECORDS, _MORE, _WRITTEN = 17, 1, 8
_OWN_MIB = 8192
_ASK_S = 600.0


class Turn(NamedTuple):
    """Tokens of a prompt, and of them those found cached."""

    prompt: int
    cached: int


class Figures(NamedTuple):
    """`found` of `before`: tokens that a session had sent before. `cpu_s` of all turns but the
    first of each session."""

    before: int
    found: int
    first_tokens: int
    cpu_s: float

    @property
    def share(self) -> float:
        return self.found / max(1, self.before)

    def shown(self) -> str:
        return f"{self.share:.1%} ({self.found:,} of {self.before:,}; {self.cpu_s:.0f} CPU-s)"


def measure(lines: Lines) -> None:
    with_it = _measured(_engine, lambda _: {})
    lines.say(f"   with placement: {with_it.shown()}")
    in_turn = _measured(lambda stack: _bare(stack, 0), lambda number: {"id_slot": number % SLOTS})
    lines.say(f"   llama.cpp, slots in turn: {in_turn.shown()}")
    own = _measured(lambda stack: _bare(stack, 0), lambda _: {})
    lines.say(f"   llama.cpp, its own choice: {own.shown()}")
    remembering = _measured(lambda stack: _bare(stack, _OWN_MIB), lambda _: {})
    lines.add(
        "5.1",
        f"{SESSIONS} sessions of {with_it.first_tokens:,} tokens and more take turns at {SLOTS} "
        f"slots, {TURNS} turns each: tokens sent before that are found cached, with placement",
        f">= {LEAST_SHARE:.0%}, of sessions that begin with {LEAST_TOKENS:,} tokens or more",
        f"{with_it.shown()}; llama.cpp, its slots taken in turn: {in_turn.shown()}; its own choice "
        f"of a slot: {own.shown()}; that, and its own memory, one for all who ask: "
        f"{remembering.shown()}",
        with_it.share >= LEAST_SHARE and with_it.first_tokens >= LEAST_TOKENS,
    )
    lines.add(
        "5.2",
        "the same: CPU of the turns that come back, beside llama.cpp with its slots taken in turn",
        "lower with placement",
        f"{with_it.cpu_s:.0f} for {in_turn.cpu_s:.0f} CPU-s",
        with_it.cpu_s < in_turn.cpu_s,
    )


Serving = Callable[[ExitStack], tuple[Process, int]]
"""A gateway, and the process that holds the model."""


def _measured(serving: Serving, more: Callable[[int], dict[str, Any]]) -> Figures:
    draw = random.Random(5)
    histories: list[list[dict[str, str]]] = [[] for _ in range(SESSIONS)]
    turns: list[list[Turn]] = [[] for _ in range(SESSIONS)]
    with ExitStack() as stack:
        gateway, pid = serving(stack)
        began_cpu_s = cpu_s(pid)
        for number in range(TURNS):
            if number == 1:
                began_cpu_s = cpu_s(pid)
            for place, session in enumerate(draw.sample(range(SESSIONS), SESSIONS)):
                history = histories[session]
                history += _asked(session, number)
                asked = number * SESSIONS + place
                turns[session].append(_ask(gateway, history, more(asked)))
        spent_cpu_s = cpu_s(pid) - began_cpu_s
    pairs = [pair for one in turns for pair in itertools.pairwise(one)]
    return Figures(
        sum(before.prompt for before, _ in pairs),
        sum(min(now.cached, before.prompt) for before, now in pairs),
        min(one[0].prompt for one in turns),
        spent_cpu_s,
    )


def _asked(session: int, number: int) -> list[dict[str, str]]:
    """What a client adds to its conversation."""
    if number == 0:
        rules = f"You are the agent of shop {session}. Its orders:\n{orders(session, _RECORDS)}"
        words = "Which of them is the largest?"
        return [{"role": "system", "content": rules}, {"role": "user", "content": words}]
    new = orders(100 * session + number, _MORE)
    return [{"role": "user", "content": f"This came in just now: {new}\nAnything odd about it?"}]


def _ask(gateway: Process, history: list[dict[str, str]], more: dict[str, Any]) -> Turn:
    body = {"model": "agent", "messages": history, "max_tokens": _WRITTEN, "temperature": 0, **more}
    request = Request(
        f"{gateway.base}/v1/chat/completions",
        msgspec.json.encode(body),
        {"content-type": "application/json"},
    )
    with urlopen(request, timeout=_ASK_S) as response:
        answer: Any = msgspec.json.decode(response.read())
    message, usage = answer["choices"][0]["message"], answer["usage"]
    history.append({"role": "assistant", "content": message["content"] or ""})
    cached = usage["prompt_tokens_details"]["cached_tokens"]
    return Turn(usage["prompt_tokens"], cached)


def _engine(stack: ExitStack) -> tuple[Process, int]:
    running = _gateway(stack, {"provider.here": {"kind": "embedded"}, "engine": {"slots": SLOTS}})
    return running, running.children()["process"]


def _bare(stack: ExitStack, own_mib: int) -> tuple[Process, int]:
    base, pid = stack.enter_context(_llama(own_mib))
    here = {"kind": "llamacpp", "url": f"{base}/v1", "key_env": "UPSTREAM_KEY"}
    return _gateway(stack, {"provider.here": here}), pid


def _gateway(stack: ExitStack, sections: dict[str, Any]) -> Process:
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="reflexarc-slots-")))
    tier = {"first_token_s": _ASK_S, "first_token_ms": 300_000.0, "token_ms": 10_000.0}
    config = folder / "gateway.toml"
    whole = {
        "route": [{"upstream": "models", "mode": "off", "record": "none"}],
        **sections,
        "model.agent": {"standard": [{"provider": "here", "model": "any"}]},
        "tier.standard": tier,
        "timeouts": {"first_byte_s": _ASK_S, "idle_s": _ASK_S, "total_s": _ASK_S},
    }
    config.write_text(toml(whole, state=str(folder / "state")))
    starting = process(
        "serve", "--config", str(config), "--port", "0", environment={"UPSTREAM_KEY": KEY}
    )
    return stack.enter_context(starting)


@contextmanager
def _llama(own_mib: int) -> Generator[tuple[str, int]]:
    running = subprocess.Popen(
        [sys.executable, "-m", "acceptance.context_placement_llama", str(own_mib)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert running.stdin is not None
    assert running.stdout is not None
    try:
        base = running.stdout.readline().strip()
        if not base:
            raise RuntimeError("llama.cpp did not start; what it said stands above")
        yield base, running.pid
    finally:
        running.stdin.close()
        running.stdout.close()
        try:
            running.wait(timeout=20)
        except subprocess.TimeoutExpired:
            running.kill()
            running.wait()
