"""The pooled HTTP connection to System 2: sends bytes, hands back status, headers and bytes.

It decodes nothing, follows no redirect, keeps no cookie and reads no proxy settings from the
environment. A request that got no byte because the connection it took from the pool had gone stale
is sent again, at most three times; one that had a fresh connection never is, and nothing else is
retried.
"""

import asyncio
import io
import ipaddress
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextvars import ContextVar
from typing import NamedTuple, cast

import aiohttp
import msgspec
import yarl

from reflexarc.steps.errors import UpstreamError, UpstreamTimeoutError, UpstreamUnreachableError

# A stale pooled connection fails at once. An upstream that dies later has worked on the request,
# perhaps billed for it, and is not asked twice.
_STALE_WITHIN_S = 0.25
_MOST_STALE = 3
_WHOLE_BYTES = 1024 * 1024


class Timeouts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Limits in seconds: to connect, to the first byte of the answer's head (for a whole
    completion this covers all of the model's work), between bytes after it, and in all."""

    connect_s: float = 5.0
    first_byte_s: float = 600.0
    idle_s: float = 300.0
    total_s: float = 3600.0


class Reach(NamedTuple):
    """How far a request may go: into private networks or not, out of them or not, and its own
    limits in time (None: the transport's)."""

    private: bool = True
    timeouts: Timeouts | None = None
    public: bool = True


_ANYWHERE = Reach()


class PrivateAddressError(OSError):
    """A name that should lead out into the world leads into a private network."""


class PublicAddressError(OSError):
    """A name that should stay in a private network leads out into the world."""


class _Try:
    """One sending of a request. `fresh`: a connection was opened for it, none came from the
    pool."""

    def __init__(self, reach: Reach = _ANYWHERE) -> None:
        self.fresh = False
        self.reach = reach


# aiohttp's tracing would tell it too, at a fifth of a millisecond per large body.
_trying: ContextVar[_Try] = ContextVar("reflexarc_trying")


class Answer:
    """An upstream's answer whose head has arrived. Iterate `chunks` once, or `release`."""

    def __init__(self, response: aiohttp.ClientResponse, where: str, timeouts: Timeouts) -> None:
        self.status = response.status
        self.headers: tuple[tuple[bytes, bytes], ...] = response.raw_headers
        self._response = response
        self._where = where
        self._timeouts = timeouts
        connection = response.connection
        if connection is not None and connection.protocol is not None:
            connection.protocol.read_timeout = timeouts.idle_s
            connection.protocol.start_timeout()  # the running one is still the first byte's

    @property
    def finished(self) -> bool:
        """Whether every byte of the body has been handed out."""
        return self._response.content.at_eof()

    async def next_chunk(self) -> bytes:
        """What has arrived of the body, waiting for at least a byte; empty at its end.

        Raises `UpstreamTimeoutError` after `idle_s` of silence, `UpstreamUnreachableError` where
        the connection breaks.
        """
        try:
            return await self._response.content.readany()
        except TimeoutError as error:
            raise UpstreamTimeoutError(
                f"{self._where} fell silent for {self._timeouts.idle_s:g} s inside its answer"
            ) from error
        except (aiohttp.ClientError, ConnectionError) as error:
            raise UpstreamUnreachableError(
                f"{self._where} broke off inside its answer: {_said(error)}"
            ) from error

    async def chunks(self) -> AsyncIterator[bytes]:
        while chunk := await self.next_chunk():
            yield chunk

    def release(self) -> None:
        """Gives the connection back, or closes it where part of the answer was not read."""
        if not self._response.content.is_eof():
            self._response.close()
        self._response.release()


