"""A cold start: what judges a block has seen only what came before it, and figures add up."""

import math
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from reflexarc.bench import stream as streams
from reflexarc.bench.stream import Stream, run_stream
from reflexarc.bench.stream_learning import (
    GROWTH,
    GROWTH_OF_ATTEMPTS,
    Learning,
    learning_plan,
    least_sessions,
    spent_confidence,
)
from reflexarc.bench.stream_order import adjacent_share, in_order
from reflexarc.reflex import Reflex, learn
from reflexarc.steps import Session
from reflexarc.steps.errors import InputError, LearnError
from tests.reflex import parcels


@pytest.fixture(scope="module")
def stream() -> Stream:
    """75 sessions: 60 tasks, every fourth of them once more later."""
    again = [parcels.session(task, trial=1) for task in range(0, 60, 4)]
    return run_stream([*parcels.sessions(0, 60), *again], block=15, every=2, max_error=0.1)


def test_figures_are_cumulative_and_add_up(stream: Stream) -> None:
    assert [block.sessions for block in stream.blocks] == [15, 30, 45, 60, 75]
    assert [block.learned_from for block in stream.blocks] == [0, 0, 30, 30, 60]
    assert [block.relearned for block in stream.blocks] == [False, False, True, False, True]
    assert [one.before_block for one in stream.learned] == [3, 5]
    for before, after in pairwise(stream.blocks):
        for level, now in after.so_far["all"].levels.items():
            assert now.answered >= before.so_far["all"].levels[level].answered
    for block in stream.blocks:
        every, new, again = (block.so_far[kind] for kind in ("all", "new", "recurring"))
        assert every.sessions == new.sessions + again.sessions == block.sessions
        assert every.calls == new.calls + again.calls
        for level, one in every.levels.items():
            parts = (new.levels[level], again.levels[level])
            assert one.answered == sum(part.answered for part in parts)
            assert one.errors == sum(part.errors for part in parts)
            if one.answered:
                assert one.coverage_calls == pytest.approx(one.answered / every.calls, abs=1e-6)
                assert one.error <= one.error_upper95
    first, last = stream.blocks[0].so_far["all"], stream.blocks[-1].so_far["all"]
    assert (first.exact, first.levels["0.10"].answered) == (0.0, 0)
    assert last.exact > 0.4
    assert last.calls == sum(
        len(m.tool_calls) for s in parcels.sessions(0, 60) for m in s.messages
    ) + sum(
        len(m.tool_calls) for task in range(0, 60, 4) for m in parcels.session(task, 1).messages
    )


def test_tasks_learned_from_before_are_counted_apart(stream: Stream) -> None:
    counted = [block.so_far["recurring"].sessions for block in stream.blocks]
    assert counted == [0, 0, 0, 0, 15]
    assert stream.blocks[-1].so_far["new"].sessions == 60


def test_nothing_later_is_learned_from(monkeypatch: pytest.MonkeyPatch) -> None:
    learned: list[list[str]] = []

    def watched(past: list[Session], **how: Any) -> Reflex:
        learned.append([session.id for session in past])
        return learn(past, **how)

    monkeypatch.setattr(streams, "learn", watched)
    sessions = parcels.sessions(0, 24)
    found = run_stream(sessions, block=8)
    assert learned == [[one.id for one in sessions[:8]], [one.id for one in sessions[:16]]]
    assert [one.sessions for one in found.learned] == [8, 16]
    # with so few tasks nothing acts, and no attempt is spent
    assert [one.attempt for one in found.learned] == [0, 0]
    assert found.blocks[-1].attempt == 0
    assert all(one.answered == 0 for one in found.blocks[-1].so_far["all"].levels.values())


def test_what_comes_later_changes_nothing_before(stream: Stream) -> None:
    shorter = run_stream(parcels.sessions(0, 60), block=15, every=2, max_error=0.1)
    assert shorter.blocks == stream.blocks[:4]


def planned(tasks: int, block: int, every: int | None = None) -> list[Learning]:
    sessions = [Session(f"s{at}", f"t{at}", (), ()) for at in range(tasks)]
    return learning_plan(sessions, block, every=every, max_error=0.1, confidence=0.9)


def test_it_is_learned_again_when_the_past_has_grown() -> None:
    plan = planned(400, 4)
    assert [one.sessions for one in plan[:4]] == [4, 8, 12, 16]
    for before, after in pairwise(plan):
        growth = GROWTH_OF_ATTEMPTS if before.attempt else GROWTH
        assert growth * before.sessions <= after.sessions < growth * before.sessions + 4
    assert sum(one.sessions for one in plan) < 5 * plan[-1].sessions
    assert [one.sessions for one in planned(50, 12, 1)] == [12, 24, 36, 48]
    assert [one.sessions for one in planned(50, 12, 3)] == [36]
    last = planned(48, 12, 1)[-1]
    assert last.sessions == 36  # nothing would be judged after the last


