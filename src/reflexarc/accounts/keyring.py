"""The keys in the book: made, found, changed, revoked. Their secrets are not in it."""

import re
import secrets
from collections.abc import Callable

import msgspec
from sqlalchemy import Connection, insert, select, update

from reflexarc.accounts.database import Database, keys
from reflexarc.accounts.keys import VirtualKey, hash_of, new_secret
from reflexarc.steps.errors import BookError, ConfigError

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
_settings: msgspec.json.Decoder[VirtualKey] = msgspec.json.Decoder(VirtualKey)


class Keyring:
    """`state_secret` is the state directory's, under which secrets of keys are hashed. Raises
    `BookError` where the file cannot be used."""

    def __init__(
        self, database: Database, state_secret: bytes, unix_time: Callable[[], float]
    ) -> None:
        self._database = database
        self._state_secret = state_secret
        self._unix_time = unix_time

    def create(
        self, wanted: VirtualKey, random_bytes: Callable[[int], bytes] = secrets.token_bytes
    ) -> tuple[VirtualKey, str]:
        """The key and its secret, which cannot be had again. Its id and its time are drawn here;
        without a tenant it is one of its own. Raises `ConfigError` for a name that is taken."""
        if not _NAME.fullmatch(wanted.name):
            raise ConfigError(
                f"{wanted.name!r} cannot name a key: letters, digits, . _ @ and -, 64 at most"
            )
        identity = f"key_{random_bytes(6).hex()}"
        made = msgspec.structs.replace(
            wanted,
            id=identity,
            tenant=wanted.tenant or identity,
            created_unix_s=self._unix_time(),
        )
        secret = new_secret(random_bytes)
        with self._database.writing() as connection:
            if _named(connection, made.name) is not None:
                raise ConfigError(
                    f"there is a key {made.name!r} already (names of revoked keys stay theirs)"
                )
            connection.execute(
                insert(keys).values(
                    id=made.id, name=made.name, hash=hash_of(self._state_secret, secret),
                    settings=_text(made),
                )
            )  # fmt: skip
        return made, secret

    def all(self) -> list[VirtualKey]:
        """By name, revoked ones too."""
        return sorted(self.by_hash().values(), key=lambda key: key.name)

    def by_hash(self) -> dict[str, VirtualKey]:
        """Every key under the hash of its secret."""
        with self._database.reading() as connection:
            rows = connection.execute(select(keys.c.hash, keys.c.settings)).all()
        return {row.hash: _key(row.settings) for row in rows}

    def named(self, name: str) -> VirtualKey:
        """By its name or its id. Raises `ConfigError`."""
        with self._database.reading() as connection:
            found = _named(connection, name)
        return _there(found, name)

    def change(self, name: str, change: Callable[[VirtualKey], VirtualKey]) -> VirtualKey:
        """Name, id and secret stay. Gateways take it over within a second or so. Raises
        `ConfigError` where there is no such key."""
        with self._database.writing() as connection:
            was = _there(_named(connection, name), name)
            changed = msgspec.structs.replace(change(was), id=was.id, name=was.name)
            connection.execute(
                update(keys).where(keys.c.id == was.id).values(settings=_text(changed))
            )
        return changed


def _named(connection: Connection, name: str) -> VirtualKey | None:
    found = connection.execute(
        select(keys.c.settings).where((keys.c.name == name) | (keys.c.id == name))
    ).scalar()
    return None if found is None else _key(found)


def _key(text: str) -> VirtualKey:
    try:
        return _settings.decode(text)
    except msgspec.MsgspecError as error:
        raise BookError(f"the book holds a key that this release cannot read: {error}") from error


def _there(found: VirtualKey | None, name: str) -> VirtualKey:
    if found is None:
        raise ConfigError(f"there is no key {name!r}; `reflexarc keys list` names those there are")
    return found


def _text(key: VirtualKey) -> str:
    return msgspec.json.encode(key).decode()
