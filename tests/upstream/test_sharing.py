"""Equals share load; a session stays where its beginning is held, unless too much waits there."""

import random
from collections import Counter
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reflexarc.upstream.sharing import Sharer, shared


def one(order: int = 0, **more: Any) -> Sharer:
    usual = Sharer(f"d{order}", 10.0, 10.0, 0.0, 0.0, True, 0.0, 1.0, order)
    return msgspec.structs.replace(usual, **more)


sharers = st.lists(
    st.builds(
        Sharer,
        kin=st.sampled_from("xyz"),
        cost=st.none() | st.floats(0, 1e6),
        whole_cost=st.none() | st.sampled_from([0.0, 5.0, 1e6]),
        held=st.sampled_from([0.0, 0.3, 0.9]),
        score=st.floats(0, 1e3),
        free=st.booleans(),
        load=st.integers(0, 100).map(float),
        weight=st.sampled_from([1.0, 8.0]),
        order=st.just(0),
    ),
    max_size=8,
).map(lambda found: [msgspec.structs.replace(x, order=at) for at, x in enumerate(found)])


@given(sharers)
def test_all_are_named_once_with_a_slot_free_before_without(given: list[Sharer]) -> None:
    order = shared(given)
    assert sorted(order) == list(range(len(given)))
    free = [given[at].free for at in order]
    assert free == sorted(free, reverse=True)


def test_a_session_stays_where_its_beginning_is_held() -> None:
    for load in (0.0, 1.0, 4.0):
        given = [one(0, score=9.0), one(1, held=0.9, cost=2.0, load=load)]
        assert shared(given) == [1, 0]


@pytest.mark.parametrize("others", [0.0, 3.0, 20.0])
def test_a_session_leaves_the_one_that_has_far_more_to_do_than_another(others: float) -> None:
    stays, leaves = (
        [one(0, load=others), one(1, held=0.9, cost=2.0, load=load)]
        for load in (max(2 * others, others + 4), max(2 * others, others + 4) + 1)
    )
    assert shared(stays)[0] == 1
    assert shared(leaves)[0] == 0


def test_a_session_that_leaves_does_not_go_to_what_is_dearer_than_both() -> None:
    given = [
        one(0, held=0.9, cost=2.0, load=9.0),
        one(1),
        one(2, cost=15.0, whole_cost=15.0),
    ]
    assert shared(given) == [1, 0, 2]


def test_what_is_cheaper_though_nothing_is_held_there_is_asked() -> None:
    assert shared([one(0, held=0.5, cost=6.0), one(1, cost=3.0, whole_cost=3.0)]) == [1, 0]


def test_a_cheaper_one_stands_between_who_holds_it_and_its_replicas() -> None:
    given = [one(0), one(1, held=0.9, cost=1.0), one(2, cost=3.0, whole_cost=3.0)]
    assert shared(given) == [1, 2, 0]


def test_cents_between_those_that_hold_alike_undo_no_sharing() -> None:
    given = [one(0, held=0.5, cost=5.2, score=2.0), one(1, held=0.5, cost=5.1, score=1.0)]
    assert shared(given) == [0, 1]
    given[0] = msgspec.structs.replace(given[0], load=10.0)
    given[1] = msgspec.structs.replace(given[1], load=5.0)
    assert shared(given) == [1, 0]


def test_replicas_without_a_price_share_and_others_keep_the_order_of_the_list() -> None:
    unpriced: dict[str, Any] = {"cost": None, "whole_cost": None}
    replicas = [one(at, kin="x", score=float(at), **unpriced) for at in (1, 2)]
    given = [one(0, **unpriced), *replicas, one(3, score=9.0, **unpriced)]
    assert shared(given) == [0, 2, 1, 3]
    given[1] = msgspec.structs.replace(given[1], held=0.4)
    assert shared(given) == [0, 1, 2, 3]


def test_none_has_more_than_a_quarter_over_its_share_of_new_sessions_but_for_a_handful() -> None:
    draw = random.Random(3)
    load = Counter[int]()
    for number in range(400):
        given = [one(at, score=draw.random() * (5 if at == 0 else 1)) for at in range(4)]
        given = [msgspec.structs.replace(x, load=float(load[x.order])) for x in given]
        load[shared(given)[0]] += 1
        least = min(load[at] for at in range(4))
        assert max(load.values()) <= max(-(-1.25 * (number + 1) // 4), least + 5)
    assert max(load.values()) > 110  # and the favourite has what it may have


def test_over_a_handful_of_requests_gateways_that_see_different_ones_agree() -> None:
    draw = random.Random(4)
    for _ in range(200):
        scores = [draw.random() for _ in range(3)]
        sent = {
            shared([one(at, score=scores[at], load=float(draw.randrange(5))) for at in range(3)])[0]
            for _ in range(4)
        }
        assert len(sent) == 1
