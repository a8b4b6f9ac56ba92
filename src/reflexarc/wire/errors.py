"""Errors of our own in the client's dialect; in OpenAI's form where nobody's is known."""

from typing import Any

import msgspec

from reflexarc.steps.errors import ReflexarcError, RequestError
from reflexarc.wire.dialects import dialect
from reflexarc.wire.faults import Fault, kind_of
from reflexarc.wire.json import encode_json
from reflexarc.wire.sse import data_event, named_event

_OPENAI = ("chat", "responses")


class _Detail(msgspec.Struct):
    message: str
    type: str
    param: str | None
    code: str | None


class _Body(msgspec.Struct):
    error: _Detail


def error_body(
    status: int, message: str, *, param: str | None = None, code: str | None = None
) -> bytes:
    """The body for an answer with this HTTP status; `type` follows from the status."""
    return msgspec.json.encode(_Body(_Detail(message, _kind(status), param, code)))


def error_face(
    error: ReflexarcError, client: str = "chat", request_id: bytes = b""
) -> tuple[int, bytes]:
    """Status and body of one of our errors, in the dialect `client`."""
    param = error.param if isinstance(error, RequestError) else None
    if client in _OPENAI:
        return error.status, error_body(error.status, str(error), param=param, code=error.code)
    fault = Fault(kind_of(error.status), str(error), error.status, code=error.code, param=param)
    return _written(fault, client, request_id)


def error_of(
    status: int, message: str, code: str, client: str = "chat", request_id: bytes = b""
) -> tuple[int, bytes]:
    """The same of what is no exception."""
    if client in _OPENAI:
        return status, error_body(status, message, code=code)
    return _written(Fault(kind_of(status), message, status, code=code), client, request_id)


def error_event(
    status: int,
    message: str,
    code: str,
    client: str = "chat",
    request_id: bytes = b"",
    number: int | None = None,
) -> bytes:
    """An error inside a stream that is on its way, whatever came of it. `number`: the event's in
    its stream, for a dialect that numbers them."""
    _, body = error_of(status, message, code, client, request_id)
    if client == "messages":
        return named_event(b"error", body)
    if client == "responses":
        said = msgspec.json.decode(body)["error"]
        event: dict[str, Any] = {
            "type": "error", "code": code, "message": said["message"], "param": None,
        }  # fmt: skip
        if number is not None:
            event["sequence_number"] = number
        return named_event(b"error", msgspec.json.encode(event))
    return data_event(body)


def _written(fault: Fault, client: str, request_id: bytes) -> tuple[int, bytes]:
    status, value = dialect(client).write_fault(fault, request_id.decode("latin-1"))
    return status, encode_json(value)


def _kind(status: int) -> str:
    if status == 404:
        return "not_found_error"
    if status in (502, 504):
        return "upstream_error"
    return "invalid_request_error" if status < 500 else "api_error"