class Transport:
    """One pool of connections. Open it inside a running event loop; `close` it there."""

    def __init__(
        self,
        timeouts: Timeouts,
        clock: Callable[[], float],
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """`tls`: whom to believe over https; None believes the usual authorities."""
        self._timeouts = timeouts
        self._clock = clock
        self._session = aiohttp.ClientSession(
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            connector=aiohttp.TCPConnector(
                limit=0,
                keepalive_timeout=30,
                socket_factory=_fresh_socket,
                ssl=True if tls is None else tls,
            ),
            skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding", "Content-Type"),
            timeout=_limits(timeouts),
            # The largest status line and headers taken from an upstream.
            max_line_size=65536,
            max_field_size=65536,
        )

    async def send(
        self,
        method: str,
        url: yarl.URL,
        headers: list[tuple[str, str]],
        body: bytes | None,
        reach: Reach = _ANYWHERE,
    ) -> Answer:
        """Sends a request and waits for the head of its answer.

        Raises an `UpstreamError`: 502, or 504 where the upstream took too long.
        """
        timeouts = reach.timeouts or self._timeouts
        try:
            response = await self._request_on_live(method, url, headers, body, reach)
        except TimeoutError as error:
            raise UpstreamTimeoutError(
                f"{url.origin()} did not answer in time: {_said(error)} (limits: connect "
                f"{timeouts.connect_s:g} s, first byte {timeouts.first_byte_s:g} s)"
            ) from error
        except (aiohttp.ClientError, ConnectionError) as error:
            raise UpstreamUnreachableError(f"{url.origin()} {_fault(error)}") from error
        if not 200 <= response.status <= 599:
            response.close()
            raise UpstreamError(
                f"{url.origin()} answered with status {response.status}, which ends no request"
            )
        return Answer(response, str(url.origin()), timeouts)

    async def _request_on_live(
        self,
        method: str,
        url: yarl.URL,
        headers: list[tuple[str, str]],
        body: bytes | None,
        reach: Reach,
    ) -> aiohttp.ClientResponse:
        """Past connections of the pool that turn out to be closed: a pool may hold several."""
        for _ in range(_MOST_STALE):
            began_s = self._clock()
            trying = _Try(reach)
            try:
                return await self._request(method, url, headers, body, trying, reach)
            except (aiohttp.ServerDisconnectedError, OSError) as error:
                late = self._clock() - began_s > _STALE_WITHIN_S
                if trying.fresh or late or not _unanswered(error):
                    raise
        trying = _Try(reach)
        return await self._request(method, url, headers, body, trying, reach)

    async def _request(
        self,
        method: str,
        url: yarl.URL,
        headers: list[tuple[str, str]],
        body: bytes | None,
        trying: _Try,
        reach: Reach,
    ) -> aiohttp.ClientResponse:
        # A large body is written in pieces, so that other requests get their turns.
        _trying.set(trying)
        data = body if body is None or len(body) <= _WHOLE_BYTES else io.BytesIO(body)
        limits = self._session.timeout if reach.timeouts is None else _limits(reach.timeouts)
        return await self._session.request(
            method,
            url,
            data=data,
            headers=headers,
            allow_redirects=False,
            timeout=limits,
        )

    async def warm(self, url: yarl.URL, count: int) -> None:
        """Opens connections into the pool and asks nothing over them.

        Raises an `UpstreamError` where one cannot be had; those that can stay.
        """
        opened = await asyncio.gather(
            *(self._connected(url) for _ in range(count)), return_exceptions=True
        )
        for one in opened:
            if isinstance(one, aiohttp.connector.Connection):
                one.release()
        for one in opened:
            if isinstance(one, TimeoutError | aiohttp.ClientError | OSError):
                raise UpstreamUnreachableError(f"{url.origin()} {_fault(one)}") from one
            if isinstance(one, BaseException):
                raise one

    async def _connected(self, url: yarl.URL) -> aiohttp.connector.Connection:
        _trying.set(_Try())
        connector = self._session.connector
        assert connector is not None  # only a closed session has none
        request = aiohttp.ClientRequest("GET", url, loop=asyncio.get_running_loop())
        return await connector.connect(request, [], self._session.timeout)

    async def close(self) -> None:
        await self._session.close()
        # aiohttp closes TLS transports a loop turn after the session.
        await asyncio.sleep(0)


def never_sent(error: UpstreamError) -> bool:
    """Whether the upstream cannot have seen the request: no connection to it came about."""
    return isinstance(
        error.__cause__, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError
    )


def _fresh_socket(address: aiohttp.AddrInfoType) -> socket.socket:  # pyright: ignore[reportUnknownParameterType] - aiohttp leaves part of it open
    trying = _trying.get()
    trying.fresh = True
    host = str(cast("tuple[object, ...]", address[4])[0])
    if not trying.reach.public and _is_global(host):
        raise PublicAddressError(
            f"its name leads to {host}, out into the world: a provider with local = true is on a "
            "private network"
        )
    if not trying.reach.private and not _is_global(host):
        raise PrivateAddressError(
            f"its name leads to {host}, an address of a private network: private = true of its "
            "provider allows that"
        )
    return socket.socket(*address[:3])


def _is_global(host: str) -> bool:
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_global


def _limits(timeouts: Timeouts) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(
        total=timeouts.total_s,
        sock_connect=timeouts.connect_s,
        sock_read=timeouts.first_byte_s,
    )


def _unanswered(error: Exception) -> bool:
    """Whether the connection ended before the answer began, as a stale one does."""
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return isinstance(error.message, str)  # else what had come of the answer's head
    return isinstance(error, aiohttp.ClientOSError | ConnectionError) and not isinstance(
        error, aiohttp.ClientConnectorError
    )


def _fault(error: Exception) -> str:
    said = _said(error)
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return (
            f"failed TLS verification: {said}; name a private authority's file in SSL_CERT_FILE or "
            "tls.ca_file"
        )
    if isinstance(error, aiohttp.ClientConnectorSSLError):
        return f"cannot be spoken to over TLS: {said}; does it serve https on this port?"
    if isinstance(error, aiohttp.ClientConnectorError):
        if isinstance(error.os_error, PrivateAddressError | PublicAddressError):
            return f"is not asked: {error.os_error}"
        return f"cannot be reached: {said}; is the model server running?"
    if isinstance(error, aiohttp.ClientResponseError | aiohttp.ClientPayloadError):
        return f"broke HTTP: {said}"
    return f"closed the connection before it answered: {said}"


def _said(error: BaseException) -> str:
    return str(error) or type(error).__name__
