"""Which path of which route a request is for, and where it goes from there."""

from collections.abc import Mapping
from typing import NamedTuple

import yarl

from reflexarc.gateway.asgi import Scope
from reflexarc.gateway.config import GatewayConfig, Route
from reflexarc.steps.errors import ConfigError


class Door(NamedTuple):
    """One path of one route. `key` is the Authorization that replaces the client's."""

    route: Route
    kind: str
    method: str
    url: yarl.URL
    key: str | None


class Doors:
    """Every path of every route. Raises `ConfigError` for a key that is not in the environment."""

    def __init__(self, config: GatewayConfig, environment: Mapping[str, str]) -> None:
        self._routes = config.route
        self._doors = _doors(config, environment)

    def of(self, scope: Scope) -> Door | None:
        return self._doors.get(scope["path"]) or self._one_model(scope)

    def _one_model(self, scope: Scope) -> Door | None:
        """`.../models/ID`; an id may hold slashes."""
        path: str = scope["path"]
        if "/models/" not in path or {".", ".."} & set(path.split("/")):
            return None
        raw = bytes(scope["raw_path"]).decode("latin-1")
        for route in self._routes:
            begin = f"{route.path}/models/"
            if path.startswith(begin) and raw.startswith(begin) and len(raw) > len(begin):
                door = self._doors[f"{route.path}/models"]
                url = yarl.URL(f"{door.url}/{raw[len(begin) :]}", encoded=True)
                return door._replace(url=url)
        return None


def _doors(config: GatewayConfig, environment: Mapping[str, str]) -> dict[str, Door]:
    doors: dict[str, Door] = {}
    for route in config.route:
        base = route.upstream.rstrip("/")
        key: str | None = None
        if route.api_key_env is not None:
            secret = environment.get(route.api_key_env)
            if not secret:
                raise ConfigError(
                    f"route {route.path}: the environment variable {route.api_key_env} is not set"
                )
            key = f"Bearer {secret}"
        chat = yarl.URL(f"{base}/chat/completions")
        models = yarl.URL(f"{base}/models")
        doors[f"{route.path}/chat/completions"] = Door(route, "chat", "POST", chat, key)
        doors[f"{route.path}/models"] = Door(route, "models", "GET", models, key)
    return doors
