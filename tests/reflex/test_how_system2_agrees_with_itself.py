"""The share a perfect predictor could reach lies between two figures that runs can tell."""

from collections import Counter
from itertools import product

import msgspec
import pytest

from reflexarc.reflex import Reflex, repeats
from reflexarc.reflex.repeat import NOTHING_RECURS, repeats_of
from tests.reflex import parcels

CALLS = "abcd"


def figures(made: tuple[str, ...]) -> tuple[float, float, float]:
    found = repeats_of(("task", [("tool", call, True)]) for call in made)
    assert found.repeat_rate is not None
    assert found.modal_share is not None
    assert found.modal_share_left_out is not None
    assert (found.calls, found.tasks) == (len(made), 1)
    return found.repeat_rate, found.modal_share, found.modal_share_left_out


@pytest.mark.parametrize("runs", [2, 3, 4, 5])
def test_each_figure_is_what_it_says_it_is(runs: int) -> None:
    for made in product(CALLS, repeat=runs):
        again, modal, left_out, counts = 0.0, 0.0, 0.0, Counter(made)
        for at, call in enumerate(made):
            others = Counter(made[:at] + made[at + 1 :])
            most = max(others.values())
            tied = [other for other, count in others.items() if count == most]
            again += others[call] / (runs - 1)
            left_out += (call in tied) / len(tied)
            leaders = [one for one, n in counts.items() if n == max(counts.values())]
            modal += (call in leaders) / len(leaders)
        found = (again / runs, modal / runs, left_out / runs)
        assert figures(made) == pytest.approx(found, abs=1e-6)


@pytest.mark.parametrize("runs", [2, 3, 5])
@pytest.mark.parametrize("shares", [(0.6, 0.4, 0.0, 0.0), (0.4, 0.3, 0.2, 0.1), (1.0, 0, 0, 0)])
def test_on_average_a_perfect_predictor_lies_between(runs: int, shares: tuple[float, ...]) -> None:
    share_of = dict(zip(CALLS, shares, strict=True))
    modal = left_out = again = 0.0
    for made in product(CALLS, repeat=runs):
        chance = 1.0
        for call in made:
            chance *= share_of[call]
        found = figures(made)
        again += chance * found[0]
        modal += chance * found[1]
        left_out += chance * found[2]
    assert again == pytest.approx(sum(share * share for share in shares), abs=1e-5)
    assert again - 1e-5 <= left_out <= max(shares) + 1e-5
    assert modal >= max(shares) - 1e-5


def test_by_tool_each_call_counts_for_its_own() -> None:
    runs = [[("get", "get 1", True)]] * 3 + [[("put", "put 1", True)]]
    found = repeats_of(("task", run) for run in runs)
    get, put = found.tools["get"], found.tools["put"]
    assert (get.repeat_rate, get.modal_share, get.modal_share_left_out, get.calls) == (
        pytest.approx(2 / 3, abs=1e-6), 1.0, 1.0, 3,
    )  # fmt: skip
    assert (put.repeat_rate, put.modal_share, put.modal_share_left_out, put.calls) == (0, 0, 0, 1)
    assert found.repeat_rate == pytest.approx((2 + 0) / 4)
    assert set(found.of_tools(["put"]).tools) == {"put"}


def test_what_system1_did_is_no_evidence_of_system2() -> None:
    session = parcels.session(0)
    acted = tuple(
        msgspec.structs.replace(message, by_system1=bool(message.tool_calls))
        for message in session.messages
    )
    copy = msgspec.structs.replace(session, id="copy")
    assert repeats([session, copy]).repeat_rate == 1.0
    assert repeats([session, msgspec.structs.replace(copy, messages=acted)]) == NOTHING_RECURS


def test_where_nothing_recurs_nothing_is_said() -> None:
    assert (
        repeats_of([("one", [("t", "a", True)]), ("other", [("t", "a", True)])]) == NOTHING_RECURS
    )


def test_the_card_says_it_of_what_was_learned_from(parcel_reflex: Reflex) -> None:
    assert parcel_reflex.card.repeats == NOTHING_RECURS  # one run of each task
    assert Reflex.from_bytes(parcel_reflex.to_bytes()).card == parcel_reflex.card
