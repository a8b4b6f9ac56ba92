"""Errors in OpenAI's form, read and written: `{"error": {"message", "type", "param", "code"}}`.

For chat and responses alike, and for the servers that speak them nearly so: an error that is only a
string, a `code` that is an HTTP status, `detail` in place of `error`, a page of HTML.
"""

import re
from typing import Any, cast

import msgspec

from reflexarc.wire.faults import STATUS_OF, Fault, FaultKind, kind_of

MAX_WORDS = 1_000
"""Characters of a body that is no JSON, told as the error's message."""

_KINDS: dict[str, FaultKind] = {
    "invalid_request_error": "invalid_request",
    "invalid_prompt": "invalid_request",
    "context_length_exceeded": "invalid_request",
    "authentication_error": "authentication",
    "invalid_api_key": "authentication",
    "insufficient_quota": "billing",
    "billing_not_active": "billing",
    "billing_hard_limit_reached": "billing",
    "permission_error": "permission",
    "not_found_error": "not_found",
    "model_not_found": "not_found",
    "previous_response_not_found": "not_found",
    "conflict_error": "conflict",
    "exceed_context_size_error": "invalid_request",
    "request_too_large": "too_large",
    "rate_limit_error": "rate_limit",
    "rate_limit_exceeded": "rate_limit",
    "overloaded_error": "overloaded",
    "overloaded": "overloaded",
    "server_is_overloaded": "overloaded",
    "service_unavailable_error": "overloaded",
    "slow_down": "overloaded",
    "unavailable_error": "overloaded",
    "timeout_error": "timeout",
    "upstream_error": "upstream",
    "server_error": "api",
    "api_error": "api",
    "internal_error": "api",
}
"""What an error is by its `code` or `type`, the code first."""

_TYPES: dict[FaultKind, str] = {
    "authentication": "authentication_error",
    "billing": "insufficient_quota",
    "permission": "permission_error",
    "not_found": "not_found_error",
    "rate_limit": "rate_limit_error",
    "overloaded": "overloaded_error",
    "timeout": "timeout_error",
    "upstream": "upstream_error",
    "api": "api_error",
}
_OWN = "openai"
"""Under this name `Fault.more` holds what only this family says of an error."""

_telling = re.compile(
    r"(?:try again|retry) (?:in|after) (?:(?P<h>\d+)h)?(?:(?P<m>\d+)m(?!s))?"
    r"(?:(?P<s>\d+(?:\.\d+)?) ?s(?:ec)?)?"
    r"(?:(?P<ms>\d+(?:\.\d+)?)ms)?",
    re.IGNORECASE,
)
_HINTS = {
    "retry_after": 1.0,
    "retry_after_s": 1.0,
    "retry_after_seconds": 1.0,
    "retry_after_ms": 1e-3,
}
"""Members of an error or of its `metadata` that say when to try again, in units of so many s."""
_tags = re.compile(r"<[^>]*>")


def read_fault(status: int, body: bytes) -> Fault:
    """The fault of an error's body, whatever the body is."""
    try:
        value: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        words = " ".join(_tags.sub(" ", body.decode("utf-8", "replace")).split())[:MAX_WORDS]
        return _fault_of_status(status, words)
    if isinstance(value, list) and value:
        value = cast("list[Any]", value)[0]
    if isinstance(value, dict):
        return fault_of(cast("dict[str, Any]", value), status)
    return _fault_of_status(status, value[:MAX_WORDS] if isinstance(value, str) else "")


def fault_of(value: dict[str, Any], status: int = 0) -> Fault:
    """The fault that an object tells: a body with `error`, or the error itself, inside a stream
    say. `status` is what it came with; under 400 it says nothing of the error."""
    error: Any = value.get("error")
    if isinstance(error, str):
        return _fault_of_status(status, error)
    if not isinstance(error, dict):
        error = value
    members = {k: v for k, v in cast("dict[str, Any]", error).items() if v is not None}
    message = _message(members)
    code: Any = members.pop("code", None)
    kind = members.pop("type", None)
    param = members.pop("param", None)
    # Some servers say the HTTP status as the code.
    told = code if isinstance(code, int) and not isinstance(code, bool) and code >= 400 else 0
    if status < 400 and 400 <= told < 600:
        status = told
    name = code if isinstance(code, str) and code else None
    own: dict[str, Any] = {}
    # A stream's `error` event is one by its type; that is no word of the error's kind.
    if isinstance(kind, str) and kind not in ("error", "response.failed"):
        own["type"] = kind
    own.update(
        (k, v)
        for k, v in members.items()
        if k not in ("message", "detail", "sequence_number", "error", "response")
    )
    known = _KINDS.get(name or "") or _KINDS.get(own.get("type", ""))
    if status < 400:
        found: FaultKind = known or "api"
        status = STATUS_OF[found]
    else:
        found = kind_of(status)
        # The status is general where the words are not: 429 without quota, 400 without a key.
        if known is not None and (known == "billing" or found in ("invalid_request", "api")):
            found = known
        if found == "authentication":
            status = STATUS_OF[found]  # what clients go by, whatever this server answered
    return Fault(
        kind=found,
        message=message,
        status=status,
        code=name,
        param=param if isinstance(param, str) else None,
        retry_after_s=_retry_after_s(members, message),
        more={_OWN: own} if own else {},
    )


def write_fault(fault: Fault) -> tuple[int, dict[str, Any]]:
    """Status and body. The request's id stands in a header alone."""
    own = _own(fault)
    error = {
        "message": fault.message,
        "type": own.pop("type", None) or type_of(fault),
        "param": fault.param,
        "code": fault.code,
        **own,
    }
    return status_of(fault), {"error": error}


def status_of(fault: Fault) -> int:
    """Clients of this family know an overloaded server by 503 alone."""
    if fault.kind == "overloaded":
        return 503
    return fault.status if 400 <= fault.status < 600 else STATUS_OF[fault.kind]


def type_of(fault: Fault) -> str:
    return _TYPES.get(fault.kind, "invalid_request_error")


def _own(fault: Fault) -> dict[str, Any]:
    own = fault.more.get(_OWN)
    return dict(cast("dict[str, Any]", own)) if isinstance(own, dict) else {}


def _fault_of_status(status: int, words: str) -> Fault:
    shown = words or (f"the upstream answered {status}" if status else "the upstream failed")
    if status < 400:
        return Fault("api", shown, STATUS_OF["api"])
    return Fault(kind_of(status), shown, status, retry_after_s=_retry_after_s({}, words))


def _message(members: dict[str, Any]) -> str:
    for name in ("message", "detail", "error"):
        said = members.get(name)
        if isinstance(said, str) and said:
            return said
        if said:
            return msgspec.json.encode(said).decode()[:MAX_WORDS]
    return "the upstream failed and did not say why"


def _retry_after_s(members: dict[str, Any], message: str) -> float | None:
    """When to try again, where the words say so: `Please try again in 1m2.5s`."""
    inner = members.get("metadata")
    for held in (members, cast("dict[str, Any]", inner) if isinstance(inner, dict) else {}):
        for name, unit_s in _HINTS.items():
            said = held.get(name)
            if isinstance(said, int | float) and not isinstance(said, bool) and 0 <= said < 1e6:
                return said * unit_s
    found = _telling.search(message)
    if found is None or not any(found.groups()):
        return None
    hours, minutes, seconds, ms = (float(found[name] or 0) for name in ("h", "m", "s", "ms"))
    return round(hours * 3600 + minutes * 60 + seconds + ms / 1000, 3)
