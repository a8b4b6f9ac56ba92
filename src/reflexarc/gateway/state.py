"""What a gateway has in its state directory: opened once, and done without where that fails."""

import contextlib
import json
import logging
import os
import secrets
from collections.abc import Mapping
from pathlib import Path

import msgspec

from reflexarc.lifecycle.replaying import tested_models
from reflexarc.steps.errors import ConfigError
from reflexarc.store.place import ADMIN_TOKEN, DATABASE, make_private, secret, state_dir

_log = logging.getLogger("reflexarc.gateway")
GATEWAYS = "gateways"


class State(msgspec.Struct, frozen=True):
    """`directory` is None where there is none to be had: then nothing is recorded and System 1
    does not act. `secret` keys every hash and draw, `token` opens the admin routes."""

    directory: Path | None
    secret: bytes
    token: str

    @property
    def database(self) -> str | None:
        return str(self.directory / DATABASE) if self.directory is not None else None


def open_state(given: str | None, environment: Mapping[str, str]) -> State:
    """Never fails: a gateway without its directory still passes requests on."""
    directory = state_dir(given, environment)
    try:
        make_private(directory)
        return State(directory, secret(directory), secret(directory, ADMIN_TOKEN).hex())
    except ConfigError as error:
        _log.error("nothing is recorded, and System 1 does not act: %s", error)
        return State(None, secrets.token_bytes(32), secrets.token_hex(32))


class Tested:
    """The models whose provider passed the replay test, by upstream; read again where changed."""

    def __init__(self, directory: Path | None) -> None:
        self._directory = directory
        self._models: dict[str, tuple[str, ...]] = {}
        self.look()

    def look(self) -> None:
        if self._directory is not None:
            self._models = tested_models(self._directory)

    def of(self, upstream: str) -> tuple[str, ...]:
        return self._models.get(upstream.rstrip("/"), ())


class Registered:
    """Tells the commands of this machine that this gateway runs, and where. A context manager."""

    def __init__(
        self,
        directory: Path | None,
        url: str,
        unix_time: float,
        certificate_sha256: str | None = None,
    ) -> None:
        self._path = (
            directory / GATEWAYS / f"{os.getpid()}-{secrets.token_hex(4)}.json"
            if directory is not None
            else None
        )
        self._said: dict[str, object] = {"pid": os.getpid(), "url": url, "since_unix_s": unix_time}
        if certificate_sha256 is not None:
            self._said["certificate_sha256"] = certificate_sha256

    def __enter__(self) -> None:
        if self._path is not None:
            try:
                self._path.parent.mkdir(mode=0o700, exist_ok=True)
                self._path.write_text(json.dumps(self._said))
            except OSError as error:
                _log.warning("this gateway is not listed for other commands: %s", error)

    def __exit__(self, *_: object) -> None:
        if self._path is not None:
            self._path.unlink(missing_ok=True)


class RunningGateway(msgspec.Struct, frozen=True):
    """`certificate_sha256`: in hex, of the certificate it shows; None where it speaks plain
    HTTP."""

    pid: int
    url: str
    since_unix_s: float
    certificate_sha256: str | None = None


def running_gateways(directory: Path) -> list[RunningGateway]:
    """Those whose process is alive."""
    found: list[RunningGateway] = []
    for path in sorted((directory / GATEWAYS).glob("*.json")):
        try:
            one = msgspec.json.decode(path.read_bytes(), type=RunningGateway)
            # One that lives but is somebody else's is listed too.
            with contextlib.suppress(PermissionError):
                os.kill(one.pid, 0)
        except (OSError, msgspec.DecodeError):
            continue
        found.append(one)
    return found
