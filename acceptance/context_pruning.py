"""Lines on pruning: what it saves against never and always cutting, on conversations it was not
fitted on, at two providers' prices; and that what it leaves is valid in every dialect."""

import importlib.util
import random
from collections.abc import Sequence

import msgspec
import xxhash

from acceptance import context_pruning_loop
from acceptance.context_pruning_data import (
    DATA,
    Talk,
    in_one_go,
    recorded_gaps,
    session_talks,
    shell_talks,
    team_talks,
)
from acceptance.context_pruning_price import Bill, bill, saved_percent
from acceptance.context_pruning_valid import faults_of_prunings, forgotten
from acceptance.lines import Lines
from reflexarc.accounts.prices import Price, Prices
from reflexarc.context.horizon import Gaps, Horizon, fit, fit_gaps
from reflexarc.context.pruning import Rules

PRICED = (("anthropic", "claude-sonnet-4-6"), ("openai", "gpt-6.2-sol"))
_SESSIONS = ("tau1_retail_fork", "tau1_airline_gpt4o", "apiflow_terra")
_JUDGED = 24


class _Set(msgspec.Struct, frozen=True):
    """`gaps` and `horizon` are of the talks it was fitted on, `talks` of other tasks."""

    name: str
    talks: Sequence[Talk]
    horizon: Horizon
    gaps: Gaps


def measure(lines: Lines) -> None:
    """Leaves out what has no data."""
    if not (DATA / "requests").is_dir() or not (DATA / "sessions").is_dir():
        lines.skip("pruning: ../shared/data has no requests and sessions")
        return
    with lines.within("4"):
        _measured(lines, _sets())


def _measured(lines: Lines, sets: Sequence[_Set]) -> None:
    prices = Prices.load()
    for number, (provider, model) in enumerate(PRICED, 1):
        price = prices.of(provider, model)
        assert price is not None, f"{provider} {model} is not in the shipped prices"
        with lines.within(f"{number}"):
            _judge(lines, sets, model, price)
    _validity(lines, [talk for one in sets for talk in one.talks])
    if importlib.util.find_spec("xllamacpp") is None:
        lines.skip("pruning and the embedded engine (the extra [local] is not installed)")
    else:
        context_pruning_loop.measure(lines)


def _judge(lines: Lines, sets: Sequence[_Set], model: str, price: Price) -> None:
    cheaper = equal = never_best = 0
    for at, one in enumerate(sets, 1):
        bills = {
            policy: bill(one.talks, policy, Rules(), one.horizon, one.gaps, price)
            for policy in ("never", "always", "worthwhile")
        }
        never, always, ours = bills["never"], bills["always"], bills["worthwhile"]
        least = min(never.micro_usd, always.micro_usd)
        cheaper += ours.micro_usd < least
        never_best += ours.cuts == 0
        equal += ours.cuts > 0 and ours.micro_usd == least
        lines.add(
            f"{at}",
            f"{model}: {one.name}, {len(one.talks)} conversations of "
            f"{ours.requests / max(1, len(one.talks)):.0f} requests: price of their prompts",
            "no more than never and than always; or nothing is cut",
            f"{_said(ours, never)} in {ours.steps} steps; always {_said(always, never)} in "
            f"{always.steps}",
            ours.micro_usd <= least or ours.cuts == 0,
        )
    total = len(sets)
    lines.add(
        f"{total + 1}",
        f"{model}: sets where it is cheaper than both; where it says that never is best; where "
        "always does the same",
        "together all, some of the first",
        f"{cheaper}; {never_best}; {equal} of {total}",
        cheaper > 0 and cheaper + never_best + equal == total,
    )


def _said(one: Bill, never: Bill) -> str:
    saved = saved_percent(one, never)
    return f"{saved:.2f}% saved" if saved >= 0 else f"{-saved:.2f}% dearer than never"


def _validity(lines: Lines, talks: Sequence[Talk]) -> None:
    rng = random.Random(11)
    longer = [talk for talk in talks if len(talk.ends) > 4]
    rng.shuffle(longer)
    for at, dialect in enumerate(("chat", "messages", "responses", "gemini"), 1):
        tried, cuts, wrong = faults_of_prunings(dialect, longer, 50, rng)
        lines.add(
            f"3.{at}",
            f"random prunings of {dialect} requests that a strict reader of its API takes, with "
            "every call, every result's id and every other item as it was",
            "50 of 50",
            f"{tried - len(wrong)} of {tried}, {cuts} cuts" + (f"; {wrong[0]}" if wrong else ""),
            tried == 50 and cuts > 50 and not wrong,
        )
    same, asked = forgotten(longer[:20])
    lines.add(
        "3.5", "requests cut the same after what was decided is forgotten, no cache gone", "all",
        f"{same} of {asked}", same == asked and asked > 0,
    )  # fmt: skip


def _sets() -> list[_Set]:
    seen = recorded_gaps(lambda name: _to_fit(name))
    unseen = recorded_gaps(lambda name: not _to_fit(name))
    rng = random.Random(7)

    def gap_s() -> float:
        return rng.choice(unseen)

    sets = [
        _split("mini-swe-agent's", shell_talks()),
        _split("magentic's", team_talks()),
    ]
    for name in _SESSIONS:
        for images in (False, True):
            planted = random.Random(3) if images else None
            talks = session_talks(name, gap_s, planted)
            shown = f"{name}{', with screenshots' if images else ''}"
            sets.append(_split(shown, talks, seen))
            sets.append(_split(f"{shown}, four tasks in one go", talks, seen, 4))
    return sets


def _split(name: str, talks: list[Talk], gaps: list[float] | None = None, many: int = 1) -> _Set:
    """By task. Where times were not recorded, the fitted gaps are of other sessions than those the
    judged ones were drawn from."""
    sides = [[one for one in talks if _to_fit(one.task) is side] for side in (True, False)]
    fitted, judged = (in_one_go(side, many) if many > 1 else side for side in sides)
    measured = gaps if gaps is not None else [gap for one in fitted for gap in one.gaps_s[1:]]
    horizon = fit([len(one.ends) for one in fitted])
    return _Set(name, judged[:_JUDGED], horizon, fit_gaps(measured))


def _to_fit(name: str) -> bool:
    return xxhash.xxh3_64_intdigest(name.encode()) % 2 == 0
