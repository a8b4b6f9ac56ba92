"""Where a prompt's beginning is held: what each deployment read before, as measured. Pure.

A prompt is a chain of digests, one after each of its pieces (tools, system prompt, messages). What
a deployment answered is remembered by the chain's end and by its opening, so that the next turn of
a session, and a new session that begins alike, are known there. What was found cached corrects what
is expected. Where nothing is held yet, the opening itself draws a deployment, by rendezvous hashing
(Thaler and Ravishankar, 1998): gateways that know nothing of each other draw the same one.
"""

import math
from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator, Sequence

import msgspec
import xxhash

MAX_HELD = 100_000
"""Ends and openings that are remembered, of all tenants; the least recently used go first."""
MAX_TRUSTED = 10_000
"""Pairs of a tenant and a deployment of which it is known how often what was held was found."""
AGES_S = (60.0, 300.0, 3_600.0)
"""What is held is found or not by how long ago it was read: bounds of the classes of age."""
MAX_OPENING = 8
"""Pieces up to an opening that are remembered each: the last ones."""
_FURTHER = 32
_FADES = 0.9
_STEPS = 4


class Prefix(msgspec.Struct, frozen=True):
    """A prompt by its pieces: `digest(at)` stands for all up to piece `at`, `end(at)` is about how
    many bytes those are. `heads` are those of the pieces before the conversation; of the
    conversation itself there is a chain of digests, which ends at these places from `chain_at` on.
    `opening` is the place of the piece with which a session begins: its first message that is no
    instruction."""

    heads: tuple[bytes, ...] = ()
    head_ends: Sequence[int] = ()
    chain: Sequence[bytes] = ()
    chain_ends: Sequence[int] = ()
    chain_at: int = 0
    opening: int = 0

    @classmethod
    def of(cls, pieces: Iterable[bytes], opening: int) -> "Prefix":
        """Of pieces of which nothing is known yet."""
        chain: list[bytes] = []
        ends: list[int] = []
        head, size = b"", 0
        for piece in pieces:
            head = xxhash.xxh3_128_digest(head + piece)
            size += len(piece)
            chain.append(head)
            ends.append(size)
        return cls(chain=chain, chain_ends=ends, opening=opening)

    def __len__(self) -> int:
        return len(self.heads) + len(self.chain)

    def digest(self, at: int) -> bytes:
        """16 bytes; prompts that begin alike have those of what they share."""
        before = len(self.heads)
        if at < before:
            return self.heads[at]
        own = self.chain[at - before]
        return xxhash.xxh3_128_digest(self.heads[-1] + own) if before else own

    def end(self, at: int) -> int:
        before = len(self.heads)
        if at < before:
            return self.head_ends[at]
        return (self.head_ends[-1] if before else 0) + self.chain_ends[at - before] - self.chain_at

    @property
    def key(self) -> bytes:
        """What a session is placed by where nobody holds anything of it."""
        return self.digest(max(0, min(self.opening, len(self) - 1))) if len(self) else b""


class Held(msgspec.Struct, frozen=True):
    """The longest beginning of a prompt that a deployment read: `share` of the prompt's bytes, the
    `tokens` it was there, `age_s` ago; `whole` where that was a prompt, not just how one began."""

    share: float
    tokens: int
    age_s: float
    whole: bool = True


class _Read(msgspec.Struct):
    """Of one beginning at one deployment."""

    tokens: int
    at_s: float
    whole: bool


class _Trust:
    """How much of what one deployment should hold it was found to, as a faded mean: by age, of
    whole prompts and of beginnings apart. Until it told of any cached token nothing is expected
    there; `writes` where it tells what it stores, which is then all that it holds."""

    def __init__(self) -> None:
        self.proven = False
        self.writes = False
        self._found: dict[tuple[bool, int], tuple[float, float]] = {}

    def saw(self, held: Held, share: float) -> None:
        total, weight = self._found.get(_class_of(held), (self.of(held), 1.0))
        self._found[_class_of(held)] = total * _FADES + share, weight * _FADES + 1.0

    def of(self, held: Held) -> float:
        """The share to expect: of an age that nothing is known of, that of the nearest younger."""
        whole, oldest = _class_of(held)
        for age in range(oldest, -1, -1):
            if (whole, age) in self._found:
                total, weight = self._found[whole, age]
                return min(1.0, total / weight)
        return 1.0


_NOTHING: dict[str, _Read] = {}


