"""Which earlier prompt of its session each prompt goes on from, and whether it does so whole.

Sessions interleave conversations without saying so: a title asked for in between, subagents, an
orchestrator. What goes on from any earlier prompt has lost nothing.
"""

from collections.abc import Sequence
from typing import Literal

import msgspec

from reflexarc.context.breaks import compare
from reflexarc.context.prefixes import Beginnings, Match, length_of, same_end, shared
from reflexarc.context.reuse import LITTLE, Sent, share_of
from reflexarc.steps.prompt import Blocks, Prompt

SHRUNK = 0.8
"""A prompt shorter than this share of the one before it was taken back or cut."""
_RESENT = 0.1
How = Literal["first", "kept", "returned", "new", "broken"]
"""`kept`: goes on from the previous prompt of its thread; `returned`: from an earlier one. `new`: a
conversation of its own begins. `broken`: goes on from another, but not from all of it."""


class Followed(msgspec.Struct, frozen=True):
    """`before` is the place in the session of the prompt gone on from, None for `first` and `new`.
    `shared_tokens` of it and of this one are the same; `lost_tokens` are what would have been the
    same, had the prompt only grown: never more than this prompt holds."""

    how: How
    before: int | None = None
    shared_tokens: float = 0.0
    lost_tokens: float = 0.0


def lineage(sent: Sequence[Sent], starts: Sequence[bool]) -> list[Followed]:
    """For each prompt of one session, in order. `starts`: whether a log says that with it a new
    chain of prompts begins (a compaction, a rewind)."""
    held = Beginnings()
    last: dict[str, int] = {}
    found: list[Followed] = []
    for number, one in enumerate(sent):
        keys = held.keys(one.prompt)
        previous = last.get(one.thread)
        if previous is not None and _goes_on(sent[previous].prompt, one.prompt):
            found.append(_followed("kept", sent, previous, one))
        else:
            match = held.match(one.prompt, keys)
            if match is not None and _returns(match, sent[match.number], one):
                found.append(_followed("returned", sent, match.number, one))
            elif starts[number]:
                found.append(Followed("new"))
            elif previous is None and (match is None or _is_little(one, match.length)):
                found.append(Followed("new" if number else "first"))
            else:
                best = previous
                if match is not None and (
                    previous is None or match.length > shared(sent[previous].prompt, one.prompt)
                ):
                    best = match.number
                assert best is not None
                found.append(_followed("broken", sent, best, one))
        held.add(one.prompt, keys)
        last[one.thread] = number
    return _without_others(sent, found)


def _without_others(sent: Sequence[Sent], found: list[Followed]) -> list[Followed]:
    """Prompts that share little with what came before are conversations of their own where that is
    gone on from later, and where they are much shorter and share nothing at all."""
    continued = {
        (one.before, at)
        for at, one in enumerate(found)
        if one.how in ("kept", "returned") and one.before is not None
    }
    latest = {before: 0 for before, _ in continued}
    for before, at in continued:
        assert before is not None
        latest[before] = max(latest.get(before, 0), at)
    cleaned: list[Followed] = []
    for at, one in enumerate(found):
        if one.how == "broken" and one.before is not None:
            before = sent[one.before].tokens
            whole = min(before, sent[at].tokens)
            is_little = one.shared_tokens < LITTLE * whole
            is_other = latest.get(one.before, 0) > at
            if (is_little and is_other) or (
                not one.shared_tokens and sent[at].tokens < LITTLE * before
            ):
                cleaned.append(Followed("new"))
                continue
        cleaned.append(one)
    return cleaned


def _goes_on(before: Prompt | Blocks, after: Prompt | Blocks) -> bool:
    """All of `before`, but for what may stand in a block that is not full."""
    spare = before.block_tokens if isinstance(before, Blocks) else 0
    return shared(before, after) >= length_of(before) - spare > 0


def _returns(match: Match, before: Sent, one: Sent) -> bool:
    """Whether it goes on from all of an earlier prompt. Where that one was gone on from already,
    this may be an edited history as well: then most of what came after it is sent once more."""
    if _goes_on(before.prompt, one.prompt):
        return True
    if not match.whole:
        return False
    if isinstance(before.prompt, Prompt) and isinstance(one.prompt, Prompt):
        named = compare(before.prompt, one.prompt)
        if named is None:
            return True
        again_bytes = max(named.again_bytes, same_end(before.prompt, one.prompt))
        return again_bytes < _RESENT * named.lost_bytes
    return one.tokens < SHRUNK * before.tokens


def _is_little(sent: Sent, length: int) -> bool:
    return share_of(sent, length) < LITTLE


def _followed(how: How, sent: Sequence[Sent], before: int, one: Sent) -> Followed:
    same = one.tokens * share_of(one, shared(sent[before].prompt, one.prompt))
    lost = 0.0
    if how == "broken":
        lost = max(0.0, min(sent[before].tokens, one.tokens) - same)
    return Followed(how, before, same, lost)
