"""Conversations that are pruned as they go on: the cuts made in each are made again in every later
request, so that its prompt begins the same. A bounded memory; what it forgot is decided again from
the history itself."""

from collections import OrderedDict
from collections.abc import Callable

import msgspec
import xxhash

from reflexarc.context.horizon import Horizon
from reflexarc.context.pruning import Chooser, Rules, Terms, Walk, worthwhile
from reflexarc.context.pruning_items import can_prune, read_item
from reflexarc.context.pruning_text import Cut, Removed, rewritten
from reflexarc.wire.growing import Grown

MAX_SESSIONS = 4_096
MAX_ITEMS = 200_000
"""Items of all sessions together; a few hundred bytes each."""
ENDED_AFTER_S = 3 * 3600.0
"""A conversation that nothing was heard of for so long is taken to be over."""


class Pruned(msgspec.Struct, frozen=True):
    """The body to send. `cuts` in all; `removed`: what went, by its ids; `new`: how many cuts this
    request is the first without. `saved_tokens` of the prompt as it came, estimated."""

    body: bytes
    cuts: tuple[Cut, ...] = ()
    removed: tuple[Removed, ...] = ()
    new: int = 0
    saved_tokens: int = 0


class _Held(msgspec.Struct):
    walk: Walk
    chain: bytes
    seen_s: float


class Pruner:
    """`on_ended` hears how many turns a conversation had that nothing was heard of for
    `ENDED_AFTER_S`; `on_gap` how long after one request the next one came. One thread at a time."""

    def __init__(
        self,
        rules: Rules,
        horizon: Horizon,
        choosing: Callable[[Terms, Rules], Chooser] = worthwhile,
        *,
        on_ended: Callable[[int], None] | None = None,
        on_gap: Callable[[float], None] | None = None,
        max_sessions: int = MAX_SESSIONS,
        max_items: int = MAX_ITEMS,
    ) -> None:
        self._rules = rules
        self._horizon = horizon
        self._on_ended = on_ended
        self._on_gap = on_gap
        self._choosing = choosing
        self._max = (max_sessions, max_items)
        self._held: OrderedDict[bytes, _Held] = OrderedDict()
        self._items = 0

    def prune(
        self,
        tenant: bytes,
        session: str,
        dialect: str,
        grown: Grown,
        terms: Terms,
        ttl_s: float,
        now_s: float,
    ) -> Pruned:
        """`ttl_s`: how long a cache holds what nobody asks for; `now_s` on a clock that does not go
        back. The body as it came where nothing goes. Raises `MalformedError` for items that are no
        JSON."""
        if not can_prune(dialect) or not grown.listed or not len(grown):
            return Pruned(grown.body)
        key = _key(tenant, session, dialect, grown.chain[0])
        held = self._held.pop(key, None)
        if held is not None:
            self._items -= len(held.walk)
        cold = False
        if held is None or not _goes_on(held, grown):
            held = _Held(
                Walk(self._rules, self._horizon, self._choosing(terms, self._rules)), b"", 0
            )
        else:
            gap_s = now_s - held.seen_s
            cold = gap_s > ttl_s
            if self._on_gap is not None and len(grown) > len(held.walk):
                self._on_gap(gap_s)
        walk = held.walk
        before = len(walk.cuts)
        walk.add([read_item(dialect, grown.item(at)) for at in range(len(walk), len(grown))])
        walk.decide(cold=cold)
        self._keep(key, _Held(walk, grown.chain[-1], now_s))
        self.end(now_s)
        return _pruned(dialect, grown, walk, before)

    def new_items(self, tenant: bytes, session: str, dialect: str, grown: Grown) -> int:
        """Items of a request that it would have to go through."""
        if not grown.listed or not len(grown):
            return 0
        held = self._held.get(_key(tenant, session, dialect, grown.chain[0]))
        known = len(held.walk) if held is not None and _goes_on(held, grown) else 0
        return len(grown) - known

    def end(self, now_s: float) -> None:
        """Forgets conversations that are taken to be over."""
        while self._held:
            key, held = next(iter(self._held.items()))
            if now_s - held.seen_s <= ENDED_AFTER_S:
                return
            self._drop(key)
            if self._on_ended is not None:
                self._on_ended(held.walk.turns)

    def __len__(self) -> int:
        """Conversations it remembers."""
        return len(self._held)

    @property
    def held_items(self) -> int:
        return self._items

    def _keep(self, key: bytes, held: _Held) -> None:
        self._held[key] = held
        self._items += len(held.walk)
        max_sessions, max_items = self._max
        while len(self._held) > max_sessions or (self._items > max_items and len(self._held) > 1):
            self._drop(next(iter(self._held)))

    def _drop(self, key: bytes) -> None:
        self._items -= len(self._held.pop(key).walk)


def _pruned(dialect: str, grown: Grown, walk: Walk, before: int) -> Pruned:
    if not walk.cuts:
        return Pruned(grown.body)
    by_item: dict[int, list[Cut]] = {}
    for (at, _), cut in walk.cuts.items():
        by_item.setdefault(at, []).append(cut)
    parts: list[bytes] = []
    removed: list[Removed] = []
    end = 0
    for at in sorted(by_item):
        item, gone = rewritten(dialect, grown.item(at), by_item[at])
        parts += [grown.body[end : grown.begins[at]], item]
        removed += gone
        end = grown.ends[at]
    parts.append(grown.body[end:])
    cuts = tuple(walk.cuts.values())
    return Pruned(
        b"".join(parts), cuts, tuple(removed), len(cuts) - before, walk.saved_tokens
    )  # fmt: skip


def _goes_on(held: _Held, grown: Grown) -> bool:
    """Whether the items it knows are the first of these."""
    known = len(held.walk)
    return known <= len(grown) and grown.chain[known - 1] == held.chain


def _key(tenant: bytes, session: str, dialect: str, first: bytes) -> bytes:
    """The conversation's beginning too: under one name may go several agents."""
    hasher = xxhash.xxh3_128()
    for part in (tenant, session.encode("utf-8", "surrogatepass"), dialect.encode(), first):
        hasher.update(b"%d " % len(part))
        hasher.update(part)
    return hasher.digest()
