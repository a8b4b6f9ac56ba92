"""The native decision endpoint's bodies: `POST /api/v1/reflex`, request bytes in, answer bytes out.

Unknown fields are refused, never ignored: a misspelt `max_error` must not loosen a limit silently.
"""

from typing import Any, Literal, cast

import msgspec

from reflexarc.steps.errors import MalformedError, RequestError
from reflexarc.wire.json import decode_strict, split_list, split_object

MAX_ALTERNATIVES = 16
MAX_SESSION_CHARS = 256
MAX_FIELD_BYTES = 1024 * 1024
"""Of a field other than `messages`, `append` and `tools`: a call with its arguments."""

_FIELDS = (
    "messages",
    "tools",
    "session",
    "append",
    "head",
    "reflex",
    "call",
    "max_error",
    "alternatives",
)


class CallToCheck(msgspec.Struct, frozen=True):
    """A call someone proposes, to be judged instead of chosen."""

    name: str
    arguments: dict[str, Any]


class ReflexRequest(msgspec.Struct, frozen=True):
    """One request. Messages and tools stay bytes, so that what is already known is not read
    again."""

    messages: list[msgspec.Raw] | None = None
    tools: msgspec.Raw | None = None
    session: str | None = None
    append: list[msgspec.Raw] | None = None
    head: str | None = None
    reflex: str | None = None
    call: CallToCheck | None = None
    max_error: float | None = None
    alternatives: int = 0


class AnswerCall(msgspec.Struct, frozen=True):
    """`sources` maps each argument to where its value came from."""

    id: str
    name: str
    arguments: dict[str, Any]
    sources: dict[str, dict[str, Any]]


class AnswerGuarantee(msgspec.Struct, frozen=True):
    max_error: float
    confidence_level: float
    scope: str
    n: int
    errors: int
    certificate_class: str


class AnswerCheck(msgspec.Struct, frozen=True):
    check: str
    ok: bool
    detail: str


class AnswerAlternative(msgspec.Struct, frozen=True):
    name: str
    arguments: dict[str, Any]
    confidence: float


class AnswerSession(msgspec.Struct, frozen=True):
    """`head` stands for the messages so far; `reused` counts those whose work was not redone."""

    id: str | None
    head: str
    messages: int
    reused: int


class AnswerTiming(msgspec.Struct, frozen=True):
    """Milliseconds."""

    parse: float
    context: float
    decide: float
    check: float
    total: float


class ReflexAnswer(msgspec.Struct, frozen=True):
    """The body of a 200. `open` names the arguments of a `partial` that System 2 has to write."""

    decision: Literal["act", "partial", "escalate", "deny"]
    calls: list[AnswerCall]
    confidence: float
    guarantee: AnswerGuarantee | None
    reason: str
    checks: list[AnswerCheck]
    alternatives: list[AnswerAlternative]
    session: AnswerSession
    timing_ms: AnswerTiming
    open: list[str] = []


def reflex_request(body: bytes) -> ReflexRequest:
    """Reads a request. Raises `MalformedError` (400) where the body is not strict JSON,
    `RequestError` (422) with the path of the fault where a field does not fit."""
    fields = split_object(body)
    for name in fields:
        if name not in _FIELDS:
            raise RequestError(
                f"{name} is not a field of this endpoint; known are {', '.join(_FIELDS)}",
                param=name,
            )
    request = ReflexRequest(
        messages=_messages(fields, "messages"),
        tools=_tools(fields),
        session=_text(fields, "session", MAX_SESSION_CHARS),
        append=_messages(fields, "append"),
        head=_text(fields, "head", 64),
        reflex=_text(fields, "reflex", 256),
        call=_call(fields),
        max_error=_max_error(fields),
        alternatives=_alternatives(fields),
    )
    _check_together(request)
    return request


def _check_together(request: ReflexRequest) -> None:
    if request.append is not None and request.session is None:
        raise RequestError("append needs session: it names what to append to", param="append")
    if request.append is not None and request.messages is not None:
        raise RequestError("messages and append exclude each other", param="append")
    if request.head is not None and request.session is None:
        raise RequestError("head needs session: it names whose head is meant", param="head")
    if request.messages is None and request.append is None:
        raise RequestError("messages is missing (or session with append)", param="messages")
    if request.messages is not None and not request.messages:
        raise RequestError("messages must hold at least one message", param="messages")
    if request.tools is None and request.session is None:
        raise RequestError("tools is missing", param="tools")


def _messages(fields: dict[str, msgspec.Raw], name: str) -> list[msgspec.Raw] | None:
    raw = fields.get(name)
    if raw is None or bytes(raw) == b"null":
        return None
    try:
        return split_list(raw, name)
    except MalformedError as error:
        raise RequestError(str(error), param=name) from error


def _tools(fields: dict[str, msgspec.Raw]) -> msgspec.Raw | None:
    raw = fields.get("tools")
    return None if raw is None or bytes(raw) == b"null" else raw


def _value(fields: dict[str, msgspec.Raw], name: str) -> Any:
    raw = fields.get(name)
    if raw is None:
        return None
    if len(memoryview(raw)) > MAX_FIELD_BYTES:
        raise RequestError(f"{name} is longer than {MAX_FIELD_BYTES} bytes", param=name)
    return decode_strict(bytes(raw), name)


def _text(fields: dict[str, msgspec.Raw], name: str, longest: int) -> str | None:
    value = _value(fields, name)
    if value is None:
        return None
    if not isinstance(value, str) or not 0 < len(value) <= longest:
        raise RequestError(f"{name} must be a string of 1 to {longest} characters", param=name)
    return value


def _call(fields: dict[str, msgspec.Raw]) -> CallToCheck | None:
    value = _value(fields, "call")
    if value is None:
        return None
    if not isinstance(value, dict):
        raise RequestError("call must be an object with name and arguments", param="call")
    call = cast(dict[str, Any], value)
    for key in call:
        if key not in ("name", "arguments"):
            raise RequestError(f"call.{key} is not a field of a call", param=f"call.{key}")
    name, arguments = call.get("name"), call.get("arguments")
    if not isinstance(name, str) or not name:
        raise RequestError("call.name must be a non-empty string", param="call.name")
    if not isinstance(arguments, dict):
        raise RequestError("call.arguments must be an object", param="call.arguments")
    return CallToCheck(name, cast(dict[str, Any], arguments))


def _max_error(fields: dict[str, msgspec.Raw]) -> float | None:
    value = _value(fields, "max_error")
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1:
        raise RequestError("max_error must be a number between 0 and 1", param="max_error")
    return float(value)


def _alternatives(fields: dict[str, msgspec.Raw]) -> int:
    value = _value(fields, "alternatives")
    if value is None:
        return 0
    whole = isinstance(value, int) and not isinstance(value, bool)
    if not whole or not 0 <= value <= MAX_ALTERNATIVES:
        raise RequestError(
            f"alternatives must be a whole number from 0 to {MAX_ALTERNATIVES}",
            param="alternatives",
        )
    return value
