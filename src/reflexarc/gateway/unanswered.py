"""The native endpoint's answer when System 1 gives none: its form is checked, then escalated."""

import msgspec

from reflexarc.steps.errors import InputError
from reflexarc.wire.errors import error_face
from reflexarc.wire.reflex import AnswerSession, AnswerTiming, ReflexAnswer, reflex_request


def plain_escalation(body: bytes, reason: str, total_ms: float) -> tuple[int, bytes]:
    """Status and body. A session's head is empty: what the process held is not known."""
    try:
        request = reflex_request(body)
    except InputError as error:
        return error_face(error)
    answer = ReflexAnswer(
        decision="escalate",
        calls=[],
        confidence=0.0,
        guarantee=None,
        reason=reason,
        checks=[],
        alternatives=[],
        session=AnswerSession(request.session, "", len(request.messages or ()), 0),
        timing_ms=AnswerTiming(0.0, 0.0, 0.0, 0.0, round(total_ms, 4)),
    )
    return 200, msgspec.json.encode(answer)
