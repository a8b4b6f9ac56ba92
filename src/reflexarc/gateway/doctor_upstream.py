"""Asks an upstream for its models, and tells names, ports, certificates, keys and clocks apart.

It sends one GET that costs nothing, with the key that the gateway would send; no completion.
"""

import http.client
import socket
import ssl
import threading
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any, cast

import yarl

from reflexarc.gateway.config import Route
from reflexarc.gateway.finding import Finding
from reflexarc.upstream import Key
from reflexarc.upstream.headers import ANTHROPIC_VERSION

_DAY_S = 86_400
_EXPIRES_SOON_DAYS = 14
_SKEW_S = 30.0


def examine_upstream(
    route: Route,
    environment: Mapping[str, str],
    now_unix_s: float,
    limit_s: float = 5.0,
    tls: ssl.SSLContext | None = None,
) -> list[Finding]:
    """Takes `limit_s` seconds at most, whatever the network does: looking up a name has no limit
    of its own, and an answer may come a byte at a time. `tls`: whom to believe over https; None
    believes the usual authorities."""
    believed = tls or ssl.create_default_context()
    found: list[Finding] = []
    worker = threading.Thread(
        target=_ask,
        args=(route, environment, now_unix_s, limit_s, believed, found),
        daemon=True,
    )
    worker.start()
    worker.join(limit_s)
    if worker.is_alive():
        what = f"upstream {route.upstream}"
        do = "see that the model server answers, and that names are found"
        return [*found, Finding("fail", what, f"no whole answer within {limit_s:g} s", do)]
    return found


def _ask(
    route: Route,
    environment: Mapping[str, str],
    now_unix_s: float,
    limit_s: float,
    believed: ssl.SSLContext,
    found: list[Finding],
) -> None:
    url = yarl.URL(route.upstream)
    what = f"upstream {route.upstream}"
    host, port = url.host or "", url.port or 0
    key = environment.get(route.api_key_env) if route.api_key_env else None
    headers: dict[str, str] = {}
    if key:
        shown = Key.of(route.dialects[0], key)
        headers = {shown.name: shown.value, "anthropic-version": ANTHROPIC_VERSION}
    connection = (
        http.client.HTTPSConnection(host, port, timeout=limit_s, context=believed)
        if url.scheme == "https"
        else http.client.HTTPConnection(host, port, timeout=limit_s)
    )
    try:
        began_s = time.monotonic()
        connection.connect()
        if isinstance(connection.sock, ssl.SSLSocket):
            found.append(_certificate(what, connection.sock, now_unix_s))
        connection.request("GET", f"{url.raw_path.rstrip('/')}/models", headers=headers)
        answer = connection.getresponse()
        took_ms = (time.monotonic() - began_s) * 1000
        found.append(_status(what, route, answer.status, took_ms, bool(key)))
        if date := answer.getheader("Date"):
            found.append(_clock(what, date, now_unix_s))
    except (OSError, ValueError, http.client.HTTPException) as error:
        found.append(_unreached(what, host, error))
    finally:
        connection.close()


def _status(what: str, route: Route, status: int, took_ms: float, keyed: bool) -> Finding:
    said = f"GET models: {status} in {took_ms:.0f} ms"
    if status in (401, 403):
        if keyed:
            return Finding("fail", what, said, f"the key in {route.api_key_env} is refused")
        do = "fine if clients send their own key; else name its variable in api_key_env"
        return Finding("warn", what, f"{said}, asked without a key", do)
    if status == 404:
        do = "see whether the base URL ends in /v1; a few servers list no models"
        return Finding("warn", what, said, do)
    if 200 <= status < 300:
        return Finding("ok", what, said)
    return Finding("fail" if status >= 500 else "warn", what, said, "look at the upstream's log")


def _certificate(what: str, tls: ssl.SSLSocket, now_unix_s: float) -> Finding:
    shown = cast("dict[str, Any]", tls.getpeercert() or {})
    left_days = (ssl.cert_time_to_seconds(str(shown["notAfter"])) - now_unix_s) / _DAY_S
    said = f"{tls.version()}, certificate valid for {left_days:.0f} days"
    if left_days < _EXPIRES_SOON_DAYS:
        return Finding("warn", f"{what}, TLS", said, "have the certificate renewed")
    return Finding("ok", f"{what}, TLS", said)


def _clock(what: str, date: str, now_unix_s: float) -> Finding:
    try:
        theirs = parsedate_to_datetime(date).timestamp()
    except ValueError:
        return Finding("warn", f"{what}, clock", f"its Date header cannot be read: {date!r}")
    off_s = now_unix_s - theirs
    if abs(off_s) > _SKEW_S:
        side = "ahead of" if off_s > 0 else "behind"
        said = f"this clock is {abs(off_s):.0f} s {side} the upstream's"
        return Finding("warn", f"{what}, clock", said, "see which is wrong; set it with NTP")
    return Finding("ok", f"{what}, clock", f"within {_SKEW_S:g} s of the upstream's")


def _unreached(what: str, host: str, error: Exception) -> Finding:
    if isinstance(error, ssl.SSLCertVerificationError):
        do = "name a private authority's file in tls.ca_file, or have the certificate renewed"
        return Finding("fail", f"{what}, TLS", f"not verified: {error.verify_message}", do)
    if isinstance(error, ssl.SSLError):
        return Finding("fail", f"{what}, TLS", str(error), "does it serve https on this port?")
    if isinstance(error, socket.gaierror):
        return Finding("fail", what, f"no address is found for {host}", "look at name and DNS")
    said = str(error) or type(error).__name__
    return Finding("fail", what, f"cannot be asked: {said}", "is the model server running?")
