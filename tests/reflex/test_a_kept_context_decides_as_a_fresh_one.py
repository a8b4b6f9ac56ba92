"""What a context keeps from step to step saves work, and changes nothing that is decided."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

from reflexarc.reflex import Reflex
from reflexarc.reflex.context import Context
from reflexarc.reflex.fit import fit_predictor
from reflexarc.reflex.identity import offered_tools
from reflexarc.reflex.predictor import Predictor, Ranking
from reflexarc.reflex.private import Private
from reflexarc.reflex.replay import replay
from reflexarc.steps import Session
from reflexarc.traces import read_sessions, split_sessions
from tests.reflex import parcels

RETAIL = Path(__file__).resolve().parents[3] / "shared/data/sessions" / "tau1_retail_fork.jsonl.gz"


def compared(predictor: Predictor, sessions: Iterable[Session]) -> int:
    """Rank every first item of a turn in the context that was kept, and in one read anew."""
    ranked = 0
    for session in sessions:
        offered = {tool.name for tool in offered_tools(session)}
        for kept, item in replay(session):
            before = predictor.rank(kept, offered)
            if item.position:
                continue
            fresh = Context()
            fresh.extend(session.messages[: item.message])
            same(before, predictor.rank(fresh, offered))
            ranked += 1
    return ranked


def same(one: Ranking, other: Ranking) -> None:
    np.testing.assert_array_equal(one.probabilities, other.probabilities)
    assert [call.key for call in one.calls] == [call.key for call in other.calls]
    assert [call.joint for call in one.calls] == [call.joint for call in other.calls]


def test_a_parcel_desk(parcel_reflex: Reflex) -> None:
    predictor = parcel_reflex.members[0].predictor
    assert compared(predictor, parcels.sessions(500, 512, noise=0.02)) > 20


@pytest.mark.skipif(
    not RETAIL.exists(), reason="the public recordings are not beside this checkout"
)
def test_real_conversations() -> None:
    sessions = read_sessions([RETAIL])
    split = split_sessions(sessions, test_share=0.1, seed=1)
    train = [sessions[at] for at in split.train[:60:3]]
    predictor = fit_predictor(train, {"think"}, Private(train))
    assert compared(predictor, [sessions[at] for at in split.test[:16:4]]) > 25