class Affinity:
    """Nothing is shared between tenants. Deployments by name. `now_s` is a monotonic clock's."""

    def __init__(self, max_held: int = MAX_HELD) -> None:
        self._max_held = max_held
        self._held: OrderedDict[tuple[str, bytes], dict[str, _Read]] = OrderedDict()
        self._trust: OrderedDict[tuple[str, str], _Trust] = OrderedDict()
        self._emptied_s: dict[str, float] = {}

    def __len__(self) -> int:
        return len(self._held)

    def held(
        self, tenant: str, prefix: Prefix, names: Collection[str], now_s: float
    ) -> dict[str, Held]:
        """What each of these deployments holds of a prompt; left out is who holds nothing."""
        found: dict[str, Held] = {}
        whole = max(1, prefix.end(len(prefix) - 1)) if len(prefix) else 1
        for at in self._places(tenant, prefix):
            for name, read in self._held.get((tenant, prefix.digest(at)), _NOTHING).items():
                if name in found or name not in names:
                    continue
                if read.at_s < self._emptied_s.get(name, -math.inf):
                    continue
                age_s = max(0.0, now_s - read.at_s)
                found[name] = Held(prefix.end(at) / whole, read.tokens, age_s, read.whole)
            if len(found) == len(names):
                break
        return found

    def _places(self, tenant: str, prefix: Prefix) -> Iterator[int]:
        """From the end back to where anything is known, some further, and how it begins: what
        others read of a long session is near its end or at its beginning."""
        at = len(prefix) - 1
        while at >= 0 and (tenant, prefix.digest(at)) not in self._held:
            at -= 1
        near = max(-1, at - _FURTHER)
        yield from range(at, near, -1)
        yield from range(min(near, prefix.opening), -1, -1)

    def expected(self, tenant: str, name: str, held: Held | None) -> int:
        """Tokens to be found cached: of what is held as much as was found of the like before; none
        where this deployment never told of any."""
        trust = self._trust.get((tenant, name))
        if held is None or trust is None or not trust.proven:
            return 0
        return int(held.tokens * trust.of(held))

    def worth(self, tenant: str, name: str, held: Held | None) -> float:
        """How much of a prompt speaks for a deployment, in [0, 1]: the share held there times, in
        quarters, what was found of the like. One that tells of no cache is taken at its word."""
        if held is None:
            return 0.0
        trust = self._trust.get((tenant, name))
        if trust is None or not trust.proven:
            return held.share
        return held.share * round(trust.of(held) * _STEPS) / _STEPS

    def answered(
        self,
        tenant: str,
        prefix: Prefix,
        name: str,
        tokens: int,
        cached: int,
        written: int,
        now_s: float,
    ) -> None:
        """A deployment read the whole prompt, of so many tokens: so many were found cached, so
        many it says it stored."""
        if not len(prefix) or tokens <= 0:
            return
        trust = self._trusted(tenant, name)
        before = self.held(tenant, prefix, (name,), now_s).get(name)
        trust.proven = trust.proven or cached + written > 0
        trust.writes = trust.writes or written > 0
        if before is not None and before.tokens > 0:
            trust.saw(before, min(1.0, cached / before.tokens))
        holds = min(tokens, cached + written) if trust.writes else tokens
        last = len(prefix) - 1
        whole = max(1, prefix.end(last))
        opening = min(prefix.opening, last)
        for at in sorted({*range(max(0, opening + 1 - MAX_OPENING), opening + 1), last}):
            upto = round(tokens * prefix.end(at) / whole)
            read = _Read(min(holds, upto), now_s, at == last)
            self._hold((tenant, prefix.digest(at)), name, read)

    def emptied(self, name: str, now_s: float) -> None:
        """A deployment's cache was cleared or evicted, or it began anew: nothing is held there that
        was read before."""
        self._emptied_s[name] = max(now_s, self._emptied_s.get(name, -math.inf))

    def keep_only(self, names: Collection[str]) -> None:
        """These deployments are left; what others told of themselves is forgotten."""
        self._emptied_s = {k: v for k, v in self._emptied_s.items() if k in names}

    def _hold(self, key: tuple[str, bytes], name: str, read: _Read) -> None:
        if read.tokens <= 0:  # a prompt that was not to be stored says nothing of others
            return
        self._held.setdefault(key, {})[name] = read
        self._held.move_to_end(key)
        while len(self._held) > self._max_held:
            self._held.popitem(last=False)

    def _trusted(self, tenant: str, name: str) -> _Trust:
        trust = self._trust.setdefault((tenant, name), _Trust())
        self._trust.move_to_end((tenant, name))
        if len(self._trust) > MAX_TRUSTED:
            self._trust.popitem(last=False)
        return trust


def score(key: bytes, identity: bytes, weight: float = 1.0) -> float:
    """By which deployments compete for a key: the highest has it. Of several, each has a share of
    all keys in proportion to its weight, and one that goes takes none from the others.
    `identity`: what every gateway calls the deployment alike."""
    drawn = xxhash.xxh3_64_intdigest(len(identity).to_bytes(4, "big") + identity + key)
    return -max(weight, 1e-9) / math.log((drawn + 0.5) / 2**64)


def _class_of(held: Held) -> tuple[bool, int]:
    return held.whole, sum(held.age_s > bound for bound in AGES_S)
