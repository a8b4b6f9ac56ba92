"""The HTTP protocol of the gateway's connections: uvicorn's, made safe for heads of any kind.

- `Upgrade` is ignored (RFC 9110, 7.8 allows it): the request is an ordinary one and keeps its body.
- A head, or anything else between two pieces of a body, is bounded while it arrives.
- Trailer fields of a chunked body are read and dropped; they never become headers.
- What the parser refuses gets an answer in the gateway's own form, after the answers before it.
"""

import http
from collections.abc import Callable
from typing import Any

import httptools

from reflexarc.gateway.asgi import Headers
from reflexarc.gateway.one_write import OneWriteProtocol

Refusal = Callable[[int, str, str], tuple[Headers, bytes]]
"""Status, message and code in; headers and body of the answer out."""


def protocol_of(max_head_bytes: int, refusal: Refusal) -> type["GatewayProtocol"]:
    """A class for `uvicorn.Config(http=...)`, which makes one object of it per connection."""

    class Bound(GatewayProtocol):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(max_head_bytes, refusal, *args, **kwargs)

    return Bound


class GatewayProtocol(OneWriteProtocol):
    """`max_head_bytes` counts from the second read of a head on: what arrives in one piece is
    bounded by the size of a read, and judged by the application."""

    def __init__(self, max_head_bytes: int, refusal: Refusal, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._max_head_bytes = max_head_bytes
        self._refusal = refusal
        self._in_body = False
        self._upgrading = False
        self._advanced = False
        self._bytes_since = 0
        self._refused = False
        self._last_words = b""

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        self._unset_keepalive_if_required()
        self._advanced = False
        rest = data
        while rest:
            try:
                self.parser.feed_data(rest)
                break
            except httptools.HttpParserUpgrade as upgrade:
                if self.parser.get_method() == b"CONNECT":
                    self._refuse(400, "CONNECT is not served here", "bad_http")
                    return
                rest = self._ordinary_head() + rest[upgrade.args[0] :]
                self._new_parser()
            except httptools.HttpParserError:
                self._refuse(400, "the request is not valid HTTP/1.1", "bad_http")
                return
        if self._advanced:
            self._bytes_since = 0
            return
        self._bytes_since += len(data)
        if self._bytes_since > self._max_head_bytes:
            what = "a chunk's head or the trailers are" if self._in_body else "the headers are"
            message = f"{what} more than {self._max_head_bytes} bytes"
            self._refuse(431, message, "headers_too_large")

    def on_message_begin(self) -> None:
        self._advanced = True
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._in_body:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._upgrading = self.parser.should_upgrade()
        if self._upgrading:
            return
        self._advanced = True
        super().on_headers_complete()
        self._in_body = True

    def on_body(self, body: bytes) -> None:
        self._advanced = True
        super().on_body(body)

    def on_message_complete(self) -> None:
        if self._upgrading:
            return
        self._in_body = False
        super().on_message_complete()

    def on_response_complete(self) -> None:
        was_last = not self.pipeline
        super().on_response_complete()
        if was_last and self._last_words:
            self._close_with(self._last_words)

    def _ordinary_head(self) -> bytes:
        """The head just read, without what asked for an upgrade: the parser takes such a request
        to have no body, and its body for the next request."""
        lines = [
            b"%b %b HTTP/%b"
            % (self.parser.get_method(), self.url, self.parser.get_http_version().encode()),
            *(name + b": " + value for name, value in self.headers if name != b"upgrade"),
        ]
        return b"\r\n".join(lines) + b"\r\n\r\n"

    def _new_parser(self) -> None:
        self._upgrading = False
        self.parser = httptools.HttpRequestParser(self)
        # As uvicorn sets it: what follows a request that closes the connection is no fault of it.
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)

    def _refuse(self, status: int, message: str, code: str) -> None:
        """Nothing more is read. The answer follows those to earlier requests."""
        self._refused = True
        headers, body = self._refusal(status, message, code)
        lines = [
            f"HTTP/1.1 {status} {http.HTTPStatus(status).phrase}".encode(),
            *(name + b": " + value for name, value in headers),
            b"content-length: %d" % len(body),
            b"connection: close",
        ]
        answer = b"\r\n".join(lines) + b"\r\n\r\n" + body
        if self._in_body:
            if self.pipeline:
                # This request waits for its turn, which it now never gets.
                self.pipeline.popleft()
                self._last_words = answer
            elif self.cycle.response_started:
                self.transport.close()
            else:
                self._close_with(answer)
        elif self.cycle is None or self.cycle.response_complete:  # pyright: ignore[reportUnnecessaryComparison] - uvicorn types it without its first value
            self._close_with(answer)
        else:
            self._last_words = answer

    def _close_with(self, answer: bytes) -> None:
        if not self.transport.is_closing():
            self.transport.write(answer)
            self.transport.close()
