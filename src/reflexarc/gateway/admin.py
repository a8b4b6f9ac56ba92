"""The admin routes: `POST /admin/off`, `POST /admin/on`, `GET /admin/state`.

Off is the safe side: whoever is on this machine may switch off. Everything else, and everybody
else, needs the token of the state directory (`authorization: Bearer ...`).
"""

import hmac
import ipaddress
import re
import time
from collections.abc import Awaitable, Callable
from typing import Any, cast

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from reflexarc.gateway.acting import Acting
from reflexarc.lifecycle.off import What, entry_of
from reflexarc.steps.errors import ConfigError, InputError, RequestError
from reflexarc.wire.errors import error_body, error_face
from reflexarc.wire.json import decode_strict

_MAX_BODY_BYTES = 16 * 1024
_PASSED_ON = frozenset({"x-forwarded-for", "forwarded", "via", "x-real-ip", "origin"})
_LOCAL_HOST = re.compile(r"(?:127(?:\.\d+){3}|localhost|\[::1\])(?::\d+)?")
_FIELDS = ("tool", "reflex", "who", "why")


def admin_routes(
    acting: Acting,
    token: str,
    modes: Callable[[], list[dict[str, Any]]],
    deployments: Callable[[], list[dict[str, Any]]],
) -> list[Route]:
    """`modes` describes the routes and what they may do now, `deployments` those of pooled routes
    as they stand."""

    async def off(request: Request) -> Response:
        return await _answered(request, token, local_may=True, work=_off)

    async def on(request: Request) -> Response:
        return await _answered(request, token, local_may=False, work=_on)

    async def state(request: Request) -> Response:
        return await _answered(request, token, local_may=True, work=_state)

    async def _off(fields: dict[str, str]) -> dict[str, Any]:
        what, name = _target(fields)
        entry = entry_of(what, name, time.time(), fields.get("who", "admin"), fields.get("why", ""))
        written = await acting.switch.turn_off(entry)
        return {**_said(), "written": written}

    async def _on(fields: dict[str, str]) -> dict[str, Any]:
        what, name = _target(fields)
        try:
            await acting.switch.turn_on(what, name, fields.get("who", "admin"))
        except OSError as error:
            raise ConfigError(f"it stays off: {error}") from error
        return {**_said(), "written": True}

    async def _state(_: dict[str, str]) -> dict[str, Any]:
        return _said()

    def _said() -> dict[str, Any]:
        return {
            "off": [
                {name: getattr(entry, name) for name in entry.__struct_fields__}
                for entry in acting.switch.off.entries
            ],
            "health": acting.health.why_off or "ok",
            "recorder": acting.recorder.why_unwell or "ok",
            "trail_waiting": acting.recorder.unwritten,
            "standing": acting.standings.shown(),
            "standing_seen_ns": acting.standings.seen_ns,
            "routes": modes(),
            "deployments": deployments(),
        }

    return [
        Route("/admin/off", off, methods=["POST"]),
        Route("/admin/on", on, methods=["POST"]),
        Route("/admin/state", state, methods=["GET"]),
    ]


async def _answered(
    request: Request,
    token: str,
    *,
    local_may: bool,
    work: Callable[[dict[str, str]], Awaitable[dict[str, Any]]],
) -> Response:
    try:
        if not (_has_token(request, token) or (local_may and _is_local(request))):
            body = error_body(
                401,
                "this needs the token in admin.token of the state directory: "
                "authorization: Bearer TOKEN",
                code="no_token",
            )
            return _json(401, body)
        return JSONResponse(await work(await _fields(request)))
    except InputError as error:
        status, body = error_face(error)
        return _json(status, body)
    except ConfigError as error:
        return _json(409, error_body(409, str(error), code=error.code))


def _json(status: int, body: bytes) -> Response:
    return Response(body, status_code=status, media_type="application/json")


async def _fields(request: Request) -> dict[str, str]:
    """Texts by name; an empty body says nothing. Raises `InputError`."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _MAX_BODY_BYTES:
            raise InputError(f"the body is over {_MAX_BODY_BYTES} bytes")
    if not body.strip():
        return {}
    value = decode_strict(body, "body")
    if not isinstance(value, dict):
        raise RequestError("the body must be an object")
    given = cast(dict[str, Any], value)
    for name, text in given.items():
        if name not in _FIELDS:
            raise RequestError(f"{name} is not known; {', '.join(_FIELDS)} are", param=name)
        if not isinstance(text, str) or not text:
            raise RequestError(f"{name} must be a non-empty string", param=name)
    return cast(dict[str, str], given)


def _target(fields: dict[str, str]) -> tuple[What, str]:
    if "tool" in fields and "reflex" in fields:
        raise RequestError("a tool or a reflex, not both: send two requests", param="tool")
    for what in ("tool", "reflex"):
        if what in fields:
            return what, fields[what]
    return "all", ""


def _has_token(request: Request, token: str) -> bool:
    given = request.headers.get("authorization", "")
    return hmac.compare_digest(given.encode("utf-8", "replace"), f"Bearer {token}".encode())


def _is_local(request: Request) -> bool:
    if request.client is None:
        return False
    # A proxy on this machine is local; whom it speaks for is not known to be.
    # A page in a browser on this machine is somebody else's.
    if _PASSED_ON & set(request.headers) or not _LOCAL_HOST.fullmatch(request.url.netloc):
        return False
    try:
        return ipaddress.ip_address(request.client.host).is_loopback
    except ValueError:
        return False
