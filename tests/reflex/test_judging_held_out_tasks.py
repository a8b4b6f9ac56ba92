"""What is judged while learning: every call that was made, and what filled the confidence."""

import numpy as np

from reflexarc.reflex import Reflex
from reflexarc.reflex.confidence import confidence_features
from reflexarc.reflex.identity import offered_tools
from reflexarc.reflex.judging import SURELY_A_MESSAGE, Judging
from reflexarc.reflex.ranking import SURE_OF_A_MESSAGE
from reflexarc.reflex.recall import RecallLearner
from reflexarc.reflex.replay import replay
from tests.reflex import parcels


def test_where_a_message_is_sure_only_recorded_calls_are_compared(parcel_reflex: Reflex) -> None:
    member = parcel_reflex.members[0]
    held_out = list(enumerate(parcels.sessions(500, 520, noise=0.1)))
    reads = {name for name, effect in parcel_reflex.effects.items() if effect == "read"}
    judging = Judging(RecallLearner(), {"think"}, reads, set(), parts=True)
    judged = list(judging.items(member.predictor, None, member.familiarity, 0, held_out))
    at = 0
    for _, session in held_out:
        offered = {tool.name for tool in offered_tools(session)}
        for context, item in replay(session):
            one, ranking = judged[at], member.predictor.rank(context, offered)
            at += 1
            exact = ranking.calls[0].key in item.answers({"think"})
            assert one.exact == exact
            assert one.filled == (ranking.message_probability < SURELY_A_MESSAGE)
            wanted = confidence_features(context, ranking)
            np.testing.assert_array_equal(one.features, wanted if one.filled else 0 * wanted)
            assert one.right == (exact and one.filled)
            assert one.filled or not one.may_act
    assert at == len(judged)
    silent = [one for one in judged if not one.filled]
    assert len(silent) > 10
    assert sum(one.filled for one in judged) > 10
    assert all(one.tool is None for one in silent if one.call is None)


def test_what_could_act_is_filled() -> None:
    assert SURELY_A_MESSAGE > SURE_OF_A_MESSAGE
