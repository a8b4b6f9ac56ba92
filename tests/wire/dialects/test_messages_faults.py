"""Errors of the messages dialect: read of any body, written with the right status."""

import json

import pytest

from reflexarc.steps.errors import MalformedError
from reflexarc.wire.dialects.messages import DIALECT, read_count
from reflexarc.wire.faults import Fault, FaultKind


def body(kind: str, **more: object) -> bytes:
    error = {"type": kind, "message": "why", **more}
    return json.dumps({"type": "error", "error": error, "request_id": "req_1"}).encode()


@pytest.mark.parametrize(
    ("status", "type_", "kind"),
    [
        (400, "invalid_request_error", "invalid_request"),
        (401, "authentication_error", "authentication"),
        (400, "billing_error", "billing"),
        (402, "billing_error", "billing"),
        (403, "permission_error", "permission"),
        (404, "not_found_error", "not_found"),
        (413, "request_too_large", "too_large"),
        (429, "rate_limit_error", "rate_limit"),
        (500, "api_error", "api"),
        (504, "timeout_error", "timeout"),
        (529, "overloaded_error", "overloaded"),
        (500, "overloaded_error", "overloaded"),
    ],
)
def test_types_and_statuses_become_kinds(status: int, type_: str, kind: FaultKind) -> None:
    assert DIALECT.read_fault(status, body(type_)) == Fault(kind, "why", status)


def test_details_and_types_that_are_not_known_are_kept() -> None:
    fault = DIALECT.read_fault(400, body("odd_error", details={"error_code": "x_y"}))
    assert fault.kind == "invalid_request"
    assert fault.code == "x_y"
    assert fault.more == {"type": "odd_error", "details": {"error_code": "x_y"}}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (b"<html>no</html>", "the upstream answered 502 without saying why"),
        (b"", "the upstream answered 502 without saying why"),
        (b"\xff bad gateway", "� bad gateway"),
        (b'{"error": "gone"}', "gone"),
        (b"[]", "[]"),
        (b"[" * 3000, "[" * 500),
    ],
)
def test_any_body_at_all_is_read(given: bytes, message: str) -> None:
    assert DIALECT.read_fault(502, given) == Fault("upstream", message, 502)


@pytest.mark.parametrize(
    ("fault", "status", "type_"),
    [
        (Fault("invalid_request", "m", 422), 422, "invalid_request_error"),
        (Fault("conflict", "m", 409), 409, "invalid_request_error"),
        (Fault("authentication", "m", 401), 401, "authentication_error"),
        (Fault("too_large", "m", 413), 413, "request_too_large"),
        (Fault("rate_limit", "m", 429), 429, "rate_limit_error"),
        (Fault("overloaded", "m", 503), 529, "overloaded_error"),
        (Fault("timeout", "m", 504), 504, "timeout_error"),
        (Fault("upstream", "m", 502), 502, "api_error"),
        (Fault("rate_limit", "m", 200), 429, "rate_limit_error"),
    ],
)
def test_faults_are_written_with_their_status(fault: Fault, status: int, type_: str) -> None:
    assert DIALECT.write_fault(fault, "req_9") == (
        status,
        {"type": "error", "error": {"type": type_, "message": "m"}, "request_id": "req_9"},
    )


def test_the_path_of_a_fault_is_told_in_its_message() -> None:
    _, written = DIALECT.write_fault(Fault("invalid_request", "is missing", 400, param="model"), "")
    assert written["error"]["message"] == "model: is missing"


@pytest.mark.parametrize("value", [None, [], {}, {"input_tokens": -1}, {"input_tokens": True}])
def test_a_count_that_is_none_is_refused(value: object) -> None:
    with pytest.raises(MalformedError):
        read_count(value)
