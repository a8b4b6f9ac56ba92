"""Deployments: a provider's model in a service tier, with all that is needed to ask it."""

from pathlib import Path

import msgspec
import yarl

from reflexarc.steps.errors import ConfigError
from reflexarc.upstream.headers import Key
from reflexarc.upstream.transport import Timeouts
from reflexarc.wire.dialects.gemini.words import model_path

_PATHS = {"chat": "/chat/completions", "responses": "/responses", "messages": "/messages"}
_MAX_SECRET_BYTES = 64 * 1024


class Secret:
    """A key of a provider. It shows itself nowhere but in `value`."""

    __slots__ = ("value",)

    def __init__(self, value: str) -> None:
        self.value = value

    def __repr__(self) -> str:
        return "Secret(...)"

    @classmethod
    def of_file(cls, path: Path, where: str) -> "Secret":
        """What a file holds, without the white space around it. Raises `ConfigError`."""
        try:
            with path.open("rb") as file:
                text = file.read(_MAX_SECRET_BYTES + 1).decode().strip()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"{where}: key_file {path} cannot be read: {error}") from error
        if not text or len(text) > _MAX_SECRET_BYTES or not text.isprintable():
            raise ConfigError(f"{where}: key_file {path} holds no key")
        return cls(text)


class Deployment(msgspec.Struct, frozen=True, kw_only=True):
    """`base` is the URL that paths follow. `model` is the provider's name of it, empty where the
    client's own stays. Without a `secret` the client's key passes, if `passes_key`. `local`: what
    must not leave may go there; `private`: its address may be a private one. `replica` tells it
    from others of its provider that serve the same; `metrics`: it is asked for its own load;
    `kv_events`: where it tells of its prefix cache."""

    provider: str
    kind: str
    base: str
    dialects: tuple[str, ...]
    model: str
    service_tier: str = ""
    key_header: str = "authorization"
    secret: Secret | None = None
    passes_key: bool = False
    local: bool = False
    private: bool = False
    max_parallel: int | None = None
    call_ids: str = "usual"
    charged_as: str = ""
    timeouts: Timeouts | None = None
    replica: str = ""
    metrics: bool = False
    kv_events: str = ""

    @property
    def name(self) -> str:
        """Of all deployments no other has it."""
        return f"{self.kin}#{self.replica}" if self.replica else self.kin

    @property
    def kin(self) -> str:
        """The same name for all replicas."""
        tier = f"@{self.service_tier}" if self.service_tier else ""
        return f"{self.provider}/{self.model}{tier}"

    @property
    def identity(self) -> bytes:
        """What tells it from others to any gateway, whatever that calls it."""
        return "\0".join((self.base.rstrip("/"), self.model, self.service_tier)).encode()

    def spoken(self, client: str) -> str:
        """The dialect it is asked in: the client's own where it knows that."""
        return client if client in self.dialects else self.dialects[0]

    def url(self, dialect: str, *, stream: bool) -> yarl.URL:
        """Raises `RequestError` for a model that no path can be made of."""
        base = self.base.rstrip("/")
        if dialect == "gemini":
            verb = "streamGenerateContent?alt=sse" if stream else "generateContent"
            return yarl.URL(f"{base}{model_path(self.model)}:{verb}", encoded=True)
        return yarl.URL(f"{base}{_PATHS[dialect]}", encoded=True)

    def key(self, dialect: str) -> Key | None:
        """None where it has none of its own."""
        if self.secret is None:
            return None
        if self.key_header == "api-key":
            return Key("api-key", self.secret.value)
        return Key.of(dialect, self.secret.value)
