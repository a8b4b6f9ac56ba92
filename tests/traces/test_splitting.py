"""A split keeps groups whole and depends on the seed and the names alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reflexarc.steps import Session
from reflexarc.steps.errors import InputError
from reflexarc.traces import split_sessions


def session(task: str, identity: str = "s", family: str | None = None) -> Session:
    return Session(identity, task, (), (), family=family)


@given(
    tasks=st.lists(st.integers(0, 12).map(str), min_size=2, max_size=60),
    share=st.floats(0.01, 0.99),
    seed=st.integers(0, 9),
)
def test_no_task_stands_on_both_sides_and_nothing_is_lost(
    tasks: list[str], share: float, seed: int
) -> None:
    sessions = [session(task) for task in tasks]
    if len(set(tasks)) < 2:
        with pytest.raises(InputError, match="nothing to split by task"):
            split_sessions(sessions, test_share=share, seed=seed)
        return
    split = split_sessions(sessions, test_share=share, seed=seed)
    assert sorted(split.train + split.test) == list(range(len(tasks)))
    assert not {tasks[i] for i in split.train} & {tasks[i] for i in split.test}
    assert split.train
    assert split.test


def test_a_third_of_sixty_tasks_is_twenty() -> None:
    sessions = [session(f"t{n % 60}") for n in range(240)]
    split = split_sessions(sessions)
    assert (split.train_groups, split.test_groups, len(split.test)) == (40, 20, 80)


def test_the_order_of_sessions_does_not_matter_and_the_seed_does() -> None:
    sessions = [session(f"t{n}") for n in range(40)]
    backwards = sessions[::-1]

    def held_out(given_sessions: list[Session], seed: int) -> set[str]:
        split = split_sessions(given_sessions, seed=seed)
        return {given_sessions[i].task for i in split.test}

    assert held_out(sessions, 1) == held_out(backwards, 1)
    assert held_out(sessions, 1) != held_out(sessions, 2)


def test_by_session_a_task_may_stand_on_both_sides() -> None:
    split = split_sessions([session("one", f"s{n}") for n in range(9)], by="session")
    assert (len(split.train), len(split.test)) == (6, 3)


def test_by_family_every_session_must_name_one() -> None:
    sessions = [session(f"t{n}", family=f"f{n % 4}") for n in range(12)]
    split = split_sessions(sessions, by="family")
    assert not {sessions[i].family for i in split.train} & {sessions[i].family for i in split.test}
    with pytest.raises(InputError, match="s9 names no family"):
        split_sessions([*sessions, session("t", "s9")], by="family")


@pytest.mark.parametrize("share", [0.0, 1.0, -0.1, float("nan")])
def test_a_share_outside_zero_and_one_is_refused(share: float) -> None:
    with pytest.raises(InputError, match="test share"):
        split_sessions([session("a"), session("b")], test_share=share)
