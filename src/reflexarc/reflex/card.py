"""The card of a reflex: what it was learned from, what it may do, under which certificates."""

import msgspec

from reflexarc.reflex.integrity import ResultsFit
from reflexarc.steps import Effect


class Certificate(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A bound on the error of what a scope answers.

    With probability `confidence_level` over the draw of the learning tasks, at most `max_error` of
    the answers with confidence >= `threshold` are not what System 2 would have done. Judged on `n`
    answers, `errors` of them wrong, in `tasks` tasks, none of which was learned from by the model
    that answered. `threshold` is None where nothing could be certified; `missing` is about how
    many further right answers the level would then need.
    """

    max_error: float
    confidence_level: float
    scope: str
    threshold: float | None
    n: int
    errors: int
    tasks: int
    design_effect: float
    procedure: str
    missing: int


class ToolRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One tool: its effect and why it is taken for that; over held-out calls: how many there
    were, the share whose best-ranked call was exact."""

    name: str
    effect: Effect
    why: str
    calls: int
    tasks: int
    exact: float


class Card(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything a person needs to judge a reflex. Shares are of calls of tasks not learned from
    (cross-fitted by task). Where `results` says that recorded results do not belong to their
    calls, nothing is certified."""

    sessions: int
    tasks: int
    items: int
    calls: int
    exact: float
    max_error: float
    confidence_level: float
    models: tuple[str, ...]
    prompts: int
    results: ResultsFit
    tools: tuple[ToolRow, ...]
    certificates: tuple[Certificate, ...]
