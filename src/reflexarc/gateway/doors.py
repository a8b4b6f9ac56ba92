"""Which path of which route a request is for, in which dialect it is asked, and where it goes.

Under a route's path: `chat/completions`, `responses`, `messages` and `messages/count_tokens`,
`models`, and Gemini's `models/MODEL:generateContent` and its likes. A route whose path ends with
`/v1` answers Gemini's clients under `/v1beta` too, where they look.
"""

from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import unquote

import yarl

from reflexarc.gateway.asgi import Scope
from reflexarc.gateway.config import GatewayConfig, Route
from reflexarc.gateway.config_pool import MODELS
from reflexarc.steps.errors import ConfigError, RequestError
from reflexarc.upstream import Key
from reflexarc.wire.dialect import Where
from reflexarc.wire.dialects.gemini.words import model_path

ASKS = ("chat", "responses", "messages", "gemini")
"""Kinds of doors at which a model is asked: the dialects."""

_PATHS = {"chat": "/chat/completions", "responses": "/responses", "messages": "/messages"}
_VERBS = {
    "generateContent": ("gemini", False),
    "streamGenerateContent": ("gemini", True),
    "countTokens": ("count", False),
}


class Door(NamedTuple):
    """One path of one route. `kind` is the dialect of a request to a model, or `models`, `model`,
    `count` (of tokens), `kept` (an answer that was stored), `queued` (a request that waits).
    `client` is the dialect its answers are in, `upstream` the one that is spoken behind it; `url`
    is where it goes, `key` replaces the client's. `rest` is what follows the path: an id, say."""

    route: Route
    kind: str
    method: str
    url: yarl.URL
    key: Key | None
    client: str
    upstream: str
    where: Where = Where()
    rest: str = ""

    @property
    def methods(self) -> str:
        if self.kind == "queued":
            return "GET, DELETE" if self.rest else "GET"
        return "GET, POST, DELETE" if self.kind == "kept" else self.method

    def is_listed(self, query: bytes) -> bool:
        """Whether a stream is asked for as one JSON list, as Gemini does it without `alt=sse`. Only
        its own upstream can do that. Raises `RequestError` before any other."""
        if not self.where.stream or b"alt=sse" in query.split(b"&"):
            return False
        if self.upstream != "gemini":
            raise RequestError("streams are given as events only: ask with alt=sse", param="alt")
        return True

    def of_client(self, client: str) -> "Door":
        """The same path, asked in another dialect: its upstream may want the key elsewhere."""
        upstream = spoken(self.route, client)
        key = None if self.key is None else self.key.told_in(upstream)
        return self._replace(client=client, upstream=upstream, key=key)

    def takes(self, method: str) -> bool:
        return method in self.methods.split(", ")


class Doors:
    """Every path of every route. Raises `ConfigError` for a key that is not in the environment."""

    def __init__(self, config: GatewayConfig, environment: Mapping[str, str]) -> None:
        self._routes = {route.path: route for route in config.route}
        self._keys = {route.path: _secret(route, environment) for route in config.route}
        for route in config.route:
            if route.path.endswith("/v1"):
                self._routes.setdefault(f"{route.path}beta", route)
        self._doors: dict[str, Door] = {}
        for route in config.route:
            for client, path in _PATHS.items():
                self._doors[route.path + path] = self._asking(route, client)
            count = f"{route.path}/messages/count_tokens"
            self._doors[count] = self._door(route, "count", "POST", "messages", _COUNTING)
            if route.pooled:
                queued = f"{route.path}/queued"
                self._doors[queued] = self._door(route, "queued", "GET", "chat", "/queued")
        for path, route in self._routes.items():
            client = "gemini" if path != route.path else "chat"
            self._doors[f"{path}/models"] = self._door(route, "models", "GET", client, "/models")

    def of(self, scope: Scope) -> Door | None:
        return self._doors.get(scope["path"]) or self._named(scope)

    def _named(self, scope: Scope) -> Door | None:
        """`.../models/ID`, which may hold slashes, with a verb or none; `.../responses/ID`."""
        path: str = scope["path"]
        if {".", ".."} & set(path.split("/")):
            return None
        raw = bytes(scope["raw_path"]).decode("latin-1")
        for base, route in self._routes.items():
            begin = f"{base}/queued/"
            if route.pooled and path.startswith(begin) and len(path) > len(begin):
                door = self._door(route, "queued", "*", "chat", "/queued")
                return door._replace(rest=path[len(begin) :])
            for kind, begin in (("model", f"{base}/models/"), ("kept", f"{base}/responses/")):
                if not (path.startswith(begin) and raw.startswith(begin) and len(raw) > len(begin)):
                    continue
                rest = raw[len(begin) :]
                if kind == "kept":
                    door = self._door(route, "kept", "*", "responses", f"/responses/{rest}")
                    return door._replace(rest=rest)
                name, colon, verb = rest.rpartition(":")
                if colon and verb in _VERBS:
                    verb_kind, stream = _VERBS[verb]
                    where = Where(unquote(name), stream)
                    return self._gemini(route, verb_kind, where, f"/models/{rest}")
                client = "gemini" if base != route.path else "chat"
                door = self._door(route, "model", "GET", client, f"/models/{rest}")
                return door._replace(rest=unquote(rest))
        return None

    def _asking(self, route: Route, client: str) -> Door:
        upstream = spoken(route, client)
        path = _PATHS.get(upstream, "")  # Gemini's names the model: it is known with the body
        return self._door(route, client, "POST", client, path, upstream)

    def _gemini(self, route: Route, kind: str, where: Where, path: str) -> Door:
        """`path` as it came: what is escaped in it must stay so."""
        upstream = spoken(route, "gemini")
        if upstream != "gemini":
            path = _PATHS.get(upstream, path)
        door = self._door(route, kind, "POST", "gemini", path, upstream)
        return door._replace(where=where)

    def _door(
        self,
        route: Route,
        kind: str,
        method: str,
        client: str,
        path: str,
        upstream: str | None = None,
    ) -> Door:
        upstream = upstream or spoken(route, client)
        secret = self._keys[route.path]
        url = yarl.URL(f"{route.upstream.rstrip('/')}{path}", encoded=True)
        key = None if secret is None else Key.of(upstream, secret)
        return Door(route, kind, method, url, key, client, upstream)


_COUNTING = "/messages/count_tokens"


def spoken(route: Route, client: str) -> str:
    """The dialect in which a client's request goes upstream: its own where the upstream knows it,
    else the first that it does. Of a pooled route each deployment has its own: none of these."""
    if route.pooled:
        return MODELS
    dialects = route.dialects
    return client if client in dialects else dialects[0]


def gemini_url(route: Route, model: str, verb: str) -> yarl.URL:
    """Where Gemini answers for a model; `verb` as in `generateContent`. Raises `RequestError`."""
    query = "?alt=sse" if verb == "streamGenerateContent" else ""
    base = route.upstream.rstrip("/")
    return yarl.URL(f"{base}{model_path(model)}:{verb}{query}", encoded=True)


def _secret(route: Route, environment: Mapping[str, str]) -> str | None:
    if route.api_key_env is None:
        return None
    secret = environment.get(route.api_key_env)
    if not secret:
        raise ConfigError(
            f"route {route.path}: the environment variable {route.api_key_env} is not set"
        )
    return secret
