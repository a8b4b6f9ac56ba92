"""What the gateway counts, for Prometheus. Names start with `reflexarc_`; times are in seconds."""

import re
from collections.abc import Callable

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)

from reflexarc.gateway.labels import MAX_NAME_CHARS
from reflexarc.store.records import AttemptMade

_OVERHEAD_BUCKETS_S = (0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 1.0)
_UPSTREAM_BUCKETS_S = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
_MAX_TOOLS = 200
_MAX_CODES = 200
_word = re.compile(r"[A-Za-z0-9_.:-]{1,80}")
_OTHER = "other"


class Metrics:
    """One set of counters with its own registry."""

    def __init__(self) -> None:
        # When a counter began is of no use here, and doubles the page.
        disable_created_metrics()
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "reflexarc_requests",
            "Requests by route, kind and HTTP status.",
            ("route", "kind", "status"),
            registry=self._registry,
        )
        self._decisions = Counter(
            "reflexarc_decisions",
            "System 1's decisions on chat requests; what follows a colon in a reason is left out.",
            ("route", "mode", "action", "reason"),
            registry=self._registry,
        )
        self._shadow = Counter(
            "reflexarc_shadow",
            "Shadow decisions against what System 2 answered, by tool.",
            ("route", "tool", "outcome"),
            registry=self._registry,
        )
        self._audits = Counter(
            "reflexarc_audits",
            "Acts that System 2 was asked about as well, by tool and outcome.",
            ("route", "tool", "outcome"),
            registry=self._registry,
        )
        self._recorder_trouble = Counter(
            "reflexarc_recorder_trouble",
            "The recorder failed: died, fault (the store), dropped (a step), and restarts.",
            ("kind",),
            registry=self._registry,
        )
        self._recorder_up = Gauge(
            "reflexarc_recorder_up",
            "1 while what is done is also written down; otherwise System 1 does not act.",
            registry=self._registry,
        )
        self._off = Gauge(
            "reflexarc_off",
            "What is switched off now: entries of the switch, and 1 for an unhealthy process.",
            registry=self._registry,
        )
        self._demotions = Gauge(
            "reflexarc_demotions",
            "Scopes that this process demoted since it began, by audits or changes.",
            registry=self._registry,
        )
        self._scopes = Gauge(
            "reflexarc_scopes",
            "Scopes of the versions in use that somebody promoted, or that were demoted.",
            ("standing",),
            registry=self._registry,
        )
        self._relearned = Counter(
            "reflexarc_relearned",
            "Attempts at learning again: took_over, waits, refused, failed.",
            ("outcome",),
            registry=self._registry,
        )
        self._trouble = Counter(
            "reflexarc_system1_trouble",
            "System 1 did not decide: error, deadline, hang, died, busy, down, artifact; restarts.",
            ("kind",),
            registry=self._registry,
        )
        self._upstream_errors = Counter(
            "reflexarc_upstream_errors",
            "Requests System 2 could not be asked or did not finish, by code.",
            ("route", "code"),
            registry=self._registry,
        )
        self._clients_gone = Counter(
            "reflexarc_clients_gone",
            "Requests whose client left before the answer was complete.",
            ("route",),
            registry=self._registry,
        )
        self._attempts = Counter(
            "reflexarc_attempts",
            "Requests sent to deployments, by how they ended.",
            ("deployment", "tier", "outcome"),
            registry=self._registry,
        )
        self._spent_usd = Counter(
            "reflexarc_spent_usd",
            "Dollars that deployments cost, where their price is known.",
            ("deployment", "tier"),
            registry=self._registry,
        )
        self._tokens = Counter(
            "reflexarc_tokens",
            "Tokens used at deployments: input (cached included), cache_read, cache_write, output.",
            ("deployment", "kind"),
            registry=self._registry,
        )
        self._first_token_s = Histogram(
            "reflexarc_first_token_seconds",
            "From a request's being sent to a deployment to its first content.",
            ("deployment", "tier"),
            buckets=_UPSTREAM_BUCKETS_S,
            registry=self._registry,
        )
        self._prefix_breaks = Counter(
            "reflexarc_prefix_breaks",
            "Prompts that stopped being what was sent before them, by cause.",
            ("route", "cause"),
            registry=self._registry,
        )
        self._prefix_lost = Counter(
            "reflexarc_prefix_lost_tokens",
            "Tokens that were sent before and had to be read again, by cause.",
            ("route", "cause"),
            registry=self._registry,
        )
        self._prefix_lost_usd = Counter(
            "reflexarc_prefix_lost_usd",
            "Dollars that those cost more than from a cache, where prices are known.",
            ("route", "cause"),
            registry=self._registry,
        )
        self._pings = Counter(
            "reflexarc_prefix_pings",
            "Prompts asked with again to keep their cache warm, by outcome.",
            ("route", "outcome"),
            registry=self._registry,
        )
        self._prefix_kept = Counter(
            "reflexarc_prefix_kept_tokens",
            "Tokens that prompts began with as the ones before them.",
            ("route",),
            registry=self._registry,
        )
        self._pruned_cuts = Counter(
            "reflexarc_pruned_cuts",
            "Results and images that were left out of prompts, each once.",
            ("route",),
            registry=self._registry,
        )
        self._pruned_tokens = Counter(
            "reflexarc_pruned_tokens",
            "Tokens that prompts were shorter by, each prompt counted; an estimate.",
            ("route",),
            registry=self._registry,
        )
        self._decide_s = Histogram(
            "reflexarc_decide_seconds",
            "System 1's own time for one decision.",
            buckets=_OVERHEAD_BUCKETS_S,
            registry=self._registry,
        )
        self._before_upstream_s = Histogram(
            "reflexarc_before_upstream_seconds",
            "From a request's arrival to its being sent on.",
            buckets=_OVERHEAD_BUCKETS_S,
            registry=self._registry,
        )
        self._upstream_head_s = Histogram(
            "reflexarc_upstream_head_seconds",
            "From a request's being sent on to the head of System 2's answer.",
            buckets=_UPSTREAM_BUCKETS_S,
            registry=self._registry,
        )
        self._system1_up = Gauge(
            "reflexarc_system1_up",
            "1 while System 1's process can decide.",
            registry=self._registry,
        )
        self._request_children: dict[tuple[str, str, int], Counter] = {}
        self._decision_children: dict[tuple[str, str, str, str], Counter] = {}
        self._tools: set[str] = set()
        self._codes: set[str] = set()

    def request(self, route: str, kind: str, status: int) -> None:
        key = (route, kind, status)
        child = self._request_children.get(key)
        if child is None:
            child = self._request_children[key] = self._requests.labels(route, kind, str(status))
        child.inc()

    def decision(self, route: str, mode: str, action: str, reason: str, decide_ms: float) -> None:
        key = (route, mode, action, reason.split(":", 1)[0][:MAX_NAME_CHARS])
        child = self._decision_children.get(key)
        if child is None:
            child = self._decision_children[key] = self._decisions.labels(*key)
        child.inc()
        if decide_ms:
            self._decide_s.observe(decide_ms / 1e3)

    def shadow(self, route: str, tool: str, outcome: str) -> None:
        self._shadow.labels(route, self._known(tool), outcome).inc()

    def audit(self, route: str, tool: str, outcome: str) -> None:
        self._audits.labels(route, self._known(tool), outcome).inc()

    def recorder_trouble(self, kind: str) -> None:
        self._recorder_trouble.labels(kind).inc()

    def _known(self, tool: str) -> str:
        """Clients name tools: past 200 names the rest count as `other`."""
        tool = tool[:MAX_NAME_CHARS]
        if tool not in self._tools:
            if len(self._tools) >= _MAX_TOOLS:
                return _OTHER
            self._tools.add(tool)
        return tool

    def trouble(self, kind: str) -> None:
        self._trouble.labels(kind).inc()

    def upstream_error(self, route: str, code: str) -> None:
        """`code` may be a provider's own word: past the first 200 the rest count together, and so
        does what is no word."""
        if code not in self._codes:
            if len(self._codes) >= _MAX_CODES or _word.fullmatch(code) is None:
                code = _OTHER
            else:
                self._codes.add(code)
        self._upstream_errors.labels(route, code).inc()

    def attempt(self, deployment: str, made: AttemptMade) -> None:
        """One that is over."""
        self._attempts.labels(deployment, made.tier, made.outcome).inc()
        if made.first_token_ms is not None:
            first_s = made.first_token_ms / 1e3
            self._first_token_s.labels(deployment, made.tier).observe(first_s)
        if made.micro_usd:
            self._spent_usd.labels(deployment, made.tier).inc(made.micro_usd / 1e6)
        for kind in ("input", "cache_read", "cache_write", "output"):
            tokens: int = getattr(made.usage, kind)
            if tokens:
                self._tokens.labels(deployment, kind).inc(tokens)

    def prefix(
        self, route: str, cause: str | None, kept_tokens: int, lost_tokens: int, micro_usd: int
    ) -> None:
        """Of one prompt. `cause`: of its break, None without one."""
        self._prefix_kept.labels(route).inc(kept_tokens)
        if cause is not None:
            self._prefix_breaks.labels(route, cause).inc()
            self._prefix_lost.labels(route, cause).inc(lost_tokens)
            self._prefix_lost_usd.labels(route, cause).inc(micro_usd / 1e6)

    def pruned(self, route: str, new: int, saved_tokens: int) -> None:
        """Of one prompt."""
        self._pruned_cuts.labels(route).inc(new)
        self._pruned_tokens.labels(route).inc(saved_tokens)

    def ping(self, route: str, outcome: str) -> None:
        """`sent`, `refused` (by a budget) or `failed`."""
        self._pings.labels(route, outcome).inc()

    def client_gone(self, route: str) -> None:
        self._clients_gone.labels(route).inc()

    def forwarded(self, before_upstream_s: float, upstream_head_s: float) -> None:
        self._before_upstream_s.observe(before_upstream_s)
        self._upstream_head_s.observe(upstream_head_s)

    def watch_system1(self, is_up: Callable[[], bool]) -> None:
        self._system1_up.set_function(lambda: float(is_up()))

    def watch_acting(
        self,
        recorder_up: Callable[[], bool],
        off: Callable[[], int],
        demotions: Callable[[], int],
        scopes: Callable[[str], int],
    ) -> None:
        self._recorder_up.set_function(lambda: float(recorder_up()))
        self._off.set_function(lambda: float(off()))
        self._demotions.set_function(lambda: float(demotions()))
        for word in ("live", "demoted"):
            gauge = self._scopes.labels(word)
            gauge.set_function(lambda word=word: float(scopes(word)))

    def relearned(self, outcome: str) -> None:
        self._relearned.labels(outcome).inc()

    def text(self) -> bytes:
        """The exposition format, version 0.0.4."""
        return generate_latest(self._registry)
