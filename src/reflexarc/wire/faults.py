"""What went wrong, in no dialect: a kind, a status, words, and the hints for trying again.

Each dialect reads its providers' error bodies into a `Fault` and writes one as its own.
"""

from typing import Any, Literal

import msgspec

FaultKind = Literal[
    "invalid_request",
    "authentication",
    "billing",
    "permission",
    "not_found",
    "method_not_allowed",
    "conflict",
    "too_large",
    "rate_limit",
    "overloaded",
    "timeout",
    "upstream",
    "api",
]


class Fault(msgspec.Struct, frozen=True):
    """`status` is the HTTP status it came with, or would have. `retry_after_s`: when to try again,
    where the body says so. `more` holds what else the error's own dialect said of it."""

    kind: FaultKind
    message: str
    status: int
    code: str | None = None
    param: str | None = None
    retry_after_s: float | None = None
    more: dict[str, Any] = {}


_BY_STATUS: dict[int, FaultKind] = {
    401: "authentication",
    402: "billing",
    403: "permission",
    404: "not_found",
    405: "method_not_allowed",
    408: "timeout",
    409: "conflict",
    413: "too_large",
    429: "rate_limit",
    498: "overloaded",  # Groq's flex tier without capacity
    502: "upstream",
    503: "overloaded",
    504: "timeout",
    529: "overloaded",
}
STATUS_OF: dict[FaultKind, int] = {
    "invalid_request": 400,
    "authentication": 401,
    "billing": 402,
    "permission": 403,
    "not_found": 404,
    "method_not_allowed": 405,
    "conflict": 409,
    "too_large": 413,
    "rate_limit": 429,
    "overloaded": 503,
    "timeout": 504,
    "upstream": 502,
    "api": 500,
}
"""The status of a kind where nothing better is known: of an error inside a stream, say."""


def kind_of(status: int) -> FaultKind:
    known = _BY_STATUS.get(status)
    if known is not None:
        return known
    return "invalid_request" if status < 500 else "api"
