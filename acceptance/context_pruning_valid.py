"""Random prunings of requests in any dialect, held against the strict checks of the fault upstream
and against the request as it came."""

import random
from collections.abc import Sequence
from typing import Any

import msgspec

from acceptance.context_pruning_data import Talk
from reflexarc.context.horizon import fit
from reflexarc.context.pruning import Chooser, Rules, Step, Terms
from reflexarc.context.pruning_found import ImageBudget
from reflexarc.context.pruning_items import read_item
from reflexarc.context.pruning_memory import Pruned, Pruner
from reflexarc.sim.faulty import chat_checks, gemini_checks, messages_checks, responses_checks
from reflexarc.steps.errors import InputError
from reflexarc.wire.converting import Conversion, TurnMemory, read_ask
from reflexarc.wire.dialect import Where
from reflexarc.wire.dialects import dialect, load_dialects
from reflexarc.wire.growing import Grown, take_apart

_TERMS = Terms(0.3, 3.75, 0.05)


def faults_of_prunings(
    name: str, talks: Sequence[Talk], many: int, rng: random.Random
) -> tuple[int, int, list[str]]:
    """So many prunings of requests of a dialect in which something was cut: how many there were,
    cuts in all, and what is wrong with them. One that was not valid before is not counted."""
    tried = cuts = 0
    wrong: list[str] = []
    for attempt in range(many * 20):
        if tried == many:
            break
        talk = talks[attempt % len(talks)]
        body = in_dialect(name, talk.request(rng.choice(talk.ends[2:])))
        if body is None or _refusal(name, body):
            continue
        grown = take_apart(body, dialect(name).conversation)
        pruned = _pruned_at_random(name, grown, rng)
        if not pruned.cuts:
            continue
        tried += 1
        cuts += len(pruned.cuts)
        said = _refusal(name, pruned.body) or _changed(name, grown, pruned)
        wrong += [f"{talk.task}: {said}"] if said else []
    return tried, cuts, wrong


def forgotten(talks: Sequence[Talk]) -> tuple[int, int]:
    """Requests that a pruner without a memory prunes as one that saw the whole conversation does,
    of how many."""
    same = asked = 0
    rules = Rules(images=ImageBudget(tokens=1_500))
    horizon = fit([40, 60, 80])
    for number, talk in enumerate(talks):
        lasting = Pruner(rules, horizon)
        for end in talk.ends:
            grown = take_apart(talk.request(end), "messages")
            kept = lasting.prune(b"t", f"{number}", "chat", grown, _TERMS, 300.0, 0.0)
            fresh = Pruner(rules, horizon).prune(b"t", "", "chat", grown, _TERMS, 300.0, 0.0)
            same += kept.body == fresh.body
            asked += 1
    return same, asked


def in_dialect(name: str, body: bytes) -> bytes | None:
    """A chat request in another dialect; None for what it cannot say."""
    if name == "chat":
        return body
    load_dialects()
    chat = dialect("chat")
    try:
        ask = read_ask(chat, body, Where(), TurnMemory())
        written = Conversion(chat, dialect(name), ask, 0, None).request()
    except InputError:
        return None
    if name == "messages" and b'"max_tokens"' not in written:
        return None
    return written


def _pruned_at_random(name: str, grown: Grown, rng: random.Random) -> Pruned:
    rules = Rules(
        keep_turns=rng.randint(1, 4),
        least_tokens=0,
        images=ImageBudget(tokens=rng.choice([0, 1_000, 3_000])),
    )

    def choosing(terms: Terms, rules: Rules) -> Chooser:
        del terms, rules

        def choose(steps: Sequence[Step], remaining: float, cold: bool) -> Step | None:
            del remaining, cold
            return rng.choice(steps) if rng.random() < 0.5 else None

        return choose

    return Pruner(rules, fit([]), choosing).prune(b"t", "s", name, grown, _TERMS, 300.0, 0.0)


def _refusal(name: str, body: bytes) -> str:
    """What a strict upstream says of it; empty where it takes it."""
    value: dict[str, Any] = msgspec.json.decode(body)
    try:
        if name == "chat":
            chat_checks.check(value)
        elif name == "messages":
            messages_checks.check(value, _any_signature)
        elif name == "responses":
            responses_checks.check(value, _any_signature)
        else:
            gemini_checks.check(value, _any_signature)
    except InputError as error:
        return str(error) or type(error).__name__
    return ""


def _any_signature(text: str) -> bool:
    del text
    return True


def _changed(name: str, before: Grown, pruned: Pruned) -> str:
    """What is otherwise than it should be: only items with a cut differ, and no call, and no
    result's call, is another."""
    after = take_apart(pruned.body, dialect(name).conversation)
    if len(after) != len(before):
        return f"{len(after)} items of {len(before)}"
    cut = {one.candidate.at for one in pruned.cuts}
    for at in range(len(before)):
        same = before.item(at) == after.item(at)
        if same is (at in cut):
            return f"item {at} is {'the same' if same else 'another'}"
        old, new = read_item(name, before.item(at)), read_item(name, after.item(at))
        if old.calls != new.calls or old.turn != new.turn:
            return f"item {at} has other calls"
        if [one.call_id for one in old.outputs] != [one.call_id for one in new.outputs]:
            return f"item {at} has results of other calls"
        if old.turn and at in cut:
            return f"item {at} is the model's"
    return ""
