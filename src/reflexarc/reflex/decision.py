"""What System 1 answers: a decision, the call it proposes, where its arguments came from."""

from typing import Any, Literal

import msgspec

from reflexarc.provenance import SourceKind
from reflexarc.reflex.claims import CertificateClass


class Source(msgspec.Struct, frozen=True):
    """Where one argument's value came from.

    `message` is the index of the message in the request, `path` the JSON path in a tool result
    (`$.items[*].id`; `{k}` a key that varies), the shape of a text span, or the argument's name in
    an earlier call.
    """

    kind: SourceKind
    message: int | None = None
    path: str | None = None


class ProposedCall(msgspec.Struct, frozen=True):
    """A call System 1 would make. `confidence` is the calibrated probability that System 2 would
    make this very call; of an alternative it is the ranking's own estimate, at most as large."""

    name: str
    arguments: dict[str, Any]
    confidence: float
    sources: dict[str, Source] = {}


class Guarantee(msgspec.Struct, frozen=True):
    """The certificate a decision acted under: at `confidence_level`, over answers in `scope`
    (`certificate_class` "model-based"; "exact": over the tasks in which it acts, a wrong one in
    them), the share that System 2 would have made otherwise is at most `max_error`; judged on `n`
    answers of tasks not learned from, `errors` of them wrong."""

    max_error: float
    confidence_level: float
    scope: str
    n: int
    errors: int
    certificate_class: CertificateClass


class Decision(msgspec.Struct, frozen=True):
    """`act` with a call, `partial` with a call whose arguments named in `open` System 2 has to
    write, or `escalate` with a reason. An escalation still carries the best-ranked call, unless
    that was not asked for (`Reflex.decide`); but none is looked for where a message is far
    likelier. `scope`: that of the certificate it needs. `others`: what is called together with
    `call`, in one turn or not at all; `confidence` is that of all of them."""

    action: Literal["act", "partial", "escalate"]
    reason: str
    call: ProposedCall | None = None
    confidence: float = 0.0
    guarantee: Guarantee | None = None
    alternatives: tuple[ProposedCall, ...] = ()
    open: tuple[str, ...] = ()
    scope: str = ""
    others: tuple[ProposedCall, ...] = ()

    @property
    def calls(self) -> tuple[ProposedCall, ...]:
        """Everything that would be called together, `call` first; nothing where there is none."""
        return (self.call, *self.others) if self.call is not None else ()

    @property
    def acts(self) -> bool:
        """Whether the call may be made in System 2's place."""
        return self.action == "act"

    @property
    def tool(self) -> str | None:
        """The tool of the call that may be made, whole or in part; None on an escalation."""
        return self.call.name if self.call is not None and self.action != "escalate" else None

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of that call; empty on an escalation."""
        return self.call.arguments if self.call is not None and self.action != "escalate" else {}
