"""Error bodies in OpenAI's form: `{"error": {"message", "type", "param", "code"}}`."""

import msgspec

from reflexarc.steps.errors import ReflexarcError, RequestError


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


def error_face(error: ReflexarcError) -> tuple[int, bytes]:
    """Status and body of one of our errors."""
    param = error.param if isinstance(error, RequestError) else None
    return error.status, error_body(error.status, str(error), param=param, code=error.code)


def _kind(status: int) -> str:
    if status == 404:
        return "not_found_error"
    if status in (502, 504):
        return "upstream_error"
    return "invalid_request_error" if status < 500 else "api_error"
