"""Errors of the four dialects as their providers write them."""

import json
from typing import Any

_TYPES = {
    400: ("invalid_request_error", "invalid_request_error", "INVALID_ARGUMENT"),
    401: ("invalid_request_error", "authentication_error", "UNAUTHENTICATED"),
    404: ("invalid_request_error", "not_found_error", "NOT_FOUND"),
    429: ("rate_limit_error", "rate_limit_error", "RESOURCE_EXHAUSTED"),
    500: ("server_error", "api_error", "INTERNAL"),
    503: ("server_error", "overloaded_error", "UNAVAILABLE"),
    529: ("server_error", "overloaded_error", "UNAVAILABLE"),
}
_CODES = {401: "invalid_api_key", 404: "model_not_found", 429: "rate_limit_exceeded"}


def error(dialect: str, status: int, message: str, retry_s: float | None = None) -> dict[str, Any]:
    """An error's body; where the dialect's body can hint when to try again, it does."""
    openai, anthropic, google = _TYPES[status]
    if dialect == "messages":
        said: dict[str, Any] = {"type": anthropic, "message": message}
        return {"type": "error", "error": said, "request_id": "req_upstream_1"}
    if dialect == "gemini":
        said = {"code": status, "message": message, "status": google}
        if retry_s is not None:
            kind = "type.googleapis.com/google.rpc.RetryInfo"
            said["details"] = [{"@type": kind, "retryDelay": f"{retry_s:g}s"}]
        return {"error": said}
    said = {"message": message, "type": openai, "param": None, "code": _CODES.get(status)}
    return {"error": said}


def no_threads() -> dict[str, Any]:
    """What Anthropic's client sends the whole conversation again for."""
    told = error("messages", 400, "no thread can be held with these features")
    told["error"]["details"] = {"error_code": "thread_unsupported_request", "unsupported": []}
    return told


def overloaded_status(dialect: str) -> int:
    return 529 if dialect == "messages" else 503


def failure(dialect: str) -> bytes:
    """A provider's error inside a stream."""
    told = error(dialect, overloaded_status(dialect), "overloaded inside the answer")
    if dialect == "responses":
        failed = {"code": "server_error", "message": told["error"]["message"]}
        response: dict[str, Any] = {
            "id": "resp_upstream_1",
            "status": "failed",
            "error": failed,
            "output": [],
        }
        value: dict[str, Any] = {
            "type": "response.failed",
            "sequence_number": 99,
            "response": response,
        }
        return f"event: response.failed\ndata: {json.dumps(value)}\n\n".encode()
    name = "event: error\n" if dialect == "messages" else ""
    return f"{name}data: {json.dumps(told)}\n\n".encode()
