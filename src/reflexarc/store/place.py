"""Where a gateway keeps things: one private directory, and the secrets in it."""

import fcntl
import os
import secrets
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from reflexarc.steps.errors import ConfigError

DATABASE = "reflexarc.db"
SECRET_KEY = "secret.key"
ADMIN_TOKEN = "admin.token"
VARIABLE = "REFLEXARC_STATE"
_BYTES = 32
_LOCK_ATTEMPTS, _LOCK_PAUSE_S = 40, 0.05


def state_dir(
    given: Path | str | None = None, environment: Mapping[str, str] | None = None
) -> Path:
    """The directory: as given, else `$REFLEXARC_STATE`, else the user's own by the XDG rules.
    It need not exist."""
    variables = os.environ if environment is None else environment
    if given is not None:
        return Path(given).expanduser()
    if named := variables.get(VARIABLE):
        return Path(named).expanduser()
    base = variables.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(base).expanduser() / "reflexarc"


def make_private(directory: Path) -> Path:
    """Makes the directory, for its owner alone. Raises `ConfigError` that says what to do."""
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"the state directory {directory} cannot be made: {error.strerror or error}; name "
            f"another with --state or {VARIABLE}"
        ) from error
    return directory


def secret(directory: Path, name: str = SECRET_KEY) -> bytes:
    """The secret in a file of the directory, drawn at its first use. Raises `ConfigError`."""
    path = directory / name
    try:
        try:
            found = bytes.fromhex(path.read_text().strip())
        except FileNotFoundError:
            return _drawn(directory, name)
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path} cannot be used: {error}; look at its permissions") from error
    if len(found) < _BYTES:
        raise ConfigError(f"{path} holds {len(found)} bytes of a secret, not {_BYTES}; remove it")
    return found


def _drawn(directory: Path, name: str) -> bytes:
    """Whole or not at all, and the same for all who draw at once."""
    make_private(directory)
    drawn = secrets.token_bytes(_BYTES)
    part = directory / f".{name}.{secrets.token_hex(4)}"
    descriptor = os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(drawn.hex() + "\n")
        try:
            os.link(part, directory / name)
        except FileExistsError:
            return secret(directory, name)
    finally:
        part.unlink()
    return drawn


def write_private(path: Path, data: bytes) -> None:
    """Writes a file for its owner alone; a reader sees the old one or the whole new one. Raises
    `OSError`."""
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


@contextmanager
def locked(directory: Path, name: str) -> Generator[None]:
    """Two who change a file at once must not undo each other. Waits some seconds at most, then
    raises `OSError`."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(directory / f".{name}.lock", os.O_CREAT | os.O_RDWR, 0o600)
    try:
        for attempt in range(_LOCK_ATTEMPTS):
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as error:
                if attempt + 1 == _LOCK_ATTEMPTS:
                    raise OSError(
                        f"another process holds the lock of {directory / name}"
                    ) from error
                time.sleep(_LOCK_PAUSE_S)
        yield
    finally:
        os.close(descriptor)