def test_the_first_attempt_takes_as_many_sessions_as_could_do() -> None:
    assert [least_sessions(error, 0.95) for error in (0.1, 0.05, 0.02)] == [29, 59, 149]
    plan = planned(400, 4)
    early = [one.attempt for one in plan if one.sessions < 29]
    attempts = [one for one in plan if one.sessions >= 29]
    assert early == [0] * len(early)
    assert [one.attempt for one in attempts] == list(range(1, len(attempts) + 1))
    for one in attempts:
        assert one.confidence == spent_confidence(0.9, one.attempt)


def test_tasks_are_counted_as_they_come() -> None:
    sessions = [Session(f"s{at}", f"t{at % 30}", (), ()) for at in range(100)]
    plan = learning_plan(sessions, 20, every=1, max_error=0.1, confidence=0.9)
    assert [one.tasks for one in plan] == [20, 30, 30, 30]


def test_all_attempts_together_spend_what_one_may() -> None:
    spent = [1 - spent_confidence(0.9, attempt) for attempt in range(1, 2000)]
    assert sum(spent) < 0.1
    assert math.isclose(sum(spent), 0.1, rel_tol=1e-3)
    assert spent == sorted(spent, reverse=True)


def test_attempts_are_counted_and_spend(stream: Stream) -> None:
    assert [one.tasks for one in stream.learned] == [30, 60]
    assert [one.attempt for one in stream.learned] == [1, 2]
    assert [one.confidence for one in stream.learned] == [0.95, pytest.approx(0.983333)]


def test_a_certificate_won_before_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where learning again certifies less than was certified, that is no reason to stop."""
    certified = learn(parcels.sessions(0, 60), max_error=0.1)
    uncertified = learn(parcels.sessions(0, 12), max_error=0.1)
    assert certified.certificate() is not None
    assert uncertified.certificate() is None
    given = iter((certified, uncertified))

    def forgetful(_past: list[Session], **_how: object) -> Reflex:
        return next(given)

    monkeypatch.setattr(streams, "learn", forgetful)
    found = run_stream(parcels.sessions(100, 190), block=30, every=1, max_error=0.1)
    assert [one.kept for one in found.learned] == [False, True]
    assert [block.learned_from for block in found.blocks] == [0, 30, 30]
    assert found.blocks[-1].so_far["all"].levels["0.10"].answered > 30


def test_the_order_is_that_of_time_where_all_tell_it() -> None:
    sessions = parcels.sessions(0, 3)
    timed = [msgspec.structs.replace(one, began_s=100.0 - at) for at, one in enumerate(sessions)]
    assert in_order(timed) == (timed[::-1], "time")
    assert in_order(timed, "file") == (timed, "file")
    assert in_order([*timed, parcels.session(9)])[1] == "file"
    with pytest.raises(InputError, match="1 of 4 sessions do not tell when they began"):
        in_order([*timed, parcels.session(9)], "time")


def test_rounds_take_one_of_every_task_first() -> None:
    sessions = parcels.sessions(0, 3, trials=2)
    ordered, order = in_order(sessions, "rounds")
    assert order == "rounds"
    assert [one.id for one in ordered] == [
        *(f"parcels-{task}-0" for task in range(3)), *(f"parcels-{task}-1" for task in range(3)),
    ]  # fmt: skip
    assert adjacent_share(sessions, 2) == 1.0
    assert adjacent_share(ordered, 2) == 0.0
    assert adjacent_share(ordered, 4) == 1.0
    assert adjacent_share(parcels.sessions(0, 3), 2) == 0.0


def test_what_cannot_be_a_stream_is_refused() -> None:
    with pytest.raises(InputError, match="5 sessions are one block of 12"):
        run_stream(parcels.sessions(0, 5), block=12)
    with pytest.raises(InputError, match="at least one session"):
        run_stream(parcels.sessions(0, 5), block=0)
    with pytest.raises(LearnError, match="get_ordr, which no session offers"):
        run_stream(parcels.sessions(0, 5), block=2, effects={"get_ordr": "read"})


def test_a_stream_of_which_nothing_can_be_learned_says_so() -> None:
    silent = [
        msgspec.structs.replace(one, messages=one.messages[:2]) for one in parcels.sessions(0, 12)
    ]
    found = run_stream(silent, block=6)
    assert found.learned == []
    assert found.blocks[-1].so_far["all"].calls == 0
    assert found.blocks[-1].learned_from == 0


def test_progress_ends_at_one() -> None:
    seen: list[float] = []
    run_stream(parcels.sessions(0, 24), block=8, progress=lambda _what, share: seen.append(share))
    assert seen == sorted(seen)
    assert seen[-1] == pytest.approx(1.0)
