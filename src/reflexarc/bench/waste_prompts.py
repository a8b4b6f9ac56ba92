"""The prompts of a log's requests, brought together: what of each was sent before, from which
earlier one it goes on, and what caches of two times to live would have missed."""

from collections import defaultdict
from collections.abc import Callable, Sequence

import msgspec

from reflexarc.context.expiry import Missed, misses
from reflexarc.context.lineage import Followed, lineage
from reflexarc.context.prefixes import length_of
from reflexarc.context.redundancy import CHARS_PER_TOKEN
from reflexarc.context.reuse import Reused, Sent, reuse
from reflexarc.context.settled import settled
from reflexarc.steps.prompt import Blocks, Prompt
from reflexarc.traces.requests import Figure, RecordedRequest, estimated

TTLS_S = (300.0, 3600.0)

OnDone = Callable[[float], None]


class Known(msgspec.Struct):
    """What is known of one request's prompt; all None where the log holds neither text nor blocks.
    `before` is the place, among all requests, of the one it goes on from."""

    sent: Sent | None = None
    reused: Reused | None = None
    followed: Followed | None = None
    before: int | None = None
    missed: Missed | None = None


class Texts(msgspec.Struct, frozen=True):
    """Of how many requests the prompt is in the log: as `text` (of those `whole`: nothing missing),
    or as `blocks`. `covers`: the share of the prompt tokens of the texts that are not whole which
    the log holds (estimated); None without any."""

    text: int
    whole: int
    blocks: int
    covers: float | None


def context_tokens(request: RecordedRequest) -> Figure:
    """How long its prompt is: as counted, else estimated from what the log holds of it."""
    counts = request.counts
    if counts.context.value is not None:
        return counts.context
    if counts.prompt.value is not None or request.prompt is None:
        return counts.prompt
    return estimated(_held_tokens(request.prompt))


def known(requests: Sequence[RecordedRequest], on_done: OnDone | None = None) -> list[Known]:
    """For each request, in their order."""
    found = [Known() for _ in requests]
    for places in _by_session(requests).values():
        prompts = settled([_prompt(requests[at]) for at in places])
        for at, prompt in zip(places, prompts, strict=True):
            request = requests[at]
            tokens = context_tokens(request).value or 0.0
            held = tokens if _is_whole(prompt) else min(tokens, _held_tokens(prompt))
            found[at].sent = Sent(
                thread=f"{request.session}\n{request.agent}",
                prompt=prompt,
                tokens=held,
                at_s=_at_s(request),
                hidden_tokens=tokens - held,
            )
    everything = [(at, one.sent) for at, one in enumerate(found) if one.sent is not None]
    shares = reuse(sent for _, sent in everything)
    for (at, _), reused in zip(everything, shares, strict=True):
        found[at].reused = reused
    if on_done is not None:
        on_done(0.5)
    done = 0
    for places in _by_session(requests).values():
        _follow(requests, places, found)
        done += len(places)
        if on_done is not None:
            on_done(0.5 + 0.5 * done / len(everything))
    return found


def held_tokens(request: RecordedRequest, one: Known) -> float:
    """What shares of its prompt are shares of: the part that the log holds."""
    return (context_tokens(request).value or 0.0) if one.sent is None else one.sent.tokens


def texts(requests: Sequence[RecordedRequest]) -> Texts:
    held = counted = 0.0
    kinds = {"text": 0, "whole": 0, "blocks": 0}
    for request in requests:
        prompt = request.prompt
        if isinstance(prompt, Blocks):
            kinds["blocks"] += 1
        elif prompt is not None:
            kinds["text"] += 1
            kinds["whole"] += prompt.complete
            tokens = context_tokens(request)
            if not prompt.complete and tokens.kind in ("measured", "derived") and tokens.value:
                held += min(_held_tokens(prompt), tokens.value)
                counted += tokens.value
    return Texts(**kinds, covers=round(held / counted, 4) if counted else None)


def _follow(requests: Sequence[RecordedRequest], places: list[int], found: list[Known]) -> None:
    listed = [sent for at in places if (sent := found[at].sent) is not None]
    chains = lineage(listed, [bool(requests[at].starts) for at in places])
    for at, followed in zip(places, chains, strict=True):
        found[at].followed = followed
        if followed.before is not None:
            found[at].before = places[followed.before]
    timed = [at for at, sent in zip(places, listed, strict=True) if sent.at_s is not None]
    for at, missed in zip(timed, misses(listed, TTLS_S), strict=True):
        found[at].missed = missed


def _by_session(requests: Sequence[RecordedRequest]) -> dict[str, list[int]]:
    found: defaultdict[str, list[int]] = defaultdict(list)
    for at, request in enumerate(requests):
        if request.prompt is not None:
            found[request.session].append(at)
    return found


def _prompt(request: RecordedRequest) -> Prompt | Blocks:
    assert request.prompt is not None
    return request.prompt


def _is_whole(prompt: Prompt | Blocks) -> bool:
    return isinstance(prompt, Blocks) or prompt.complete


def _held_tokens(prompt: Prompt | Blocks) -> float:
    length = length_of(prompt)
    return float(length) if isinstance(prompt, Blocks) else length / CHARS_PER_TOKEN


def _at_s(request: RecordedRequest) -> float | None:
    began = request.began_s.value
    return began if began is not None else request.ended_s.value
