"""What the batch queue holds of a request, and what of it is never written down: keys.

Headers are an allow-list, both ways, so that a header nobody thought of is left out, not kept.
"""

from collections.abc import Iterable
from typing import Literal

import msgspec

State = Literal["waiting", "running", "done", "cancelled"]
Headers = tuple[tuple[str, str], ...]
GIVEN_UP = 500
"""Status of an entry that was never answered: each of its tries ended with its process."""
ENTRY_BYTES = 512
"""Counted for each entry beside its texts."""

_REQUEST = frozenset(
    {
        "accept", "anthropic-beta", "anthropic-version", "content-encoding", "content-type",
        "idempotency-key", "openai-beta", "traceparent", "tracestate", "user-agent",
        "x-correlation-id", "x-reflexarc-session", "x-reflexarc-task", "x-reflexarc-tier",
        "x-request-id", "x-session-affinity", "x-session-id",
    }
)  # fmt: skip
_ANSWER = frozenset(
    {
        "content-encoding", "content-type", "openai-processing-ms", "openai-version", "request-id",
        "retry-after", "retry-after-ms", "server-timing", "x-reflexarc-cost",
        "x-reflexarc-decision", "x-reflexarc-estimated", "x-reflexarc-warning", "x-request-id",
        "x-should-retry",
    }
)  # fmt: skip
_QUERY = frozenset({"alt", "api-version", "beta"})


class Entry(msgspec.Struct, frozen=True):
    """One request. `tenant` as everywhere, `key` the id of a virtual key and never a secret; times
    are Unix seconds, 0 where it has not happened. `body` is empty once it is answered or
    cancelled; `status`, `answer_headers` and `answer` are of its answer."""

    id: str
    tenant: str
    key: str
    route: str
    path: str
    headers: Headers
    body: bytes
    put_unix_s: float = 0.0
    state: State = "waiting"
    status: int = 0
    answer_headers: Headers = ()
    answer: bytes = b""
    tries: int = 0
    owner: str = ""
    taken_unix_s: float = 0.0
    finished_unix_s: float = 0.0


class Counts(msgspec.Struct, frozen=True):
    """Entries by state, and the bytes they take together."""

    waiting: int = 0
    running: int = 0
    done: int = 0
    cancelled: int = 0
    size_bytes: int = 0


def safe(entry: Entry) -> Entry:
    """Without any header and any member of the query that is not known to be harmless."""
    path, mark, query = entry.path.partition("?")
    kept = [pair for pair in query.split("&") if pair.partition("=")[0].lower() in _QUERY]
    whole = f"{path}{mark}{'&'.join(kept)}" if kept else path
    return msgspec.structs.replace(entry, path=whole, headers=_allowed(entry.headers, _REQUEST))


def safe_answer(headers: Iterable[tuple[str, str]]) -> Headers:
    """Of an answer: no cookies, and nothing else that is not on the list."""
    return _allowed(headers, _ANSWER)


def size_of(entry: Entry) -> int:
    """What an entry counts against the queue's bytes."""
    texts = (entry.id, entry.tenant, entry.key, entry.route, entry.path)
    headers = (*entry.headers, *entry.answer_headers)
    return (
        ENTRY_BYTES
        + sum(len(text.encode("utf-8", "replace")) for text in texts)
        + sum(len(name) + len(value) for name, value in headers)
        + len(entry.body)
        + len(entry.answer)
    )


def headers_text(headers: Headers) -> str:
    return msgspec.json.encode(headers).decode()


def headers_of(text: str) -> Headers:
    return msgspec.json.decode(text, type=Headers)


def _allowed(headers: Iterable[tuple[str, str]], names: frozenset[str]) -> Headers:
    return tuple((name, value) for name, value in headers if name.lower() in names)
