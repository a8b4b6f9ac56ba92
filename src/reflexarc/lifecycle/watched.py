"""How closely a stream of acts is watched: which of them are audited, and when it is demoted.

The limit that users feel: where a tool's policy flips silently and every act of it is wrong from
then on, at most 20 acts are expected to be wrong without System 2 having been asked. Acts before
the first audit count, and those made while it is under way (`behind.py`); after its answer every
act of the tool is audited until errors are behind it, so that no more come on top. A share of .06
means 15.7 acts before the first audit; where many acts are made while one is answered the share is
larger. Between 18, which is aimed at, and 20 lies what two gateways do at once.

The share starts at 1 and falls with the audits that agree: right after a promotion least is known,
and an error made by the promotion itself should not wait for chance.
"""

from typing import Annotated

import msgspec

from reflexarc.lifecycle.betting import Evidence

LOW_SHARE = 0.06
START_AUDITS = 10
"""The share is START_AUDITS / (START_AUDITS + audits that agreed), until it is the low one: some
160 audits over the first 1,400 acts of a tool."""
CLEARING = 10
"""So many audits in a row must agree until an error, of chance or not, is behind a tool. A tool
that errs every second time passes once in a thousand tries."""
LIMIT = 18.0
"""Unaudited acts expected from a flip to the answer that shows it."""
MAX_UNANSWERED = 10
"""Audits of a tool in a row that nobody answered, after which it does not act."""

FALSE_DEMOTIONS = 0.05
"""Largest probability that a version is ever demoted by audits though it errs no more than it may:
half of it for scopes as a whole, half for tools, the i-th of which has 1 / (i (i + 1)) of that."""
TOOL_SLACK = 3.0
"""A certificate over all reads allows one of them to err more often than all do. A tool that has
none of its own is held to so many times the level."""
_MOST_NULL = 0.5

_Count = Annotated[int, msgspec.Meta(ge=0)]


class Watched(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One stream: a tool, or all of a scope. `agreed` audits since it was promoted; `to_clear`
    more must agree before errors are behind it; `unanswered` in a row; `acts` made, audited or
    not."""

    evidence: Evidence = Evidence()
    agreed: _Count = 0
    to_clear: _Count = 0
    unanswered: _Count = 0
    acts: _Count = 0

    def acted(self, acts: int) -> "Watched":
        return msgspec.structs.replace(self, acts=self.acts + acts)

    def answered(self, *, wrong: bool, null: float, share: float, stake: float = 1.0) -> "Watched":
        """After System 2 said what it would have done; as in `Evidence.after`."""
        return Watched(
            self.evidence.after(wrong=wrong, null=null, share=share, stake=stake),
            self.agreed + (not wrong),
            CLEARING if wrong else max(0, self.to_clear - 1),
            0,
            self.acts,
        )

    def not_answered(self) -> "Watched":
        """After an audit that came to nothing: System 2 failed, or could not be understood. It says
        nothing for the reflex: the next act is audited for sure, and after ten in a row there is
        none."""
        return msgspec.structs.replace(self, unanswered=self.unanswered + 1)

    def share(self, low: float, start: int = START_AUDITS) -> float:
        """The probability with which its next act is audited, `low` in the long run (0: never).
        `start` 0: the low share from the first act on."""
        if not low:
            return 0.0
        if self.to_clear or self.unanswered:
            return 1.0
        return max(low, start / (start + self.agreed) if start else 0.0)

    def failed(self, alpha: float) -> bool:
        """Whether the claim is refuted at this level."""
        return self.evidence.against >= 1 / alpha


def tool_null(level: float, *, own: bool) -> float:
    """What a tool may err: the level where a certificate of its `own` says so."""
    return level if own else min(_MOST_NULL, TOOL_SLACK * level)


def tool_alpha(place: int) -> float:
    """Of the error budget, what the tool watched as the `place`-th (from 0) has."""
    return FALSE_DEMOTIONS / 2 / ((place + 1) * (place + 2))


SCOPE_ALPHA = FALSE_DEMOTIONS / 2 / 2
"""Reads and writes have a quarter of the budget each."""
