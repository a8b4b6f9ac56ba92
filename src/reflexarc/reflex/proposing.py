"""Ranked calls and certificates in the words of a decision."""

from reflexarc.reflex.candidates import ABSENT, CONSTANT, Candidate
from reflexarc.reflex.certificate import Certificate
from reflexarc.reflex.decision import Guarantee, ProposedCall, Source
from reflexarc.reflex.predictor import RankedCall


def guarantee_of(certificate: Certificate) -> Guarantee:
    """What a decision says of the certificate it acted under."""
    return Guarantee(
        certificate.max_error, certificate.confidence_level, certificate.scope,
        certificate.n, certificate.errors, certificate.certificate_class,
    )  # fmt: skip


def proposed(call: RankedCall, confidence: float) -> ProposedCall:
    """A ranked call as a decision shows it, with where its arguments came from."""
    sources = {
        name: source_of(candidate)
        for name, candidate in call.chosen.items()
        if candidate.made != ABSENT
    }
    return ProposedCall(call.name, call.arguments, round(confidence, 6), sources)


def source_of(candidate: Candidate) -> Source:
    """Where a candidate's value comes from, in the words of an answer."""
    if candidate.objects is not None:
        return Source(
            "tool_result", candidate.objects.origin.message, _path(candidate.objects.path)
        )
    if candidate.made == CONSTANT or not candidate.entries:
        return Source("constant")
    entry = candidate.entries[-1]
    return Source(entry.origin.kind, entry.origin.message, _path(entry.slot))


def _path(slot: str) -> str:
    """What a slot says without its kind and tool: a JSON path in a result, a line's name, a shape,
    the argument of an earlier call."""
    kind, _, place = slot.partition(":")
    if kind == "out":
        return f"${place.partition(':')[2]}"
    return place.partition(":")[2] if kind in ("kv", "tx") else place
