"""Chooses the deployment to ask next: what a request would cost and find cached at each, placed."""

from collections import OrderedDict
from collections.abc import Callable, Collection

from reflexarc.gateway.planning import Plan
from reflexarc.upstream.affinity import Affinity, Held, score
from reflexarc.upstream.deployments import Deployment
from reflexarc.upstream.fleet import Fleet, Watched
from reflexarc.upstream.placement import Candidate, Standing, Targets, placed
from reflexarc.upstream.ratios import Ratios
from reflexarc.wire.price import Price
from reflexarc.wire.usage import Usage

_MAX_PAUSED = 20_000
_MOST_CACHED = 0.95
"""Of a prompt: each turn brings something new, and its answer is not read yet."""
_USUAL_OUTPUT_TOKENS = 256
"""What an answer is taken to be long where deployments are compared."""
_MOST_CHOICES = 1000


class Chooser:
    """`price` knows what a deployment takes, in the service tier named where it has none of its
    own; `affinity` which of them holds a prompt's beginning."""

    def __init__(
        self,
        fleet: Fleet,
        price: Callable[[Deployment, str], Price | None],
        ratios: Ratios,
        affinity: Affinity | None = None,
    ) -> None:
        self.fleet = fleet
        self.ratios = ratios
        self.price = price
        self.affinity = affinity or Affinity()
        self._paused_until_s: OrderedDict[tuple[str, str], float] = OrderedDict()

    def next(self, plan: Plan, exclude: Collection[str], now_s: float) -> Watched | None:
        """The best of those not excluded; None where none may be asked now."""
        watched = {
            one.name: self.fleet.of(one.name)
            for one in plan.served
            if one.name not in exclude and not self._paused_s(plan, one.name, now_s)
        }
        targets = None
        if plan.tier != "batch":
            targets = Targets(plan.limits.first_token_ms, plan.limits.token_ms)
        held = self.affinity.held(plan.tenant, plan.prefix, watched, now_s)
        found = placed(
            [self._candidate(plan, one, held.get(name)) for name, one in watched.items()],
            {name: _standing(one, plan, now_s) for name, one in watched.items()},
            targets,
            now_s,
        )
        return watched[found[0].candidate.name] if found else None

    def prompt(self, plan: Plan, watched: Watched, now_s: float) -> tuple[int, float]:
        """Tokens of the prompt there, and the share of them expected to be cached."""
        name = watched.deployment.name
        held = self.affinity.held(plan.tenant, plan.prefix, (name,), now_s)
        return self._prompt(plan, watched.deployment, held.get(name))

    def expected(self, plan: Plan, deployment: Deployment, output_tokens: int) -> int | None:
        """The most it can cost there, in micro-dollars; None where the price is not known."""
        price = self.price(deployment, "")
        if price is None:
            return None
        tokens = self._tokens(plan, deployment)
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
        if len(self._paused_until_s) > _MAX_PAUSED:
            self._paused_until_s.popitem(last=False)

    def _paused_s(self, plan: Plan, name: str, now_s: float) -> float:
        return max(0.0, self._paused_until_s.get((plan.tenant, name), 0.0) - now_s)

    def used(self, plan: Plan, deployment: Deployment, usage: Usage, now_s: float) -> None:
        """What an answer told of its prompt."""
        self.affinity.answered(
            plan.tenant, plan.prefix, deployment.name, usage.input, usage.cache_read,
            usage.cache_write, now_s,
        )  # fmt: skip

    def _candidate(self, plan: Plan, watched: Watched, held: Held | None) -> Candidate:
        deployment = watched.deployment
        tokens, share = self._prompt(plan, deployment, held)
        price = self.price(deployment, plan.service_tier)
        cost = whole = None
        if price is not None:
            output = min(plan.max_output or _USUAL_OUTPUT_TOKENS, _USUAL_OUTPUT_TOKENS)
            output *= min(plan.choices, _MOST_CHOICES)
            whole = price.micro_usd(Usage(tokens, output))
            cost = price.micro_usd(Usage(tokens, output, int(tokens * share)))
        return Candidate(
            deployment.name,
            cost,
            tokens,
            share,
            whole,
            deployment.kin,
            self.affinity.worth(plan.tenant, deployment.name, held),
            score(plan.prefix.key, deployment.identity, deployment.max_parallel or 1.0),
        )

    def _prompt(self, plan: Plan, deployment: Deployment, held: Held | None) -> tuple[int, float]:
        tokens = self._tokens(plan, deployment)
        cached = self.affinity.expected(plan.tenant, deployment.name, held)
        return tokens, min(_MOST_CACHED, cached / max(tokens, 1))

    def _tokens(self, plan: Plan, deployment: Deployment) -> int:
        """Of one model's deployments what the first learned holds for all: what they are compared
        by must not differ by what each happened to be asked."""
        like = next(
            (
                one.kin
                for one in plan.served
                if one.model == deployment.model and self.ratios.knows(one.kin)
            ),
            deployment.kin,
        )
        return self.ratios.tokens(like, len(plan.body))


def _standing(watched: Watched, plan: Plan, now_s: float) -> Standing:
    free = watched.slots.free(plan.tier) and not watched.full(now_s)
    return Standing(
        watched.circuit, watched.measures, free, watched.load(now_s), watched.weight(now_s)
    )
