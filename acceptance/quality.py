"""Learns and judges on real sessions over several splits; the unit of work of a process pool."""

import random
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

import msgspec

from reflexarc.bench.baseline import Baseline
from reflexarc.reflex import Evaluation, evaluate, learn
from reflexarc.reflex.learning import tool_effects
from reflexarc.steps import Message, Session
from reflexarc.traces import read_sessions, split_sessions

SESSIONS = Path(__file__).resolve().parents[2] / "shared" / "data" / "sessions"
TEST_SHARE = 0.33
CONFIDENCE = 0.9


class Task(msgspec.Struct, frozen=True):
    """One learning run: a set, a seed, whether tool outputs are shuffled between sessions."""

    name: str
    seed: int
    shuffled: bool = False


class Judged(msgspec.Struct, frozen=True):
    """What came of it. `certified` are the levels with a certificate; `baseline_exact` is the
    share of calls the plain baseline guesses exactly, None with shuffled outputs."""

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
    if task.shuffled:
        sessions = shuffle_outputs(sessions, task.seed)
    split = split_sessions(sessions, test_share=TEST_SHARE, seed=task.seed)
    train = [sessions[i] for i in split.train]
    test = [sessions[i] for i in split.test]
    reflex = learn(train, confidence=CONFIDENCE)
    baseline_exact = None
    if not task.shuffled:
        effects = tool_effects(train, {})
        thinking = frozenset(name for name, (effect, _) in effects.items() if effect == "think")
        calls, exact = Baseline.learn(train).count_exact(test, thinking)
        baseline_exact = exact / calls
    return Judged(
        task=task,
        evaluation=evaluate(reflex, test),
        certified=tuple(c.max_error for c in reflex.card.certificates if c.threshold is not None),
        baseline_exact=baseline_exact,
    )


def shuffle_outputs(sessions: Sequence[Session], seed: int) -> list[Session]:
    """The same sessions with the contents of all tool results dealt out anew: no result has
    anything to do with its call."""
    contents = [m.content for session in sessions for m in session.messages if m.role == "tool"]
    random.Random(seed).shuffle(contents)
    dealt = iter(contents)

    def redealt(message: Message) -> Message:
        if message.role != "tool":
            return message
        return msgspec.structs.replace(message, content=next(dealt))

    return [
        msgspec.structs.replace(session, messages=tuple(redealt(m) for m in session.messages))
        for session in sessions
    ]
