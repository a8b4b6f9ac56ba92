"""The few pieces of raw ASGI the hot routes need: reading a body, sending an answer."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, NamedTuple, cast

from reflexarc.steps.errors import TooLargeError

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]


class Arrival(NamedTuple):
    """One request that came in: its number in this process, its id for the world, when it came.
    `client` is the dialect its sender reads."""

    number: int
    request_id: bytes
    headers: Headers
    began_s: float
    receive: Receive
    send: Send
    client: str = "chat"


class ClientGoneError(Exception):
    """The client left before its body was complete; nobody is there to answer."""


def headers_of(scope: Scope) -> Headers:
    """Names in lower case, as the server gives them."""
    return cast(Headers, scope["headers"])


def header(headers: Headers, name: bytes) -> bytes | None:
    for given, value in headers:
        if given == name:
            return value
    return None


async def read_body(headers: Headers, receive: Receive, max_bytes: int) -> bytes:
    """The whole body. Raises `TooLargeError` as soon as it is known to be over the limit."""
    announced = header(headers, b"content-length")
    if announced is not None and announced.isdigit() and int(announced) > max_bytes:
        raise TooLargeError(f"the body is {int(announced)} bytes; the limit is {max_bytes}")
    message = await receive()
    if message["type"] == "http.disconnect":
        raise ClientGoneError
    body: bytes = message.get("body", b"")
    if not message.get("more_body"):
        if len(body) > max_bytes:
            raise TooLargeError(f"the body is over the limit of {max_bytes} bytes")
        return body
    parts = [body]
    size = len(body)
    while message.get("more_body"):
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGoneError
        part: bytes = message.get("body", b"")
        size += len(part)
        if size > max_bytes:
            raise TooLargeError(f"the body is over the limit of {max_bytes} bytes")
        parts.append(part)
    return b"".join(parts)


async def send_whole(
    send: Send, status: int, headers: Headers, body: bytes, content_type: bytes
) -> None:
    """One answer whose body is at hand."""
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [
                *headers,
                (b"content-type", content_type),
                (b"content-length", str(len(body)).encode()),
            ],
        }
    )
    await send({"type": "http.response.body", "body": body})
