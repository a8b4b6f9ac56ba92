"""OpenAI's errors, and those of servers that speak nearly so, are understood and said again."""

import json
from typing import Any

import pytest

from reflexarc.wire.dialects.openai_faults import fault_of, read_fault, write_fault
from reflexarc.wire.dialects.openai_shared import custom_to_flat, custom_to_nested
from reflexarc.wire.faults import Fault
from reflexarc.wire.turns import Call, Result, Thinking, Turn, joined


def _body(**error: Any) -> bytes:
    return json.dumps({"error": error}).encode()


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (400, _body(message="m", type="invalid_request_error"), "invalid_request"),
        (400, _body(message="m", code="invalid_api_key"), "authentication"),
        (401, b"", "authentication"),
        (403, _body(message="m"), "permission"),
        (404, _body(message="m", code="model_not_found"), "not_found"),
        (413, b"<html>too large</html>", "too_large"),
        (429, _body(message="m", code="rate_limit_exceeded"), "rate_limit"),
        (429, _body(message="m", code="insufficient_quota"), "billing"),
        (498, b"{}", "overloaded"),
        (500, _body(message="m", type="server_error"), "api"),
        (500, _body(message="m", type="overloaded_error"), "overloaded"),
        (502, b"bad gateway", "upstream"),
        (503, _body(message="m", type="server_error"), "overloaded"),
        (504, b"", "timeout"),
        (529, _body(message="m"), "overloaded"),
        (200, _body(message="m", code=429), "rate_limit"),
        (200, _body(message="m", type="invalid_request_error"), "invalid_request"),
        (200, _body(message="m"), "api"),
    ],
)
def test_the_kind_follows_from_status_and_words(status: int, body: bytes, kind: str) -> None:
    found = read_fault(status, body)
    assert found.kind == kind
    assert found.message
    told = 401 if kind == "authentication" else status
    assert found.status == told or (status == 200 and found.status >= 400)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"error": "just words"}', "just words"),
        (b'{"detail": "a detail"}', "a detail"),
        (b'{"detail": [{"loc": ["body"]}]}', '[{"loc":["body"]}]'),
        (b'{"object": "error", "message": "flat", "code": 400}', "flat"),
        (b'[{"error": {"message": "listed"}}]', "listed"),
        (b"<html><h1>502</h1>\n<p>Bad  Gateway</p></html>", "502 Bad Gateway"),
        (b"", "the upstream answered 400"),
        (b'"words"', "words"),
        (b"\xff\xfe", "��"),
        (b"[" * 5000, "[" * 1000),
    ],
)
def test_any_body_gives_words(body: bytes, message: str) -> None:
    assert read_fault(400, body).message == message


@pytest.mark.parametrize(
    ("words", "seconds"),
    [
        ("Please try again in 20s.", 20),
        ("Please try again in 1m2.5s. Visit", 62.5),
        ("Please try again in 250ms.", 0.25),
        ("try again in 1h3m0s", 3780),
        ("Please retry after 7 seconds.", 7),
        ("Please retry in 12.5 s.", 12.5),
        ("Please try again in a while", None),
        ("no hint", None),
    ],
)
def test_the_words_may_say_when_to_try_again(words: str, seconds: float | None) -> None:
    assert read_fault(429, _body(message=words)).retry_after_s == seconds


@pytest.mark.parametrize(
    ("error", "seconds"),
    [
        ({"retry_after": 3}, 3),
        ({"retry_after_ms": 1500}, 1.5),
        ({"metadata": {"retry_after_seconds": 4}}, 4),
        ({"metadata": {"retry_after": True}}, None),
        ({"metadata": "3", "retry_after": "soon"}, None),
    ],
)
def test_a_member_may_say_when_to_try_again(error: Any, seconds: float | None) -> None:
    assert read_fault(429, _body(message="m", **error)).retry_after_s == seconds


def test_a_body_goes_there_and_back_unchanged() -> None:
    body = {
        "error": {
            "message": "m",
            "type": "tokens",
            "param": "input[0]",
            "code": "rate_limit_exceeded",
            "failed_generation": "<f>",
        }
    }
    assert write_fault(read_fault(429, json.dumps(body).encode())) == (429, body)


@pytest.mark.parametrize(
    ("fault", "status", "kind"),
    [
        (Fault("overloaded", "m", 529), 503, "overloaded_error"),
        (Fault("overloaded", "m", 498), 503, "overloaded_error"),
        (Fault("rate_limit", "m", 429), 429, "rate_limit_error"),
        (Fault("invalid_request", "m", 422), 422, "invalid_request_error"),
        (Fault("too_large", "m", 413), 413, "invalid_request_error"),
        (Fault("upstream", "m", 502), 502, "upstream_error"),
        (Fault("api", "m", 200), 500, "api_error"),
        # Another dialect's words of an error are not said in this one.
        (Fault("api", "m", 500, more={"type": "elsewhere"}), 500, "api_error"),
    ],
)
def test_a_fault_of_any_dialect_is_said_in_this_one(fault: Fault, status: int, kind: str) -> None:
    error = {"message": "m", "type": kind, "param": None, "code": None}
    assert write_fault(fault) == (status, {"error": error})


def test_an_error_event_of_a_stream_is_read_flat_and_nested() -> None:
    flat = fault_of({"type": "error", "code": "server_error", "message": "m", "sequence_number": 3})
    assert flat == Fault("api", "m", 500, code="server_error")
    nested = fault_of({"type": "error", "error": {"type": "server_error", "message": "m"}})
    assert (nested.kind, nested.message) == ("api", "m")


def test_custom_tools_are_nested_and_flat() -> None:
    grammar = {"definition": "d", "syntax": "lark"}
    flat = {"type": "custom", "name": "n", "format": {"type": "grammar", **grammar}}
    nested = custom_to_nested(flat)
    assert nested["custom"] == {"name": "n", "format": {"type": "grammar", "grammar": grammar}}
    assert custom_to_flat(nested) == flat
    plain = {"type": "custom", "name": "n", "format": {"type": "text"}}
    assert custom_to_flat(custom_to_nested(plain)) == plain


def test_signatures_that_came_beside_calls_are_put_on_them() -> None:
    turns = joined(
        [
            Turn("assistant", (Thinking("", origin="gemini", calls={"b": "s"}),), joins=True),
            Turn("assistant", (Call("a", "f", "{}"),), joins=True),
            Turn("assistant", (Call("b", "g", "{}"),), joins=True),
            Turn("tool", (Result("b", ()),)),
        ]
    )
    assert turns[0].parts == (
        Call("a", "f", "{}"),
        Call("b", "g", "{}", signature="s", origin="gemini"),
    )
    assert turns[1].parts == (Result("b", (), name="g"),)
