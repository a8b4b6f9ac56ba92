"""Sessions that do not name their task get one by the likeness of their openings."""

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reflexarc.steps import Message, Session
from reflexarc.traces import read_recording, tasks
from reflexarc.traces.tasks import cluster_tasks

HANDBOOK = "You are the returns agent of a shop. Follow the handbook. " + " ".join(
    f"Rule {n}: look before you act, then write down what you did." for n in range(30)
)


def session(user: str, system: str = "", task: str = "") -> Session:
    opening = (Message("system", system),) if system else ()
    return Session("s", task, (), (*opening, Message("user", user), Message("assistant", "ok")))


def test_the_same_opening_is_the_same_task() -> None:
    clustering = cluster_tasks([session("Return order 1"), session("Return order 1 ")])
    assert len(set(clustering.tasks)) == 1
    assert (clustering.unnamed, clustering.clusters) == (2, 1)


def test_a_few_other_words_do_not_make_another_task() -> None:
    text = "Please go through all return requests of today and decide each by the handbook"
    clustering = cluster_tasks([session(text), session(f"{text}, thanks!")])
    assert clustering.clusters == 1


def test_another_order_number_makes_another_task() -> None:
    text = "Please go through the return requests of queue {} and decide each by the handbook"
    clustering = cluster_tasks([session(text.format("RQ-17")), session(text.format("RQ-18"))])
    assert clustering.clusters == 2


def test_the_time_of_day_does_not_make_another_task() -> None:
    text = "Now: {}. Please go through all return requests and decide each by the handbook"
    times = ("2026-11-30 10:00:01", "2026-12-01T08:30:00Z")
    clustering = cluster_tasks([session(text.format(when)) for when in times])
    assert clustering.clusters == 1


def test_another_system_prompt_makes_another_task_and_an_edited_one_does_not() -> None:
    same = cluster_tasks([session("Go", HANDBOOK), session("Go", f"{HANDBOOK} Be brief.")])
    assert same.clusters == 1
    other = cluster_tasks([session("Go", HANDBOOK), session("Go", "You book flights.")])
    assert other.clusters == 2


def test_a_session_that_opens_like_a_named_task_joins_it() -> None:
    clustering = cluster_tasks(
        [session("Return order 1", task="t1"), session("Return order 1"), session("Buy milk")]
    )
    assert clustering.tasks[:2] == ["t1", "t1"]
    assert clustering.tasks[2].startswith("~")
    assert (clustering.unnamed, clustering.clusters) == (2, 1)


@given(st.permutations(range(8)))
def test_names_do_not_depend_on_the_order_of_sessions(order: list[int]) -> None:
    sessions = [session(f"Return order {n % 5}, please") for n in range(8)]
    in_order = cluster_tasks(sessions).tasks
    shuffled = cluster_tasks([sessions[n] for n in order]).tasks
    assert [in_order[n] for n in order] == shuffled


def test_thousands_of_near_duplicates_do_not_cost_the_square(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    comparisons = 0

    def counted(a: frozenset[int], b: frozenset[int]) -> float:
        nonlocal comparisons
        comparisons += 1
        return len(a & b) / len(a | b) if a | b else 1.0

    monkeypatch.setattr(tasks, "_jaccard", counted)
    letters = "abcdefghij"
    sessions = [
        session(f"Please look after the plant {a}{b}{c} of our garden and tell me what it needs")
        for a in letters
        for b in letters
        for c in letters
    ]
    clustering = cluster_tasks(sessions)
    assert (clustering.unnamed, clustering.clusters) == (1000, 1)
    assert comparisons < 40 * 1000  # the square would be 1,000,000


def test_equal_openings_of_public_recordings_are_never_torn_apart(recordings: Path) -> None:
    read = read_recording([recordings / "ha_qwen3_30b.jsonl.gz"]).sessions
    clustering = cluster_tasks([msgspec.structs.replace(s, task="") for s in read])
    found: dict[str, set[str]] = {}
    for one, task in zip(read, clustering.tasks, strict=True):
        found.setdefault(one.task, set()).add(task)
    assert all(len(tasks) == 1 for tasks in found.values())
    assert 80 <= clustering.clusters <= 90  # 90 tasks are named there
