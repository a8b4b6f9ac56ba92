"""Asks the gateways that run on a state directory whether they have taken over a change of it."""

import getpass
import hashlib
import http.client
import json
import ssl
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import yarl

from reflexarc.gateway.state import RunningGateway, running_gateways
from reflexarc.steps.errors import ReflexarcError

_WAIT_S = 3.0
_ASK_S = 1.0
_PAUSE_S = 0.05


def user() -> str:
    """Who runs this command."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown user"


def confirmations(
    directory: Path, seen: Callable[[dict[str, Any]], bool]
) -> tuple[list[RunningGateway], list[RunningGateway]]:
    """Waits some seconds at most until `seen` holds of what each says at `/admin/state`; those of
    which it does, and those of which it does not."""
    deadline_s = time.monotonic() + _WAIT_S
    waiting = {one.pid: one for one in running_gateways(directory)}
    confirmed: list[RunningGateway] = []
    while waiting and time.monotonic() < deadline_s:
        for one in list(waiting.values()):
            answer = _asked(one)
            if answer is not None and seen(answer):
                confirmed.append(waiting.pop(one.pid))
        if waiting:
            time.sleep(_PAUSE_S)
    return confirmed, list(waiting.values())


def refuse_silence(silent: Sequence[RunningGateway]) -> None:
    """Raises `ReflexarcError` that names those that did not confirm."""
    if silent:
        named = ", ".join(f"{one.url} (pid {one.pid})" for one in silent)
        raise ReflexarcError(
            f"written, but {named} did not confirm it within {_WAIT_S:g} s; if it still answers "
            "requests it reads the file a few times a second, else stop the process"
        )


def _asked(gateway: RunningGateway) -> dict[str, Any] | None:
    connection = _connection(gateway)
    try:
        connection.connect()
        if isinstance(connection.sock, ssl.SSLSocket):
            shown = connection.sock.getpeercert(binary_form=True) or b""
            if hashlib.sha256(shown).hexdigest() != gateway.certificate_sha256:
                return None
        connection.request("GET", "/admin/state")
        said = json.loads(connection.getresponse().read())
    except (OSError, http.client.HTTPException, ValueError):
        return None
    finally:
        connection.close()
    return cast("dict[str, Any]", said) if isinstance(said, dict) else None


def _connection(gateway: RunningGateway) -> http.client.HTTPConnection:
    """Straight to it: a proxy of the environment is not for this machine."""
    url = yarl.URL(gateway.url)
    host, port = url.host or "", url.port or 0
    if url.scheme == "http":
        return http.client.HTTPConnection(host, port, timeout=_ASK_S)
    # A certificate is made out to the name that clients use, and its authority may be unknown
    # here: neither can be verified over an address of this machine. What is verified instead is
    # that it is the very one this gateway put into the state directory, which only its user writes.
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return http.client.HTTPSConnection(host, port, timeout=_ASK_S, context=context)
