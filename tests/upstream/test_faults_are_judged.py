"""An error is told on where it is the request's, tried elsewhere where it is the deployment's.

And a deployment is left alone for exactly as long as it says."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reflexarc.upstream.judging_faults import LONGEST_COOL_DOWN_S, cool_down_s, fault_of, verdict
from reflexarc.upstream.providers import KINDS

NOW = 1_800_000_000.0  # 15 January 2027, 08:00:00 UTC


def chat(message: str = "m", **error: Any) -> bytes:
    return json.dumps({"error": {"message": message, **error}}).encode()


def messages(kind: str, message: str = "m") -> bytes:
    return json.dumps({"type": "error", "error": {"type": kind, "message": message}}).encode()


def gemini(status: str, message: str = "m", **more: Any) -> bytes:
    return json.dumps(
        {"error": {"code": 400, "status": status, "message": message, **more}}
    ).encode()


INVALID_KEY = {"details": [
    {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}
]}  # fmt: skip


@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.parametrize(
    "status", [401, 402, 403, 408, 409, 429, 498, 500, 502, 503, 504, 520, 529]
)
@pytest.mark.parametrize("body", [b"", b"<html>no</html>", b'{"error": {"message": "m"}}'])
def test_what_another_deployment_may_do_better_goes_elsewhere(
    kind: str, status: int, body: bytes
) -> None:
    assert verdict(kind, status, body) == "elsewhere"


@pytest.mark.parametrize(
    ("kind", "status", "body"),
    [
        ("openai", 404, chat("The model `gpt-9` does not exist", code="model_not_found")),
        ("anthropic", 404, messages("not_found_error", "model: claude-9")),
        ("gemini", 404, gemini("NOT_FOUND", "models/gemini-9 is not found for API version v1beta")),
        ("azure", 404, chat("The API deployment for this resource does not exist.",
                            code="DeploymentNotFound")),
        ("ollama", 404, chat('model "x" not found, try pulling it first', type="api_error")),
        ("vllm", 404, b'{"object":"error","message":"The model `x` does not exist.","code":404}'),
        ("vllm", 404, b"404 page not found"),
        ("groq", 400, chat("The model `x` has been decommissioned", code="model_decommissioned")),
        ("groq", 413, chat("Request too large for model `x` on tokens per minute (TPM)",
                           type="tokens", code="rate_limit_exceeded")),
        ("gemini", 400, gemini("INVALID_ARGUMENT", "API key not valid.", **INVALID_KEY)),
        ("anthropic", 400, messages("invalid_request_error",
                                    "Your credit balance is too low to access the Claude API.")),
        ("openai", 400, chat("Incorrect API key", code="invalid_api_key")),
    ],
)  # fmt: skip
def test_a_deployment_that_cannot_serve_this_is_left_for_another(
    kind: str, status: int, body: bytes
) -> None:
    assert verdict(kind, status, body) == "elsewhere"


@pytest.mark.parametrize(
    ("kind", "status", "body"),
    [
        ("openai", 400, chat("messages: missing", type="invalid_request_error")),
        ("openai", 400, chat("too long", code="context_length_exceeded")),
        ("azure", 400, chat("filtered", code="content_filter")),
        ("anthropic", 413, messages("request_too_large")),
        ("anthropic", 400, messages("invalid_request_error", "prompt is too long")),
        ("openai", 404, chat("Previous response not found", code="previous_response_not_found")),
        ("gemini", 400, gemini("INVALID_ARGUMENT", "bad schema")),
        ("openai", 405, chat("no")),
        ("vllm", 422, b'{"detail": [{"loc": ["body", "messages"]}]}'),
        ("compatible", 400, b"\xff\xfe"),
        ("openai", 200, chat("m", code="model_not_found")),
        ("openai", 307, b""),
    ],
)
def test_what_the_request_itself_is_refused_for_is_told_to_the_client(
    kind: str, status: int, body: bytes
) -> None:
    assert verdict(kind, status, body) == "answer"


@pytest.mark.parametrize("code", ["tool_use_failed", "json_validate_failed"])
def test_what_the_model_wrote_wrongly_may_do_better_asked_again(code: str) -> None:
    body = chat("Failed to call a function.", code=code, failed_generation="<f")
    assert verdict("groq", 400, body) == "again"


@given(st.sampled_from(sorted(KINDS)), st.integers(400, 599), st.binary(max_size=60))
def test_every_body_is_judged(kind: str, status: int, body: bytes) -> None:
    assert verdict(kind, status, body) in ("answer", "elsewhere", "again")


HINTED = fault_of("openai", 429, chat("Please try again in 7.5s."))


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ([(b"retry-after-ms", b"1500"), (b"retry-after", b"2")], 1.5),
        ([(b"Retry-After", b"20")], 20.0),
        ([(b"retry-after", b"0.25")], 0.25),
        ([(b"retry-after", b"0")], 0.0),
        ([(b"retry-after", b"Fri, 15 Jan 2027 08:01:30 GMT")], 90.0),
        ([(b"retry-after", b"Fri, 15 Jan 2027 07:00:00 GMT")], 0.0),
        ([(b"retry-after", b"99999999999")], LONGEST_COOL_DOWN_S),
        ([(b"retry-after", b"soon")], 7.5),
        ([(b"retry-after", b"-3")], 7.5),
        ([(b"retry-after", b"nan")], 7.5),
        ([], 7.5),
    ],
)
def test_headers_say_it_before_the_body_does(
    headers: list[tuple[bytes, bytes]], seconds: float
) -> None:
    assert cool_down_s(429, headers, HINTED, NOW) == seconds
    assert cool_down_s(503, headers, HINTED, NOW) == seconds
    assert cool_down_s(200, headers, HINTED, NOW) is None


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"x-ratelimit-reset-tokens": "1m2.5s"}, 62.5),
        ({"x-ratelimit-reset-tokens": "1.57s", "x-ratelimit-reset-requests": "6s"}, 1.57),
        ({"x-ratelimit-reset-tokens": "1.57s", "x-ratelimit-reset-requests": "6s",
          "x-ratelimit-remaining-requests": "0", "x-ratelimit-remaining-tokens": "50"}, 6.0),
        ({"x-ratelimit-reset-tokens": "12ms", "x-ratelimit-remaining-tokens": "0",
          "x-ratelimit-reset-requests": "1h2m", "x-ratelimit-remaining-requests": "0"}, 3720.0),
        ({"x-ratelimit-reset-requests-day": "33011.5",
          "x-ratelimit-remaining-requests-day": "0"}, 33011.5),
        ({"x-ratelimit-reset-requests": "1800000030"}, 30.0),
        ({"x-ratelimit-reset-requests": "1800000030500"}, 30.5),
        ({"anthropic-ratelimit-tokens-reset": "2027-01-15T08:00:45Z",
          "anthropic-ratelimit-tokens-remaining": "0",
          "anthropic-ratelimit-requests-reset": "2027-01-15T08:09:00Z",
          "anthropic-ratelimit-requests-remaining": "9"}, 45.0),
        ({"x-ratelimit-reset-tokens": "whenever"}, None),
        ({"x-ratelimit-reset-tokens": ""}, None),
        ({"x-ratelimit-remaining-tokens": "0"}, None),
    ],
)  # fmt: skip
def test_the_limits_own_headers_say_it_where_nothing_else_does(
    headers: dict[str, str], seconds: float | None
) -> None:
    given = [(name.encode(), value.encode()) for name, value in headers.items()]
    assert cool_down_s(429, given, None, NOW) == seconds
    assert cool_down_s(503, given, None, NOW) is None
    assert cool_down_s(429, [*given, (b"retry-after", b"3")], None, NOW) == 3.0


@given(st.lists(st.tuples(
    st.sampled_from([b"retry-after", b"retry-after-ms", b"x-ratelimit-reset-tokens"]),
    st.binary(max_size=30),
)))  # fmt: skip
def test_no_header_breaks_it(headers: list[tuple[bytes, bytes]]) -> None:
    said = cool_down_s(429, headers, None, NOW)
    assert said is None or 0 <= said <= LONGEST_COOL_DOWN_S
