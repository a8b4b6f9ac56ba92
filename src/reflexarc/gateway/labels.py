"""The three headers every answer carries: `x-request-id`, `server-timing`, `x-reflexarc-decision`.

Grammar of `x-reflexarc-decision`, items separated by `; `, the first one the route's mode:

    none                                             not a chat request, or refused by the gateway
    off
    shadow; pending                                  not decided when the head was sent
    shadow; act; TOOL; CONFIDENCE                    what live mode would have done
    shadow; escalate; REASON
    live; act; TOOL; CONFIDENCE; max_error=BOUND     answered by System 1
    live; partial; TOOL; CONFIDENCE                  System 2 was told to call TOOL: `tool_choice`
                                                     of the request it was sent is changed
    live; escalate; REASON                           answered by System 2

Where the route's mode is managed, that stands in place of live.

TOOL and REASON are cut to 120 characters and then percent-encoded outside `A-Za-z0-9_.:/-`: clients
choose them, and must be able to read the head they come back in.
"""

import re
from urllib.parse import quote

from reflexarc.gateway.config import ACTING_MODES
from reflexarc.gateway.frames import Decided

MAX_NAME_CHARS = 120

_request_id = re.compile(rb"[\x21-\x7e]{1,128}")


class RequestIds:
    """Numbers requests under a prefix drawn once per process."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._last = 0

    def next(self) -> int:
        self._last += 1
        return self._last

    def text(self, number: int, given: bytes | None) -> bytes:
        """The client's own id where it sent a usable one."""
        if given is not None and _request_id.fullmatch(given):
            return given
        return own_request_id(self._prefix, number)


def own_request_id(prefix: str, number: int) -> bytes:
    """The id of a request that came without one."""
    return f"req_{prefix}{number:08x}".encode()


def decision_label(mode: str, decided: Decided | None) -> bytes:
    """The header's value for a decision; None where there is none yet."""
    if decided is None:
        return f"{mode}; pending".encode()
    if decided.action == "escalate":
        return escalation_label(mode, decided.reason)
    tool = "+".join(_quoted(name) for name in decided.tools)
    if len(decided.tools) < 2 or len(tool) > MAX_NAME_CHARS:
        tool = _quoted(decided.tool)
    label = f"{mode}; {decided.action}; {tool}; {decided.confidence:.2f}"
    if mode in ACTING_MODES and decided.action == "act":
        label += f"; max_error={decided.max_error:g}"
    return label.encode()


def escalation_label(mode: str, reason: str) -> bytes:
    return f"{mode}; escalate; {_quoted(reason)}".encode()


def cost_label(prompt_tokens: int, audit: bool) -> bytes:
    """`x-reflexarc-cost` of an act: what it really cost, beside what its `usage` says. System 2
    was not asked, so nothing; an audit's cost is System 2's, and known when it has answered."""
    label = f"usd=0; prompt_tokens_estimated={prompt_tokens}"
    return (f"{label}; audit=pending" if audit else label).encode()


def timing_label(**durations_ms: float) -> bytes:
    return ", ".join(f"{name};dur={ms:.3f}" for name, ms in durations_ms.items()).encode()


def id_headers(client: str, request_id: bytes) -> list[tuple[bytes, bytes]]:
    """A request's id under the names that clients of this dialect read."""
    if client == "messages":
        return [(b"request-id", request_id), (b"x-request-id", request_id)]
    return [(b"x-request-id", request_id)]


def own_headers(
    request_id: bytes, label: bytes, client: str = "chat", **durations_ms: float
) -> list[tuple[bytes, bytes]]:
    """The three of them, for an answer of our own."""
    return [
        *id_headers(client, request_id),
        (b"server-timing", timing_label(**durations_ms)),
        (b"x-reflexarc-decision", label),
    ]


def _quoted(text: str) -> str:
    return quote(text[:MAX_NAME_CHARS], safe="_.:/-", errors="replace")
