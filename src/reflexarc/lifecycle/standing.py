"""What each version of a reflex may do, per scope, who said so, and what its audits said since.

A scope is `reads` (all tools that read), `reads:TOOL`, or `writes:TOOL`. Its standing is `shadow`
(it is compared, never acts), `live`, or `demoted`. A tool that reads has its own standing where it
was named, else that of all reads; a write has its own or none. Everything here is a pure function
of what was there: `standing_file.py` keeps it.
"""

from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec

from reflexarc.lifecycle.watched import SCOPE_ALPHA, Watched, tool_alpha
from reflexarc.steps.errors import ConfigError

KEPT_VERSIONS = 3
MAX_TOOLS = 500
MAX_TEXT = 500
CONFIGURATION = "configuration"
"""Who promoted a reflex whose route says `mode = "live"`."""

Word = Literal["shadow", "live", "demoted"]
Kind = Literal["reads", "writes"]
_Text = Annotated[str, msgspec.Meta(max_length=MAX_TEXT)]
_Digest = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{32}$")]


class Standing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Of one scope, since when, by whom and why. `by` is a person, `configuration`, or the rule
    that did it (`audits`, `identity`, `relearning`)."""

    scope: _Text
    word: Word
    by: _Text
    at_unix_s: float
    why: _Text = ""


class Version(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One artifact by the digest of its bytes (BLAKE2b, 16 bytes). `watched`: evidence by stream,
    which is a scope, or `writes`."""

    digest: _Digest
    origin: Literal["file", "relearned"]
    since_unix_s: float
    scopes: Annotated[tuple[Standing, ...], msgspec.Meta(max_length=MAX_TOOLS)] = ()
    watched: Annotated[dict[str, Watched], msgspec.Meta(max_length=MAX_TOOLS)] = {}

    def standing(self, kind: Kind, tool: str) -> Standing | None:
        """What a call of this tool stands under; None where nobody ever said anything."""
        own = self._of(f"{kind}:{tool}")
        return own or (self._of("reads") if kind == "reads" else None)

    def with_standing(self, standing: Standing) -> "Version":
        """With one scope set. All reads take their tools with them; what becomes live is watched
        as if it were new."""
        kept = [one for one in self.scopes if not _covers(standing.scope, one.scope)]
        watched = self.watched
        if standing.word == "live":
            kind = standing.scope.partition(":")[0]
            pool = None if self._acts(kind) else kind
            watched = {
                stream: one
                for stream, one in watched.items()
                if stream != pool and not _covers(standing.scope, stream)
            }
        return msgspec.structs.replace(self, scopes=(*kept, standing), watched=watched)

    def _acts(self, kind: str) -> bool:
        """Whether anything of a kind may act; reads of which nobody said anything may."""
        words = [one.word for one in self.scopes if one.scope.partition(":")[0] == kind]
        return "live" in words or (kind == "reads" and self._of("reads") is None)

    def _of(self, scope: str) -> Standing | None:
        return next((one for one in self.scopes if one.scope == scope), None)


