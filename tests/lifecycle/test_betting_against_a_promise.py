"""The test that demotes: it does not when nothing changed, and does when a policy flips."""

import random

import pytest

from reflexarc.lifecycle.betting import Evidence
from reflexarc.lifecycle.clusters import MOST_TOGETHER, Clusters
from reflexarc.lifecycle.simulated import World, live
from reflexarc.lifecycle.watched import FALSE_DEMOTIONS, SCOPE_ALPHA, Watched, tool_alpha


def _wrongs(error: float, acts: int, seed: int) -> list[bool]:
    draw = random.Random(seed)
    return [draw.random() < error for _ in range(acts)]


def _against(wrongs: list[bool], null: float = 0.05) -> list[float]:
    evidence, found = Evidence(), []
    for wrong in wrongs:
        evidence = evidence.after(wrong=wrong, null=null, share=1.0)
        found.append(evidence.against)
    return found


def test_the_wealth_expected_under_the_claim_is_one() -> None:
    """Exactly, over all 2^n outcomes of n acts that err just as often as allowed."""
    null, acts = 0.2, 7
    total = 0.0
    for outcome in range(2**acts):
        wrongs = [bool(outcome >> at & 1) for at in range(acts)]
        probability = null ** sum(wrongs) * (1 - null) ** (acts - sum(wrongs))
        total += probability * _against(wrongs, null)[-1]
    assert total == pytest.approx(1.0)


@pytest.mark.parametrize("level", [0.02, 0.1])
def test_one_that_errs_as_often_as_allowed_is_hardly_ever_accused(level: float) -> None:
    alpha, lives = 0.1, 200
    accused = sum(
        max(_against(_wrongs(level, 400, seed), level)) >= 1 / alpha for seed in range(lives)
    )
    assert accused <= alpha * lives


def test_a_flip_after_a_thousand_right_acts_takes_a_handful_of_wrong_ones() -> None:
    against = _against([False] * 1000 + [True] * 20)
    alpha = tool_alpha(4)
    assert max(against[:1000]) <= 1.0
    assert 3 <= next(at for at, one in enumerate(against) if one >= 1 / alpha) - 999 <= 9


def test_the_whole_budget_is_not_exceeded() -> None:
    tools = sum(tool_alpha(place) for place in range(10_000))
    assert 2 * SCOPE_ALPHA + tools <= FALSE_DEMOTIONS


def test_acts_are_weighted_by_how_probably_they_were_audited() -> None:
    evidence = Evidence()
    for wrong, share in ((True, 1.0), (False, 1.0), (False, 0.1)):
        evidence = evidence.after(wrong=wrong, null=0.05, share=share)
    assert evidence.error == pytest.approx(1 / 12)
    assert Evidence().error is None


def test_an_error_in_a_session_makes_its_next_one_no_news() -> None:
    clusters = Clusters()
    first, second, third = (
        clusters.null(b"a", "reads", 0.05, wrong=True) for _ in range(3)
    )  # fmt: skip
    assert (first, second, third) == pytest.approx((0.05, 1.05 / 2, 2.05 / 3))
    assert clusters.null(b"b", "reads", 0.05, wrong=True) == 0.05
    assert clusters.null(b"a", "reads:other", 0.05, wrong=True) == 0.05


def test_a_session_without_end_counts_anew_after_a_while() -> None:
    clusters = Clusters()
    nulls = [clusters.null(b"a", "reads", 0.05, wrong=True) for _ in range(MOST_TOGETHER + 1)]
    assert nulls[0] == nulls[-1] == 0.05


def test_right_acts_of_a_session_do_not_make_its_errors_cheap() -> None:
    clusters = Clusters()
    for _ in range(5):
        assert clusters.null(b"a", "reads", 0.05, wrong=False) == 0.05


def test_the_share_is_high_at_first_low_later_and_whole_after_an_error() -> None:
    watched = Watched()
    shares = [watched.share(0.06)]
    for _ in range(400):
        watched = watched.answered(wrong=False, null=0.05, share=1.0)
        shares.append(watched.share(0.06))
    assert shares[0] == 1.0
    assert shares == sorted(shares, reverse=True)
    assert shares[-1] == 0.06
    after = watched.answered(wrong=True, null=0.05, share=0.06)
    assert after.share(0.06) == 1.0
    for _ in range(10):
        assert after.share(0.06) == 1.0
        after = after.answered(wrong=False, null=0.05, share=1.0)
    assert after.share(0.06) == 0.06
    assert watched.not_answered().share(0.06) == 1.0
    assert Watched().share(0.0) == 0.0


FLIPS = {
    "right after promotion": World(2_000, flips_at=1),
    "later": World(12_000, flips_at=4_000),
    "many acts while an audit is answered": World(12_000, flips_at=4_000, delay=60),
    "half of the audits never answered": World(12_000, flips_at=4_000, unanswered=0.5),
}


@pytest.mark.parametrize("world", FLIPS.values(), ids=FLIPS.keys())
def test_of_a_silent_flip_few_acts_are_wrong_unaudited(world: World) -> None:
    lives = [live(world, seed) for seed in range(12)]
    assert all({"reads:tool_0", "reads"} & set(one.demoted) for one in lives)
    mean = sum(one.unaudited_wrong for one in lives) / len(lives)
    assert mean <= 20 + 2 * 20 / len(lives) ** 0.5  # geometric: its deviation is about its mean


def test_a_fixed_low_share_would_break_the_promise() -> None:
    world = World(12_000, flips_at=2_000)
    lives = [live(world, seed, share=0.01) for seed in range(12)]
    assert sum(one.unaudited_wrong for one in lives) / len(lives) > 40


def test_a_reflex_that_keeps_its_promise_stays() -> None:
    world = World(2_500, error=0.05, together=0.5)
    assert not any(live(world, seed).demoted for seed in range(20))


def test_errors_that_come_together_would_be_called_a_breach_by_a_test_that_thinks_them_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Clusters, "null", lambda *args, **_: args[3])
    world = World(2_500, error=0.05, together=0.5, session_acts=20.0)
    assert any(live(world, seed).demoted for seed in range(20))
