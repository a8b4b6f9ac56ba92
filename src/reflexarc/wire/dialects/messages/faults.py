"""Errors of the messages dialect: bodies, and events inside a stream."""

from typing import Any, cast

import msgspec

from reflexarc.wire.dialects.messages.threads import CODES
from reflexarc.wire.faults import STATUS_OF, Fault, FaultKind, kind_of

OVERLOADED = 529

_KINDS: dict[str, FaultKind] = {
    "invalid_request_error": "invalid_request",
    "authentication_error": "authentication",
    "billing_error": "billing",
    "permission_error": "permission",
    "not_found_error": "not_found",
    "request_too_large": "too_large",
    "rate_limit_error": "rate_limit",
    "api_error": "api",
    "timeout_error": "timeout",
    "overloaded_error": "overloaded",
}
_TYPES: dict[FaultKind, str] = {
    **{kind: name for name, kind in _KINDS.items()},
    "method_not_allowed": "invalid_request_error",
    "conflict": "invalid_request_error",
    "upstream": "api_error",
}
_MAX_SHOWN_CHARS = 500


def read_fault(status: int, body: bytes) -> Fault:
    """Of any body at all. The status counts more than the type: a proxy in between may have made
    the body up; a type tells apart what one status covers."""
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        value = None
    if isinstance(value, dict):
        found = fault_in(cast("dict[str, Any]", value), status)
        if found is not None:
            return found
    return Fault(kind_of(status), _words(status, body), status)


def fault_in(value: dict[str, Any], status: int | None = None) -> Fault | None:
    """The error that an object tells of; None where it tells of none. Without a status, inside a
    stream or an answer, the type says it."""
    error = value.get("error")
    if isinstance(error, str) and error:
        return Fault(kind_of(status or 500), error, status or 500)
    if not isinstance(error, dict):
        return None
    given = cast("dict[str, Any]", error)
    name = given.get("type")
    named = _KINDS.get(name) if isinstance(name, str) else None
    if status is None or status < 400:
        kind = named or "api"
        status = OVERLOADED if kind == "overloaded" else STATUS_OF[kind]
    else:
        kind = kind_of(status)
        if named is not None and kind in ("invalid_request", "api"):
            kind = named
    message = given.get("message")
    more = {k: v for k, v in given.items() if k not in ("type", "message") and v is not None}
    if isinstance(name, str) and named is None:
        more["type"] = name
    details = given.get("details")
    code = cast("dict[str, Any]", details).get("error_code") if isinstance(details, dict) else None
    return Fault(
        kind,
        message if isinstance(message, str) and message else f"error {name or status}",
        status,
        code=code if isinstance(code, str) else None,
        more=more,
    )


def write_fault(fault: Fault, request_id: str) -> tuple[int, dict[str, Any]]:
    """Overloaded is 529 here. Where the dialect has no member for a path, the message tells it."""
    status = fault.status if fault.status >= 400 else STATUS_OF[fault.kind]
    if fault.kind == "overloaded":
        status = OVERLOADED
    return status, {**error_event(fault), "request_id": request_id}


def error_event(fault: Fault) -> dict[str, Any]:
    message = fault.message
    if fault.param and fault.param not in message:
        message = f"{fault.param}: {message}"
    error: dict[str, Any] = {"type": _TYPES[fault.kind], "message": message}
    details = fault.more.get("details")
    if isinstance(details, dict):
        error["details"] = details
    elif fault.code in CODES:
        error["details"] = {"error_code": fault.code}
    return {"type": "error", "error": error}


def _words(status: int, body: bytes) -> str:
    text = body[: 4 * _MAX_SHOWN_CHARS].decode(errors="replace").strip()
    if not text or text.startswith("<"):
        return f"the upstream answered {status} without saying why"
    return text[:_MAX_SHOWN_CHARS]
