"""Heads of requests and answers: how large one may be, whether one is out, what one must say."""

from collections.abc import Awaitable

from reflexarc.gateway.asgi import Headers, Message, Send, header
from reflexarc.steps.errors import InputError


class HeadersTooLargeError(InputError):
    code = "headers_too_large"
    status = 431


def check_headers(headers: Headers, limit: int) -> None:
    """Raises `HeadersTooLargeError`. `limit` counts bytes as they stand in a request's head."""
    size = sum(len(name) + len(value) + 4 for name, value in headers)
    if size > limit:
        raise HeadersTooLargeError(f"the headers are {size} bytes; the limit is {limit}")


def closing(headers: Headers) -> Headers:
    """`connection: close` where a body may still be on its way that nobody is going to read."""
    length = header(headers, b"content-length")
    has_body = length not in (None, b"0") or header(headers, b"transfer-encoding") is not None
    return [(b"connection", b"close")] if has_body else []


class Head:
    """Knows whether an answer has begun: after that it can only be cut."""

    def __init__(self, send: Send) -> None:
        self.is_out = False
        self._send = send

    def send(self, message: Message) -> Awaitable[None]:
        """A `Send`, without a coroutine of its own: every chunk of a stream comes through here."""
        self.is_out = True
        return self._send(message)
