"""Chooses the deployment to ask next: what a request would cost and find cached at each, placed."""

from collections import OrderedDict
from collections.abc import Callable, Collection

import msgspec

from reflexarc.gateway.planning import Plan
from reflexarc.upstream.deployments import Deployment
from reflexarc.upstream.fleet import Fleet, Watched
from reflexarc.upstream.placement import Candidate, Standing, Targets, placed
from reflexarc.upstream.ratios import Ratios
from reflexarc.wire.price import Price
from reflexarc.wire.usage import Usage

_MAX_SESSIONS = 20_000
_USUAL_OUTPUT_TOKENS = 256
"""What an answer is taken to be long where deployments are compared."""
_MOST_CHOICES = 1000


class _Last(msgspec.Struct):
    """What a session last sent to a deployment, in tokens, and the part found cached there."""

    prompt_tokens: int
    cached_tokens: int


class Chooser:
    """`price` knows what a deployment takes, in the service tier named where it has none of its
    own. Which deployment holds a session's prefix is
    remembered by tenant and session, for the last 20,000 of them."""

    def __init__(
        self, fleet: Fleet, price: Callable[[Deployment, str], Price | None], ratios: Ratios
    ) -> None:
        self.fleet = fleet
        self.ratios = ratios
        self.price = price
        self._sessions: OrderedDict[tuple[str, str], dict[str, _Last]] = OrderedDict()
        self._paused_until_s: OrderedDict[tuple[str, str], float] = OrderedDict()

    def next(
        self, plan: Plan, exclude: Collection[str], now_s: float, draw: float
    ) -> Watched | None:
        """The best of those not excluded; None where none may be asked now."""
        watched = {
            one.name: self.fleet.of(one.name)
            for one in plan.served
            if one.name not in exclude and not self._paused_s(plan, one.name, now_s)
        }
        targets = None
        if plan.tier != "batch":
            targets = Targets(plan.limits.first_token_ms, plan.limits.token_ms)
        found = placed(
            [self._candidate(plan, one) for one in watched.values()],
            {name: _standing(one, plan) for name, one in watched.items()},
            targets,
            now_s,
            draw,
        )
        return watched[found[0].candidate.name] if found else None

    def prompt(self, plan: Plan, watched: Watched) -> tuple[int, float]:
        """Tokens of the prompt there, and the share of them expected to be cached."""
        name = watched.deployment.name
        tokens = self.ratios.tokens(name, len(plan.body))
        last = self._sessions.get((plan.tenant, plan.session), {}).get(name)
        if last is None or not last.cached_tokens:
            return tokens, 0.0
        # What was sent there is what the next turn begins with.
        return tokens, min(0.95, last.prompt_tokens / max(tokens, 1))

    def expected(self, plan: Plan, deployment: Deployment, output_tokens: int) -> int | None:
        """The most it can cost there, in micro-dollars; None where the price is not known."""
        price = self.price(deployment, "")
        if price is None:
            return None
        tokens = self.ratios.tokens(deployment.name, len(plan.body))
        asked = self.price(deployment, plan.service_tier) or price
        return max(one.most_micro_usd(tokens, output_tokens) for one in (price, asked))

    def opens_in_s(self, plan: Plan, now_s: float) -> float:
        """When the first deployment of a plan can be asked again."""
        waits = (
            max(
                self.fleet.of(one.name).circuit.opens_in_s(now_s),
                self._paused_s(plan, one.name, now_s),
            )
            for one in plan.served
        )
        return max(1.0, min(waits, default=1.0))

    def allows(self, plan: Plan, watched: Watched, now_s: float) -> bool:
        """Whether a deployment may be asked now, its slots apart."""
        paused_s = self._paused_s(plan, watched.deployment.name, now_s)
        return not paused_s and watched.circuit.allows(now_s)

    def pause(self, plan: Plan, watched: Watched, now_s: float, for_s: float) -> None:
        """This client's key is not sent there for so long; remembered for the last 20,000."""
        key = plan.tenant, watched.deployment.name
        until_s = max(self._paused_until_s.get(key, 0.0), now_s + for_s)
        self._paused_until_s[key] = until_s
        self._paused_until_s.move_to_end(key)
        if len(self._paused_until_s) > _MAX_SESSIONS:
            self._paused_until_s.popitem(last=False)

    def _paused_s(self, plan: Plan, name: str, now_s: float) -> float:
        return max(0.0, self._paused_until_s.get((plan.tenant, name), 0.0) - now_s)

    def used(self, plan: Plan, deployment: Deployment, usage: Usage) -> None:
        """What an answer told of its prompt."""
        key = plan.tenant, plan.session
        known = self._sessions.setdefault(key, {})
        known[deployment.name] = _Last(usage.input, usage.cache_read + usage.cache_write)
        self._sessions.move_to_end(key)
        if len(self._sessions) > _MAX_SESSIONS:
            self._sessions.popitem(last=False)

    def _candidate(self, plan: Plan, watched: Watched) -> Candidate:
        tokens, share = self.prompt(plan, watched)
        price = self.price(watched.deployment, plan.service_tier)
        cost = None
        if price is not None:
            output = min(plan.max_output or _USUAL_OUTPUT_TOKENS, _USUAL_OUTPUT_TOKENS)
            output *= min(plan.choices, _MOST_CHOICES)
            cost = price.micro_usd(Usage(tokens, output, int(tokens * share)))
        return Candidate(watched.deployment.name, cost, tokens, share)


def _standing(watched: Watched, plan: Plan) -> Standing:
    room = watched.slots.room
    if room == float("inf"):
        room = 1.0
    return Standing(watched.circuit, watched.measures, watched.slots.free(plan.tier), room)
