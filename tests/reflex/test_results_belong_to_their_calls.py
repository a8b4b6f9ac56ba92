"""A log whose tool results are joined to the wrong calls certifies nothing."""

import random
from collections.abc import Sequence

import msgspec

from reflexarc.reflex import learn, results_fit
from reflexarc.steps import Message, Session
from tests.reflex import parcels


def redealt(sessions: Sequence[Session]) -> list[Session]:
    """The same sessions with tool results dealt out anew among all of them."""
    deck = [m.content for session in sessions for m in session.messages if m.role == "tool"]
    random.Random(5).shuffle(deck)
    results = iter(deck)

    def one(message: Message) -> Message:
        if message.role != "tool":
            return message
        return msgspec.structs.replace(message, content=next(results))

    return [
        msgspec.structs.replace(session, messages=tuple(one(m) for m in session.messages))
        for session in sessions
    ]


def without_results(sessions: Sequence[Session]) -> list[Session]:
    """The same sessions where every tool only says that it is done."""

    def one(message: Message) -> Message:
        content = "done" if message.role == "tool" else message.content
        return msgspec.structs.replace(message, content=content)

    return [
        msgspec.structs.replace(session, messages=tuple(one(m) for m in session.messages))
        for session in sessions
    ]


def test_results_of_a_good_log_fit() -> None:
    found = results_fit(parcels.sessions(0, 40, noise=0.1))
    assert found.fits is True
    assert found.own > 2 * found.other


def test_mixed_up_results_certify_nothing() -> None:
    sessions = parcels.sessions(0, 90, noise=0.02)
    good, mixed = learn(sessions, max_error=0.1), learn(redealt(sessions), max_error=0.1)
    assert any(one.threshold is not None for one in good.card.certificates)
    assert mixed.card.results.fits is False
    assert all(one.threshold is None for one in mixed.card.certificates)
    decision = mixed.decide(sessions[0].messages[:2], parcels.TOOLS, model="parcel-model")
    assert (decision.action, decision.reason) == ("escalate", "no_certificate")


def test_too_little_to_tell_is_said_and_forbids_nothing() -> None:
    silent = results_fit(without_results(parcels.sessions(0, 60)))
    assert (silent.fits, silent.outputs) == (None, 0)
    assert results_fit(parcels.sessions(0, 10)).fits is None
    assert results_fit([]).fits is None
