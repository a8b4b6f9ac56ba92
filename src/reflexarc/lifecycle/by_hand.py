"""What a person does to a reflex: promote, demote, roll back. Files and state change together,
under one lock; each gives the state before and after."""

from collections.abc import Callable
from pathlib import Path

import msgspec

from reflexarc.lifecycle.standing import (
    ReflexState,
    Standing,
    Version,
    checked_scope,
    demoted,
    promoted,
)
from reflexarc.lifecycle.standing_file import (
    adopted,
    change,
    digest_of,
    forget_versions,
    keep,
    kept,
    name_of,
    read_standings,
)
from reflexarc.reflex import Reflex
from reflexarc.reflex.artifact import write_atomic
from reflexarc.steps.errors import ArtifactError, ConfigError


class Changed(msgspec.Struct, frozen=True):
    """`was` is None where the reflex was not known before."""

    was: ReflexState | None
    now: ReflexState


def certified_scopes(reflex: Reflex) -> frozenset[str]:
    """The scopes of a reflex that a certificate of the class that acts is about: `reads`, and
    `writes:TOOL` where it is about that tool alone."""
    found = {"reads"} if any(one.granted for one in reflex.card.reads) else set[str]()
    granted = (one.scope for one in reflex.card.acting if one.granted)
    found |= {scope.removeprefix("recalled ") for scope in granted if "writes:" in scope}
    return frozenset(found)


def promote(
    directory: Path,
    artifact: Path,
    scope: str,
    by: str,
    why: str,
    now_unix_s: float,
    version: str | None = None,
) -> Changed:
    """Makes a scope of the artifact at that path live. `version` begins the digest of one that is
    kept (a relearned one that waits): it takes the artifact's place. Raises `ArtifactError` for a
    file that is no artifact, `ConfigError` for a scope that nothing is certified for, `OSError`."""
    kind, tool = checked_scope(scope)
    content = _content(artifact)
    if version is not None:
        state = read_standings(directory).of(name_of(artifact))
        waiting = _target(state, artifact, version)
        if waiting is None:
            raise ConfigError(f"no version of {artifact} is kept")
        content = kept(directory, name_of(artifact), waiting.digest)
    reflex = Reflex.from_bytes(content)
    known = {row.name for row in reflex.card.tools if row.effect == kind[:-1]}
    if tool and tool not in known:
        raise ConfigError(
            f"{artifact} knows no tool {tool} that {kind}; it knows "
            f"{', '.join(sorted(known)) or 'none'}"
        )
    needed = scope if kind == "writes" else "reads"
    certified = certified_scopes(reflex)
    if needed not in certified:
        raise ConfigError(
            f"nothing of {artifact} is certified for {needed}, so nothing would act: "
            f"{', '.join(sorted(certified)) or 'no scope'} is certified"
        )

    def changed(state: ReflexState | None) -> ReflexState:
        now = adopted(state, name_of(artifact), digest, now_unix_s)
        return now.with_version(promoted(now.current, scope, by, now_unix_s, why))

    digest = keep(directory, name_of(artifact), content)
    if version is not None:
        standing = Standing(scope, "live", by, now_unix_s, why)
        if kind == "reads" and tool:
            raise ConfigError(f"another version is promoted for reads, or a write, not for {scope}")
        return take_over(directory, artifact, digest, (standing,))
    return _change(directory, artifact, changed)


def demote(
    directory: Path, artifact: Path, scope: str, by: str, why: str, now_unix_s: float
) -> Changed:
    """A scope, or `all`, acts no longer until it is promoted again. The file need not be readable
    as an artifact; where it is, a tool it does not know is refused, since that stops nothing.
    Raises `ConfigError`, `OSError`."""
    content = _content(artifact)
    tool = "" if scope == "all" else checked_scope(scope)[1]
    known = _known_tools(content) if tool else ()
    if known and tool not in known:
        raise ConfigError(f"{artifact} knows no tool {tool}; it knows {', '.join(sorted(known))}")

    def changed(state: ReflexState | None) -> ReflexState:
        now = adopted(state, name_of(artifact), digest_of(content), now_unix_s)
        return now.with_version(demoted(now.current, scope, by, now_unix_s, why))

    return _change(directory, artifact, changed)


def roll_back(
    directory: Path, artifact: Path, by: str, why: str, now_unix_s: float, to: str | None = None
) -> Changed:
    """Puts an earlier version back, with the standing it had; what was in use is demoted. `to`
    begins the digest of a kept version (None: the one before). Raises `ConfigError` where there
    is none, `ArtifactError` where its copy is gone, `OSError`."""
    name = name_of(artifact)

    def changed(state: ReflexState | None) -> ReflexState:
        target = _target(state, artifact, to)
        if state is None or target is None:
            raise ConfigError(f"no earlier version of {artifact} is kept: nothing to go back to")
        content = kept(directory, name, target.digest)
        Reflex.from_bytes(content)
        left = state.current
        if left.digest != target.digest:
            state = state.with_version(demoted(left, "all", by, now_unix_s, why or "rolled back"))
        write_atomic(artifact, content)
        return state.using(target.digest)

    return _change(directory, artifact, changed)


def take_over(
    directory: Path, artifact: Path, digest: str, scopes: tuple[Standing, ...]
) -> Changed:
    """Puts a kept version in the artifact's place, with these standings. Raises `ConfigError` for
    one that is not kept, `ArtifactError`, `OSError`."""
    name = name_of(artifact)

    def changed(state: ReflexState | None) -> ReflexState:
        version = state.version(digest) if state is not None else None
        if state is None or version is None:
            raise ConfigError(f"version {digest[:12]} of {artifact} is not kept")
        content = kept(directory, name, digest)
        Reflex.from_bytes(content)
        for scope in scopes:
            version = version.with_standing(scope)
        write_atomic(artifact, content)
        return state.replaced_by(version)

    return _change(directory, artifact, changed)


def _change(
    directory: Path, artifact: Path, changed: Callable[[ReflexState | None], ReflexState]
) -> Changed:
    before: list[ReflexState | None] = []

    def noted(state: ReflexState | None) -> ReflexState:
        before.append(state)
        return changed(state)

    now = change(directory, name_of(artifact), noted)
    forget_versions(directory, now)
    return Changed(before[0], now)


def _known_tools(content: bytes) -> tuple[str, ...]:
    try:
        return tuple(row.name for row in Reflex.from_bytes(content).card.tools)
    except ArtifactError:
        return ()


def _content(artifact: Path) -> bytes:
    try:
        return artifact.read_bytes()
    except OSError as error:
        raise ArtifactError(f"{artifact} cannot be read: {error.strerror or error}") from error


def _target(state: ReflexState | None, artifact: Path, to: str | None) -> Version | None:
    if state is None or to is None:
        return state.previous if state is not None else None
    fitting = [one for one in state.versions if one.digest.startswith(to.lower())]
    if len(fitting) != 1:
        known = ", ".join(one.digest[:12] for one in state.versions)
        raise ConfigError(f"{to!r} names no one version of {artifact}; kept are {known}")
    return fitting[0]
