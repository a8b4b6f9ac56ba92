"""Errors in Google's form: `{"error": {"code", "message", "status", "details"}}`, read and written.

The body may be a list of one; a stream's error is the same, in a chunk of its own.
"""

import re
from typing import Any, cast

import msgspec

from reflexarc.wire.faults import STATUS_OF, Fault, FaultKind, kind_of

MAX_WORDS = 1_000
"""Characters of a body that is no JSON, told as the error's message."""

_KINDS: dict[str, FaultKind] = {
    "INVALID_ARGUMENT": "invalid_request",
    "FAILED_PRECONDITION": "invalid_request",
    "OUT_OF_RANGE": "invalid_request",
    "UNAUTHENTICATED": "authentication",
    "PERMISSION_DENIED": "permission",
    "NOT_FOUND": "not_found",
    "ALREADY_EXISTS": "conflict",
    "ABORTED": "conflict",
    "RESOURCE_EXHAUSTED": "rate_limit",
    "CANCELLED": "api",
    "UNIMPLEMENTED": "api",
    "UNAVAILABLE": "overloaded",
    "DEADLINE_EXCEEDED": "timeout",
    "INTERNAL": "api",
    "DATA_LOSS": "api",
    "UNKNOWN": "api",
}
_STATUSES: dict[FaultKind, str] = {
    "invalid_request": "INVALID_ARGUMENT",
    "authentication": "UNAUTHENTICATED",
    "billing": "FAILED_PRECONDITION",
    "permission": "PERMISSION_DENIED",
    "not_found": "NOT_FOUND",
    "method_not_allowed": "UNIMPLEMENTED",
    "conflict": "ABORTED",
    "too_large": "INVALID_ARGUMENT",
    "rate_limit": "RESOURCE_EXHAUSTED",
    "overloaded": "UNAVAILABLE",
    "timeout": "DEADLINE_EXCEEDED",
    "upstream": "INTERNAL",
    "api": "INTERNAL",
}
_OWN = "gemini"
"""Under this name `Fault.more` holds what only Google says of an error."""
_TYPE = "type.googleapis.com/google.rpc."
_seconds = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)s")
_told_retry = re.compile(r"[Rr]etry in (\d{1,9}(?:\.\d+)?)(ms|s)\b")
_tags = re.compile(r"<[^>]*>")


def read_fault(status: int, body: bytes) -> Fault:
    """The fault of an error's body, whatever the body is."""
    try:
        value: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        words = " ".join(_tags.sub(" ", body.decode("utf-8", "replace")).split())
        return _plain(status, words)
    error = error_in(value)
    if error is not None:
        return fault_of(error, status)
    if isinstance(value, dict) and "message" in value:
        return fault_of(cast("dict[str, Any]", value), status)
    return _plain(status, value if isinstance(value, str) else "")


def error_in(value: Any) -> dict[str, Any] | None:
    """The error that a body or a chunk tells, None where it tells none."""
    if isinstance(value, list) and value:
        value = cast("list[Any]", value)[0]
    if not isinstance(value, dict):
        return None
    error = cast("dict[str, Any]", value).get("error")
    if isinstance(error, str):
        return {"message": error}
    return cast("dict[str, Any]", error) if isinstance(error, dict) else None


def fault_of(error: dict[str, Any], status: int = 0) -> Fault:
    """`status` is what it came with; under 400 it says nothing of the error."""
    word = error.get("status")
    known = _KINDS.get(word) if isinstance(word, str) else None
    code = error.get("code")
    if status < 400:
        told = code if isinstance(code, int) and not isinstance(code, bool) else 0
        status = told if 400 <= told < 600 else STATUS_OF[known or "api"]
    found = kind_of(status)
    if known is not None and found in ("invalid_request", "api"):
        found = known
    message = error.get("message")
    details = _details(error)
    reason = _of_type(details, "ErrorInfo").get("reason")
    # A wrong key is an invalid argument to Google, not a missing one.
    if reason in ("API_KEY_INVALID", "API_KEY_EXPIRED", "ACCESS_TOKEN_EXPIRED"):
        found, status = "authentication", STATUS_OF["authentication"]
    text = message if isinstance(message, str) and message else f"the provider answered {status}"
    own = {k: v for k, v in error.items() if k not in ("code", "message") and v is not None}
    return Fault(
        found,
        text,
        status,
        code=reason.lower() if isinstance(reason, str) else None,
        param=_field(details),
        retry_after_s=_retry_after(details, text),
        more={_OWN: own} if own else {},
    )


def _plain(status: int, words: str) -> Fault:
    if status < 400:
        status = 502
    return Fault(kind_of(status), words[:MAX_WORDS] or f"the provider answered {status}", status)


def _details(error: dict[str, Any]) -> list[dict[str, Any]]:
    given = error.get("details")
    listed = cast("list[Any]", given) if isinstance(given, list) else []
    return [cast("dict[str, Any]", one) for one in listed if isinstance(one, dict)]


def _of_type(details: list[dict[str, Any]], name: str) -> dict[str, Any]:
    for one in details:
        kind = one.get("@type")
        if isinstance(kind, str) and kind.endswith("." + name):
            return one
    return {}


def _field(details: list[dict[str, Any]]) -> str | None:
    found = _of_type(details, "BadRequest").get("fieldViolations")
    for one in cast("list[Any]", found) if isinstance(found, list) else []:
        if isinstance(one, dict):
            field = cast("dict[str, Any]", one).get("field")
            if isinstance(field, str) and field:
                return field
    return None


def _retry_after(details: list[dict[str, Any]], message: str) -> float | None:
    delay = _of_type(details, "RetryInfo").get("retryDelay")
    if isinstance(delay, str):
        found = _seconds.fullmatch(delay)
        if found:
            return float(found.group(1))
    told = _told_retry.search(message)
    if told is None:
        return None
    return float(told.group(1)) / (1_000 if told.group(2) == "ms" else 1)


def write_fault(fault: Fault, request_id: str) -> tuple[int, dict[str, Any]]:
    """`request_id` stands among the details. A status that only others know becomes one that
    Google's clients know: 529 is 503, 402 is 400."""
    status = {529: 503, 498: 503, 402: 400, 422: 400}.get(fault.status, fault.status)
    own = fault.more.get(_OWN)
    error: dict[str, Any] = {
        "code": status,
        "message": fault.message,
        "status": _STATUSES[fault.kind],
    }
    if isinstance(own, dict):
        error.update(cast("dict[str, Any]", own))
        return status, {"error": error}
    details: list[dict[str, Any]] = []
    if fault.code is not None:
        details.append({"@type": f"{_TYPE}ErrorInfo", "reason": fault.code.upper()})
    if fault.param is not None:
        violation = {"field": fault.param, "description": fault.message}
        details.append({"@type": f"{_TYPE}BadRequest", "fieldViolations": [violation]})
    if fault.retry_after_s is not None:
        delay = f"{fault.retry_after_s:.9f}".rstrip("0").rstrip(".")
        details.append({"@type": f"{_TYPE}RetryInfo", "retryDelay": f"{delay}s"})
    if request_id:
        details.append({"@type": f"{_TYPE}RequestInfo", "requestId": request_id})
    if details:
        error["details"] = details
    return status, {"error": error}