class Event(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What one act, the audit of one, or a change of what was learned adds. `nulls`: how probable
    an error the claim allows, for the tool's stream and for its scope's; `share`: the probability
    of the audit, `stake` what it counts among all of its scope; `count` acts at once; `why`: what
    changed, or why a process demoted the scope (no tool: all of the kind): what others add to the
    evidence meanwhile does not take that back."""

    digest: str
    kind: Kind
    tool: str
    what: Literal["acted", "agree", "disagree", "unanswered", "changed", "demoted"]
    at_unix_s: float
    nulls: tuple[float, float] = (0.5, 0.5)
    share: float = 1.0
    stake: float = 1.0
    count: int = 1
    why: str = ""


class ReflexState(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Of the artifact at one path: its versions, newest first, the one in use; how often relearning
    was tried, which spends the error budget of its certificates, and when last."""

    artifact: str
    in_use: _Digest
    versions: Annotated[tuple[Version, ...], msgspec.Meta(min_length=1, max_length=KEPT_VERSIONS)]
    attempts: Annotated[int, msgspec.Meta(ge=0)] = 0
    tried_unix_s: float = 0.0

    @property
    def current(self) -> Version:
        """The version in use."""
        return self.version(self.in_use) or self.versions[0]

    @property
    def previous(self) -> Version | None:
        """What a rollback goes back to: the one before that in use."""
        digests = [one.digest for one in self.versions]
        at = digests.index(self.in_use) + 1 if self.in_use in digests else len(digests)
        return self.versions[at] if at < len(digests) else None

    def version(self, digest: str) -> Version | None:
        return next((one for one in self.versions if one.digest == digest), None)

    def with_version(self, version: Version) -> "ReflexState":
        """A known one in its place; a new one first. Beyond three one is forgotten: of those that
        only waited the oldest, else the oldest of all, but never the one in use."""
        if self.version(version.digest) is not None:
            kept = [version if one.digest == version.digest else one for one in self.versions]
            return msgspec.structs.replace(self, versions=tuple(kept))
        kept = [version, *self.versions]
        if len(kept) > KEPT_VERSIONS:
            place = [one.digest for one in kept].index(self.in_use)
            kept.remove((kept[1:place] or kept[place + 1 :])[-1])
        return msgspec.structs.replace(self, versions=tuple(kept))

    def replaced_by(self, version: Version) -> "ReflexState":
        """With another version in use, new or known; a rollback goes back to what it replaced."""
        if version.digest == self.in_use:
            return self.with_version(version)
        rest = [one for one in self.versions if one.digest not in (version.digest, self.in_use)]
        kept = (version, self.current, *rest)[:KEPT_VERSIONS]
        return msgspec.structs.replace(self, in_use=version.digest, versions=kept)

    def using(self, digest: str) -> "ReflexState":
        """With another version in use. Raises `ConfigError` for one that is not kept."""
        if self.version(digest) is None:
            raise ConfigError(f"version {digest[:12]} of {self.artifact} is not kept")
        return msgspec.structs.replace(self, in_use=digest)

    def after(self, events: Sequence[Event]) -> "ReflexState":
        """With what acts and audits said; versions that are gone are passed over. A stream whose
        audits refute its claim is demoted."""
        state = self
        for event in events:
            version = state.version(event.digest)
            if version is not None:
                state = state.with_version(_after(version, event))
        return state


class Demotion(msgspec.Struct, frozen=True):
    """A scope of an artifact that no longer acts."""

    artifact: str
    digest: str
    standing: Standing


def is_of_writes(scope: str) -> bool:
    """Whether a certificate of this scope ("writes:pay", "recalled writes") is about writes."""
    return scope.partition(":")[0].removeprefix("recalled ") == "writes"


def checked_scope(scope: str) -> tuple[Kind, str]:
    """Kind and tool, the tool empty for all reads. Raises `ConfigError`."""
    kind, _, tool = scope.partition(":")
    if kind == "reads" and (tool or scope == "reads"):
        return "reads", tool
    if kind == "writes" and tool:
        return "writes", tool
    raise ConfigError(
        f"{scope!r} is no scope: reads, reads:TOOL or writes:TOOL are; every write is promoted by "
        "its name"
    )


def promoted(version: Version, scope: str, by: str, now_unix_s: float, why: str = "") -> Version:
    """A scope made live. Raises `ConfigError` for a scope that is none, for one that nobody answers
    for, and for a text that is too long."""
    kind, _ = checked_scope(scope)
    _check_length(scope, by, why)
    if not by.strip():
        raise ConfigError(f"{scope} is promoted by somebody: name who with --by")
    if kind == "writes" and by == CONFIGURATION:
        raise ConfigError(f"{scope} is promoted by a person, never by configuration")
    return version.with_standing(Standing(scope, "live", by, now_unix_s, why))


def demoted(version: Version, scope: str, by: str, now_unix_s: float, why: str) -> Version:
    """A scope that acts no longer until it is promoted again; `all` is every scope there is. Raises
    `ConfigError` for a scope that is none and for a text that is too long."""
    _check_length(scope, by, why)
    if scope != "all":
        checked_scope(scope)
        return version.with_standing(Standing(scope, "demoted", by, now_unix_s, why))
    writes = [one.scope for one in version.scopes if one.scope.startswith("writes:")]
    for one in ("reads", *writes):
        version = version.with_standing(Standing(one, "demoted", by, now_unix_s, why))
    return version


def without_promotions(state: ReflexState) -> ReflexState:
    """What is left of it where nobody answers for a promotion any more: what was demoted, and what
    audits said."""
    versions = tuple(
        msgspec.structs.replace(
            version, scopes=tuple(one for one in version.scopes if one.word != "live")
        )
        for version in state.versions
    )
    return msgspec.structs.replace(state, versions=versions)


def _check_length(*texts: str) -> None:
    for text in texts:
        if len(text) > MAX_TEXT:
            raise ConfigError(f"at most {MAX_TEXT} characters, not {len(text)}: {text[:40]}...")


def demotions(before: ReflexState, after: ReflexState) -> tuple[Demotion, ...]:
    """What became demoted between the two."""
    found: list[Demotion] = []
    for version in after.versions:
        known = before.version(version.digest)
        had = {one.scope for one in known.scopes if one.word == "demoted"} if known else set[str]()
        found += [
            Demotion(after.artifact, version.digest, one)
            for one in version.scopes
            if one.word == "demoted" and one.scope not in had
        ]
    return tuple(found)


def _covers(scope: str, other: str) -> bool:
    return other == scope or (scope == "reads" and other.startswith("reads:"))


def _after(version: Version, event: Event) -> Version:
    if event.what == "changed":
        return demoted(version, "all", "identity", event.at_unix_s, event.why)
    if event.what == "demoted":
        scope = f"{event.kind}:{event.tool}" if event.tool else event.kind
        return _stopped(version, [scope], event.at_unix_s, event.why)
    own = f"{event.kind}:{event.tool}"
    streams = ((own, event.nulls[0], 1.0), (event.kind, event.nulls[1], event.stake))
    watched = dict(version.watched)
    for stream, null, stake in streams:
        if stream not in watched and len(watched) >= MAX_TOOLS:
            continue
        watched[stream] = _watched(watched.get(stream, Watched()), event, null, stake)
    after = msgspec.structs.replace(version, watched=watched)
    if event.what != "disagree":
        return after
    return _judged(after, event, own)


def _watched(one: Watched, event: Event, null: float, stake: float) -> Watched:
    if event.what == "acted":
        return one.acted(event.count)
    if event.what == "unanswered":
        return one.not_answered()
    wrong = event.what == "disagree"
    return one.answered(wrong=wrong, null=null, share=event.share, stake=stake)


def _judged(version: Version, event: Event, own: str) -> Version:
    """Demotes what its audits refute: the scope with all its tools, else the tool."""
    pooled = version.watched.get(event.kind)
    if pooled is not None and pooled.failed(SCOPE_ALPHA):
        scopes = ["reads"] if event.kind == "reads" else _live_writes(version)
        return _stopped(version, scopes, event.at_unix_s, _why(pooled))
    tools = [stream for stream in version.watched if ":" in stream]
    one = version.watched.get(own)
    if one is None or not one.failed(tool_alpha(tools.index(own))):
        return version
    return _stopped(version, [own], event.at_unix_s, _why(one))


def _stopped(version: Version, scopes: Sequence[str], at_unix_s: float, why: str) -> Version:
    """Demoted by audits; what somebody had demoted before stays demoted by them."""
    for scope in scopes:
        kind, tool = checked_scope(scope)
        known = version.standing(kind, tool)
        apart = [one for one in version.scopes if _covers(scope, one.scope)]
        if known is None or known.word != "demoted" or any(one.word == "live" for one in apart):
            standing = Standing(scope, "demoted", "audits", at_unix_s, why)
            version = version.with_standing(standing)
    return version


def _live_writes(version: Version) -> list[str]:
    return [
        one.scope
        for one in version.scopes
        if one.scope.startswith("writes:") and one.word == "live"
    ]


def _why(watched: Watched) -> str:
    evidence = watched.evidence
    return (
        f"{evidence.wrong} of {evidence.answered} audits were wrong; were the certified error "
        f"kept, the odds against this would be {min(evidence.against, 1e12):.3g} to 1"
    )
