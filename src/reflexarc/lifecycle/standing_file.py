"""The file in the state directory that says what every reflex may do, and copies of their versions.

Every gateway of the directory watches `standing.json`. One that cannot be read stands for "nothing
may act": whoever repairs or removes it, and promotes again, takes that back. The last three
versions of each artifact are kept beside it: a rollback needs nothing but this directory.
"""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import msgspec

from reflexarc.lifecycle.standing import ReflexState, Version
from reflexarc.steps.errors import ArtifactError, ConfigError
from reflexarc.store.place import locked, make_private, write_private

FILE = "standing.json"
VERSIONS = "versions"
MAX_REFLEXES = 200
MAX_BYTES = 32 * 1024 * 1024


class Standings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All reflexes of a state directory; `fault` says why the file cannot be read, and never
    stands in it."""

    reflexes: Annotated[tuple[ReflexState, ...], msgspec.Meta(max_length=MAX_REFLEXES)] = ()
    fault: str = ""

    def of(self, artifact: str) -> ReflexState | None:
        """By the path `name_of` gives."""
        return next((one for one in self.reflexes if one.artifact == artifact), None)

    def with_state(self, state: ReflexState) -> "Standings":
        """With one reflex set. Raises `ConfigError` where there are too many."""
        kept = [one for one in self.reflexes if one.artifact != state.artifact]
        if len(kept) >= MAX_REFLEXES:
            raise ConfigError(
                f"{FILE} names {MAX_REFLEXES} reflexes already: take those out that are gone"
            )
        return Standings((*kept, state))


def name_of(artifact: str | Path) -> str:
    """What a reflex is called in the file: its path, absolute and without links."""
    return str(Path(artifact).expanduser().resolve())


def digest_of(content: bytes) -> str:
    """What a version is called: 32 hexadecimal digits of BLAKE2b, as the trail names artifacts."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def read_standings(directory: Path) -> Standings:
    """What the file says. Never raises: see `Standings.fault`."""
    path = directory / FILE
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            return Standings(fault=f"{path} is over {MAX_BYTES} bytes")
        found = msgspec.json.decode(content, type=Standings)
    except FileNotFoundError:
        return Standings()
    except (OSError, msgspec.DecodeError) as error:
        return Standings(fault=f"{path} cannot be read: {error}")
    fault = _fault(found)
    return Standings(fault=f"{path}: {fault}") if fault else found


def change(
    directory: Path, artifact: str, changed: Callable[[ReflexState | None], ReflexState]
) -> ReflexState:
    """Changes one reflex under the file's lock. `changed` may raise, then nothing is written.
    Raises `OSError` where it cannot be written, `ConfigError` where it cannot be read, or could not
    be read again: what is written never stops everything."""
    with locked(directory, FILE):
        standings = read_standings(directory)
        if standings.fault:
            raise ConfigError(
                f"{standings.fault}; nothing acts until it is repaired, or removed and promoted"
            )
        before = standings.of(artifact)
        state = changed(before)
        if state != before:
            write_private(directory / FILE, _encoded(standings.with_state(state)))
    return state


def _encoded(standings: Standings) -> bytes:
    content = msgspec.json.encode(standings)
    fault = f"over {MAX_BYTES} bytes" if len(content) > MAX_BYTES else _fault(standings)
    try:
        msgspec.json.decode(content, type=Standings)
    except msgspec.DecodeError as error:
        fault = str(error)
    if fault:
        raise ConfigError(f"{FILE} would not be readable any more ({fault}): nothing was changed")
    return content


def keep(directory: Path, artifact: str, content: bytes) -> str:
    """Keeps a copy of a version; gives its digest. Raises `OSError`."""
    digest = digest_of(content)
    path = kept_path(directory, artifact, digest)
    if not path.exists():
        make_private(path.parent)
        write_private(path, content)
    return digest


def kept_path(directory: Path, artifact: str, digest: str) -> Path:
    """Where the copy of a version is kept."""
    name = hashlib.blake2b(artifact.encode("utf-8", "surrogateescape"), digest_size=8).hexdigest()
    return directory / VERSIONS / name / f"{digest}.reflex"


def kept_versions(directory: Path) -> list[Path]:
    """The copies of all versions of all reflexes."""
    return sorted((directory / VERSIONS).glob("*/*.reflex"))


def kept(directory: Path, artifact: str, digest: str) -> bytes:
    """The copy of a version. Raises `ArtifactError` where it is gone or damaged."""
    path = kept_path(directory, artifact, digest)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ArtifactError(f"{path}: the kept version cannot be read ({error})") from error
    if digest_of(content) != digest:
        raise ArtifactError(f"{path}: the kept version was changed since it was kept")
    return content


def forget_versions(directory: Path, state: ReflexState) -> None:
    """Removes copies of versions that the state no longer names. Raises `OSError`."""
    named = {version.digest for version in state.versions}
    for path in kept_path(directory, state.artifact, state.in_use).parent.glob("*.reflex"):
        if path.stem not in named:
            path.unlink(missing_ok=True)


def adopted(
    state: ReflexState | None, artifact: str, digest: str, now_unix_s: float
) -> ReflexState:
    """With the version that the artifact's file holds in use; in shadow where it is new."""
    version = Version(digest, "file", now_unix_s)
    if state is None:
        return ReflexState(artifact, digest, (version,))
    return state.using(digest) if state.version(digest) else state.replaced_by(version)


def _fault(standings: Standings) -> str:
    for state in standings.reflexes:
        digests = [version.digest for version in state.versions]
        if state.in_use not in digests or len(set(digests)) < len(digests):
            return f"the versions of {state.artifact} do not fit together"
    names = [state.artifact for state in standings.reflexes]
    return "a reflex is named twice" if len(set(names)) < len(names) else ""
