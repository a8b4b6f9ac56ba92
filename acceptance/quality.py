"""Learns and judges on real sessions over several splits; the unit of work of a process pool."""

import random
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Literal

import msgspec

from reflexarc.bench.baseline import Baseline
from reflexarc.reflex import Evaluation, learn, outcomes, summarise
from reflexarc.reflex.learning import tool_effects
from reflexarc.steps import Message, Session
from reflexarc.traces import SplitBy, read_sessions, split_sessions

SESSIONS = Path(__file__).resolve().parents[2] / "shared" / "data" / "sessions"
TEST_SHARE = 0.33
CONFIDENCE = 0.9


Shuffle = Literal["nothing", "outputs", "all texts"]
"""What is dealt out anew between sessions: contents of tool results, or those of users, assistants
and tools alike. Calls stay where they are."""

_SHUFFLED_ROLES: Mapping[Shuffle, tuple[str, ...]] = {
    "nothing": (),
    "outputs": ("tool",),
    "all texts": ("tool", "user", "assistant"),
}


class Task(msgspec.Struct, frozen=True):
    """One learning run: a set, a seed, what is shuffled between its sessions, what it is split
    by."""

    name: str
    seed: int
    shuffled: Shuffle = "nothing"
    by: SplitBy = "task"


class Judged(msgspec.Struct, frozen=True):
    """What came of it. `certified` are the levels with any certificate; `baseline_exact`
    is the share of calls the plain baseline guesses exactly, None where something is shuffled."""

    task: Task
    evaluation: Evaluation
    certified: tuple[float, ...]
    baseline_exact: float | None


def measure(tasks: Sequence[Task], processes: int) -> Iterator[Judged]:
    """The results as they come."""
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        for future in as_completed([pool.submit(run, task) for task in tasks]):
            yield future.result()


def run(task: Task) -> Judged:
    """Split as `reflexarc split` does, learn, judge."""
    sessions = read_sessions([SESSIONS / f"{task.name}.jsonl.gz"])
    sessions = shuffle(sessions, _SHUFFLED_ROLES[task.shuffled], task.seed)
    split = split_sessions(sessions, by=task.by, test_share=TEST_SHARE, seed=task.seed)
    train = [sessions[i] for i in split.train]
    test = [sessions[i] for i in split.test]
    reflex = learn(train, confidence=CONFIDENCE)
    found = list(outcomes(reflex, test))
    return Judged(
        task=task,
        evaluation=summarise(reflex, test, found),
        certified=tuple(sorted({c.max_error for c in reflex.card.certificates if c.granted})),
        baseline_exact=None if task.shuffled != "nothing" else _baseline(train, test),
    )


def _baseline(train: Sequence[Session], test: Sequence[Session]) -> float:
    effects = tool_effects(train, {})
    thinking = frozenset(name for name, (effect, _) in effects.items() if effect == "think")
    calls, exact = Baseline.learn(train).count_exact(test, thinking)
    return exact / calls


def shuffle(sessions: Sequence[Session], roles: Sequence[str], seed: int) -> list[Session]:
    """The same sessions with the contents of these roles' messages dealt out anew, each role
    among its own."""
    decks: dict[str, Iterator[str]] = {}
    random_source = random.Random(seed)
    for role in roles:
        deck = [m.content for session in sessions for m in session.messages if m.role == role]
        random_source.shuffle(deck)
        decks[role] = iter(deck)

    def redealt(message: Message) -> Message:
        if message.role not in decks:
            return message
        return msgspec.structs.replace(message, content=next(decks[message.role]))

    return [
        msgspec.structs.replace(session, messages=tuple(redealt(m) for m in session.messages))
        for session in sessions
    ]
