"""The card of a reflex: what it was learned from, what it may do, under which certificates."""

import msgspec

from reflexarc.reflex.certificate import Certificate as Certificate
from reflexarc.reflex.claims import CertificateClass
from reflexarc.reflex.integrity import ResultsFit
from reflexarc.reflex.per_task import PerTask
from reflexarc.reflex.reach import Reach
from reflexarc.reflex.repeat import NOTHING_RECURS, Repeats
from reflexarc.reflex.scopes import parent_scope
from reflexarc.steps import Effect


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
    (cross-fitted by task). `partial` certifies calls whose free text is left open. Where `results`
    says that recorded results do not belong to their calls, nothing is certified. `repeats`: how
    System 2 agrees with itself in the sessions learned from, beside which `exact` has to be read.

    `certificates` are of both classes and all scopes; those of `certificate_class` act, which was
    chosen before they were judged. `per_task`: what they mean for a task. `attempt` numbers the
    attempts at learning that share an error budget, from 1 (0: this one stands alone). Of `turns`
    of System 2 that called tools, `batches` called several at once; `whole`: such batches are
    answered as a whole where that is likelier right than wrong. `parts`: one call may be answered
    where System 2 makes several, which leaves it the others. `reach`: how likely a tool has to be
    for its calls to be looked for, where only what acts is wanted.
    """

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
    partial: tuple[Certificate, ...] = ()
    repeats: Repeats = NOTHING_RECURS
    certificate_class: CertificateClass = "model-based"
    per_task: tuple[PerTask, ...] = ()
    attempt: int = 0
    batches: int = 0
    turns: int = 0
    whole: bool = False
    parts: bool = True
    reach: tuple[Reach, ...] = ()

    @property
    def acting(self) -> tuple[Certificate, ...]:
        """The certificates of the class that acts, granted or not. Those of writes act only where
        that is allowed."""
        return tuple(
            one for one in self.certificates if one.certificate_class == self.certificate_class
        )

    @property
    def reads(self) -> tuple[Certificate, ...]:
        """Those of reads, which act by themselves."""
        scopes = (parent_scope("new", "read"), parent_scope("recalled", "read"))
        return tuple(one for one in self.acting if one.scope.split(":", 1)[0] in scopes)
