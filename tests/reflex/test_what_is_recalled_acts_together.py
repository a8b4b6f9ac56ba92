"""One certificate for all that is recalled acts where all it was judged of acts, and only there."""

import msgspec
import pytest

from reflexarc.reflex import Reflex, learn, outcomes
from reflexarc.reflex.outcome import with_writes
from reflexarc.reflex.scopes import RECALLED
from reflexarc.steps import Effect
from tests.reflex import parcels
from tests.reflex.test_recurring_work import TOOLS, asked, run

READS, WRITES = "recalled reads", "recalled writes:set_state"


@pytest.fixture(scope="module")
def house() -> Reflex:
    return learn([run(task, trial) for task in range(40) for trial in range(4)], max_error=0.05)


def held(house: Reflex, effects: dict[str, Effect], **granted: bool) -> Reflex:
    """The same under these certificates alone, each granted at 5% or refused."""
    names = {"reads": READS, "writes": WRITES, "its_writes": "recalled writes:get_state"}
    like = house.certificate(0.05, READS)
    assert like is not None
    certificates = tuple(
        msgspec.structs.replace(
            like,
            scope=names.get(scope, scope),
            threshold=like.threshold if held else None,
            bound=like.bound if held else like.max_error,
        )
        for scope, held in granted.items()
    )
    card = msgspec.structs.replace(house.card, certificates=certificates)
    return Reflex(card, house.identity, effects, house.members, frozenset(), house.recall)


@pytest.mark.parametrize(
    ("granted", "writes", "scope", "acts"),
    [
        ({"recalled": True, "reads": True, "writes": True}, ("set_state",), RECALLED, True),
        ({"recalled": True, "reads": False, "writes": True}, ("set_state",), RECALLED, True),
        ({"recalled": True, "reads": False, "writes": True}, ("other",), READS, False),
        ({"recalled": True, "reads": False, "writes": True}, (), READS, False),
        ({"recalled": True, "reads": False, "writes": False}, ("set_state",), READS, False),
        ({"recalled": True, "reads": True, "writes": False}, ("set_state",), READS, True),
        ({"recalled": False, "reads": True, "writes": True}, ("set_state",), RECALLED, False),
        ({"reads": True, "writes": True}, ("set_state",), READS, True),
    ],
)
def test_a_recalled_read_acts_together_with_writes_or_by_itself(
    house: Reflex, granted: dict[str, bool], writes: tuple[str, ...], scope: str, acts: bool
) -> None:
    reflex = held(house, {"get_state": "read", "set_state": "write"}, **granted)
    decision = reflex.decide(asked(3), TOOLS, writes=writes)
    assert (decision.scope, decision.acts) == (scope, acts)


@pytest.mark.parametrize("own", [True, False])
def test_figures_count_a_recalled_write_where_it_would_act(house: Reflex, own: bool) -> None:
    reflex = held(
        house, {"get_state": "write"}, recalled=True, reads=True, its_writes=own,
    )  # fmt: skip
    decision = reflex.decide(asked(3), TOOLS, writes=("get_state",))
    assert decision.acts == own
    first = next(iter(outcomes(reflex, [run(3, 9)])))
    assert first.acted[with_writes("0.05")] == own
    assert not first.acted["0.05"]


def test_what_is_remembered_and_predicted_acts_on_either_ground(parcel_reflex: Reflex) -> None:
    """One run that began alike certifies nothing; it keeps no certified prediction from acting."""
    session = parcels.session(3)
    first = next(item for item in outcomes(parcel_reflex, [session]) if item.is_call)
    context = parcel_reflex.context()
    context.extend(session.messages[:2])
    ranking = parcel_reflex.rank(context, {tool.name for tool in parcels.TOOLS})
    assert ranking.recalled is not None
    decision = parcel_reflex.decide(context, parcels.TOOLS)
    assert (decision.scope, decision.acts) == ("reads", True)
    assert first.acted["0.05"]
    alone = msgspec.structs.replace(
        parcel_reflex.card,
        certificates=tuple(
            one for one in parcel_reflex.card.certificates if one.scope.startswith("recalled")
        ),
    )
    without = Reflex(
        alone, parcel_reflex.identity, parcel_reflex.effects, parcel_reflex.members, frozenset(),
        parcel_reflex.recall,
    )  # fmt: skip
    assert without.decide(session.messages[:2], parcels.TOOLS).reason == "no_certificate"
