"""Gemini's errors and counts of tokens, read and written."""

import json
from typing import Any

import pytest

from reflexarc.steps.errors import RequestError
from reflexarc.wire.dialects.gemini import DIALECT
from reflexarc.wire.dialects.gemini.counting import (
    read_count,
    read_count_request,
    write_count,
    write_count_request,
)
from reflexarc.wire.faults import Fault, FaultKind
from reflexarc.wire.ids import GEMINI_IDS, IdMap
from reflexarc.wire.losses import Losses
from reflexarc.wire.turns import Text, ToolOffer, Turn
from tests.wire.dialects.gemini_asks import HI, asked

QUOTA = {
    "error": {
        "code": 429,
        "message": "You exceeded your current quota.",
        "status": "RESOURCE_EXHAUSTED",
        "details": [
            {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": []},
            {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "12.5s"},
        ],
    }
}


def _read(status: int, value: Any) -> Fault:
    return DIALECT.read_fault(status, json.dumps(value).encode())


def test_a_hint_for_trying_again_is_read() -> None:
    fault = _read(429, QUOTA)
    assert (fault.kind, fault.status, fault.retry_after_s) == ("rate_limit", 429, 12.5)
    assert fault.message == "You exceeded your current quota."


def test_so_is_one_in_words() -> None:
    error = {"code": 429, "message": "Please retry in 41.5s.", "status": "RESOURCE_EXHAUSTED"}
    assert _read(429, {"error": error}).retry_after_s == 41.5


def test_an_error_goes_there_and_back_unchanged() -> None:
    assert DIALECT.write_fault(_read(429, QUOTA), "r") == (429, QUOTA)


@pytest.mark.parametrize(
    ("status", "word", "kind"),
    [
        (400, "INVALID_ARGUMENT", "invalid_request"),
        (400, "FAILED_PRECONDITION", "invalid_request"),
        (401, "UNAUTHENTICATED", "authentication"),
        (403, "PERMISSION_DENIED", "permission"),
        (404, "NOT_FOUND", "not_found"),
        (429, "RESOURCE_EXHAUSTED", "rate_limit"),
        (500, "INTERNAL", "api"),
        (503, "UNAVAILABLE", "overloaded"),
        (504, "DEADLINE_EXCEEDED", "timeout"),
    ],
)
def test_every_status_is_understood_in_a_body_and_in_a_stream(
    status: int, word: str, kind: FaultKind
) -> None:
    error = {"error": {"code": status, "message": "m", "status": word}}
    for fault in (_read(status, error), _read(status, [error]), _read(200, error)):
        assert (fault.kind, fault.status, fault.message) == (kind, status, "m")


def test_a_wrong_key_is_told_as_one() -> None:
    detail = {
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": "API_KEY_INVALID",
        "domain": "googleapis.com",
    }
    error = {"code": 400, "message": "m", "status": "INVALID_ARGUMENT", "details": [detail]}
    fault = _read(400, {"error": error})
    assert (fault.kind, fault.code) == ("authentication", "api_key_invalid")


def test_the_member_at_fault_is_read() -> None:
    violations = [{"field": "contents[0].parts", "description": "d"}]
    detail = {"@type": "x/google.rpc.BadRequest", "fieldViolations": violations}
    error = {"code": 400, "message": "m", "status": "INVALID_ARGUMENT", "details": [detail]}
    assert _read(400, {"error": error}).param == "contents[0].parts"


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (502, b"<html><title>502</title><body>Bad   Gateway</body></html>", "502 Bad Gateway"),
        (503, b"", "the provider answered 503"),
        (500, b"null", "the provider answered 500"),
        (500, b'"words"', "words"),
        (500, b'{"error":"words"}', "words"),
        (500, b'{"error":{}}', "the provider answered 500"),
        (500, b'{"error":{"message":7,"code":"x","status":3,"details":{}}}', "the provider"),
        (500, b"\xff\xfe", ""),
    ],
)
def test_any_body_at_all_is_read(status: int, body: bytes, message: str) -> None:
    fault = DIALECT.read_fault(status, body)
    assert fault.status == status
    assert fault.message.startswith(message)
    assert fault.message


def test_another_dialects_fault_is_written_in_this_ones_words() -> None:
    fault = Fault("rate_limit", "slow", 429, code="rate_limited", param="p", retry_after_s=0.25)
    status, body = DIALECT.write_fault(fault, "req_1")
    assert status == 429
    assert (body["error"]["code"], body["error"]["status"]) == (429, "RESOURCE_EXHAUSTED")
    back = _read(status, body)
    assert (back.kind, back.message, back.param) == ("rate_limit", "slow", "p")
    assert (back.code, back.retry_after_s) == ("rate_limited", 0.25)
    assert "req_1" in json.dumps(body)


@pytest.mark.parametrize(("status", "told"), [(529, 503), (498, 503), (422, 400), (404, 404)])
def test_statuses_are_those_that_clients_know(status: int, told: int) -> None:
    found, body = DIALECT.write_fault(Fault("overloaded", "m", status), "")
    assert found == body["error"]["code"] == told


def test_a_whole_second_to_wait_is_written_whole() -> None:
    _, body = DIALECT.write_fault(Fault("overloaded", "m", 503, retry_after_s=120.0), "")
    assert body["error"]["details"][-1]["retryDelay"] == "120s"


def test_counting_asks_for_instructions_and_tools_too() -> None:
    losses, ids = Losses("gemini"), IdMap(GEMINI_IDS)
    plain = write_count_request(asked(HI), losses, ids)
    assert plain == {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}
    system = Turn("system", (Text("s"),))
    whole = write_count_request(asked(system, HI, tools=(ToolOffer("f"),)), losses, ids)
    request = whole["generateContentRequest"]
    assert request["model"] == "models/gemini-2.5-flash"
    assert read_count_request(whole) == request
    assert read_count_request(plain) == plain
    assert {"contents", "systemInstruction", "tools"} < set(request)
    with pytest.raises(RequestError):
        read_count_request({**plain, **whole})


def test_a_count_is_read_and_written() -> None:
    assert read_count(write_count(31)) == 31
    assert read_count({"totalTokens": "x"}) is None
    assert read_count([]) is None
