"""What conversations cost with a policy of pruning: every request sent through the pruner as bytes,
and priced against a cache that knows nothing of it, only which items a prompt begins with."""

from collections.abc import Sequence
from decimal import Decimal

import msgspec

from acceptance.context_pruning_data import Talk
from reflexarc.context.horizon import Gaps, Horizon
from reflexarc.context.pruning import Chooser, Rules, Step, Terms, worthwhile
from reflexarc.context.pruning_items import read_item, tokens_of
from reflexarc.context.pruning_memory import Pruner
from reflexarc.wire.growing import Grown, take_apart
from reflexarc.wire.price import Price
from reflexarc.wire.usage import Usage

TTL_S = 300.0


class Bill(msgspec.Struct):
    """Of some conversations: micro-dollars for their prompts, requests, cuts, times cut."""

    micro_usd: int = 0
    requests: int = 0
    cuts: int = 0
    steps: int = 0


def always(terms: Terms, rules: Rules) -> Chooser:
    """Everything that may go, as soon as it may."""
    del terms, rules

    def choose(steps: Sequence[Step], remaining: float, cold: bool) -> Step | None:
        del remaining, cold
        return max(steps, key=lambda step: step.saved_tokens)

    return choose


def never(terms: Terms, rules: Rules) -> Chooser:
    del terms, rules

    def choose(steps: Sequence[Step], remaining: float, cold: bool) -> Step | None:
        del steps, remaining, cold

    return choose


def terms_of(price: Price, gaps: Gaps) -> Terms:
    return Terms(float(price.of_read), float(price.of_write), gaps.cold(TTL_S))


def bill(
    talks: Sequence[Talk],
    policy: str,
    rules: Rules,
    horizon: Horizon,
    gaps: Gaps,
    price: Price,
) -> Bill:
    """`policy`: worthwhile, always, never."""
    choosing = {"worthwhile": worthwhile, "always": always, "never": never}[policy]
    pruner = Pruner(rules, horizon, choosing)
    terms = terms_of(price, gaps)
    total = Bill()
    for number, talk in enumerate(talks):
        now_s = number * 1e9
        before: list[bytes] = []
        known: dict[bytes, int] = {}
        for end, gap_s in zip(talk.ends, talk.gaps_s, strict=True):
            now_s += gap_s
            grown = take_apart(talk.request(end), "messages")
            pruned = pruner.prune(b"t", f"{number}", "chat", grown, terms, TTL_S, now_s)
            sent = take_apart(pruned.body, "messages")
            if gap_s > TTL_S:
                before = []
            items = [sent.item(at) for at in range(len(sent))]
            total.micro_usd += _prompt_price(sent, items, before, known, price)
            total.requests += 1
            total.cuts += pruned.new
            total.steps += pruned.new > 0
            before = items
    return total


def _prompt_price(
    sent: Grown, items: list[bytes], before: list[bytes], known: dict[bytes, int], price: Price
) -> int:
    """The cache holds the longest beginning that this prompt has in common with the last one."""
    head = tokens_of(len(bytes(sent.members.get("tools", b""))))
    cached = head if before else 0
    total = head
    same = True
    for at, item in enumerate(items):
        if item not in known:
            known[item] = read_item("chat", item).tokens
        tokens = known[item]
        total += tokens
        same = same and at < len(before) and before[at] == item
        cached += tokens if same else 0
    usage = Usage(input=total, output=0, cache_read=cached, cache_write=total - cached)
    return price.micro_usd(usage)


def saved_percent(bill_: Bill, against: Bill) -> Decimal:
    return Decimal(100) * (against.micro_usd - bill_.micro_usd) / max(1, against.micro_usd)
