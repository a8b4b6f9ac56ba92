"""An anytime-valid test that a reflex errs no more than it may: wealth bet against that claim.

The claim under test, for one stream of audited acts: whatever came before, the next act is wrong
with probability at most `null`. A bettor who stakes the share g of a wealth on "wrong" multiplies
it by 1 - g + g/null where the act was wrong and by 1 - g where it was right; under the claim such a
wealth does not grow in expectation, so it ever reaches 1/alpha with probability at most alpha
(Ville's inequality), however often and whenever one looks. Wealth is spread over four stakes, so
that a tool that always errs and one that errs a little too often are both found, and over the
moments from which a bettor starts, since a policy may flip after thousands of right acts: the start
weights sum to 1, so the sum of all wealth is a test martingale itself.

Sources: Ville 1939. Waudby-Smith & Ramdas, "Estimating means of bounded random variables by
betting", JRSS-B 86 (2024). Ramdas, Gruenwald, Vovk & Shafer, "Game-theoretic statistics and safe
anytime-valid inference", Stat. Sci. 38 (2023). Podkopaev & Ramdas, "Tracking the risk of a deployed
model and detecting harmful distribution shifts", ICLR 2022. Shin, Ramdas & Rinaldo, "E-detectors",
2023, for wealth that starts at every moment.
"""

import math
from typing import Annotated

import msgspec

STAKES = (0.1, 0.3, 0.6, 0.9)
_MOST = 1e150
"""Far beyond any threshold; keeps the product of stakes finite."""

_Count = Annotated[int, msgspec.Meta(ge=0)]
_Amount = Annotated[float, msgspec.Meta(ge=0)]


class Evidence(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What audits of one stream (a tool, or all reads) said since it was promoted.

    `answered` audits, `wrong` of them. `weight` and `weight_wrong` sum 1 / (the probability with
    which the act was audited), so that their ratio estimates the error of all acts (Hajek 1971).
    `wealth`: one bettor's per stake, without the wealth of those who have not started.
    """

    answered: _Count = 0
    wrong: _Count = 0
    weight: _Amount = 0.0
    weight_wrong: _Amount = 0.0
    wealth: tuple[_Amount, _Amount, _Amount, _Amount] = (0.0, 0.0, 0.0, 0.0)

    def after(self, *, wrong: bool, null: float, share: float, stake: float = 1.0) -> "Evidence":
        """With one more audited act. `null`: the largest probability of being wrong that the claim
        allows it, in (0, 1); `share`: the probability, above 0, with which it was audited.
        `stake`, in (0, 1], is what it counts: where the acts of a stream are audited with different
        probabilities, the smallest of them over its own (inverse propensity), else acts that are
        audited more for being in doubt would speak for all."""
        gain = 1 / null - 1 if wrong else -1.0
        start = _waiting(self.answered) - _waiting(self.answered + 1)
        first, second, third, fourth = (
            min(_MOST, (held + start) * (1 + staked * stake * gain))
            for held, staked in zip(self.wealth, STAKES, strict=True)
        )
        return Evidence(
            self.answered + 1,
            self.wrong + wrong,
            self.weight + 1 / share,
            self.weight_wrong + wrong / share,
            (first, second, third, fourth),
        )

    @property
    def against(self) -> float:
        """The wealth of all: ever 1/alpha or more with probability alpha at most, if the claim
        holds."""
        return _waiting(self.answered) + sum(self.wealth) / len(STAKES)

    @property
    def error(self) -> float | None:
        """The estimated share of all acts that were wrong; None before the first audit."""
        return self.weight_wrong / self.weight if self.weight else None


def _waiting(answered: int) -> float:
    """The share of all wealth that starts after so many audits. It falls slowly: what starts at the
    thousandth audit is some 1e-5 of all, which costs four to five more wrong acts."""
    return 1 / (1 + math.log2(1 + answered))
