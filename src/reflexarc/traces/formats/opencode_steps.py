"""What an answer of OpenCode tells of itself: its steps, tokens, times and calls."""

import msgspec

from reflexarc.traces.formats.opencode_stores import Message
from reflexarc.traces.inclusive import Told, settled
from reflexarc.traces.loose import Table, amount, moment, table, text
from reflexarc.traces.requests import (
    Counts,
    Figure,
    RecordedTool,
    derived,
    estimated,
    measured,
)

_TOKENS = ("input", "output", "reasoning")


class Step(msgspec.Struct, frozen=True):
    """One request within an answer, and its parts. `tokens` and `cost` as the log has them."""

    number: int
    parts: list[Table]
    tokens: Table
    cost: float | None


def steps_of(one: Message) -> list[Step]:
    """An answer was one request, or in older versions one for each `step-finish`. Its own tokens
    are those of the last."""
    finished = [index for index, part in enumerate(one.parts) if part.get("type") == "step-finish"]
    own, cost = table(one.info.get("tokens")), amount(one.info.get("cost"))
    if len(finished) < 2:
        tokens = own
        if finished and not _any(own):
            last = one.parts[finished[0]]
            tokens, cost = table(last.get("tokens")), cost or amount(last.get("cost"))
        return [Step(0, one.parts, tokens, cost)]
    found: list[Step] = []
    begin = 0
    for number, index in enumerate(finished):
        last = one.parts[index]
        # what comes after the last finish belongs to it
        end = index + 1 if number + 1 < len(finished) else len(one.parts)
        tokens = table(last.get("tokens"))
        found.append(Step(number, one.parts[begin:end], tokens, amount(last.get("cost"))))
        begin = end
    return found


def _any(tokens: Table) -> bool:
    cache = table(tokens.get("cache"))
    given = [tokens.get(name) for name in _TOKENS] + [cache.get("read"), cache.get("write")]
    return any(amount(one) for one in given)


def counts_of(tokens: Table) -> tuple[Counts, bool]:
    """Zeros all over stand for an answer that brought no usage."""
    if not _any(tokens):
        return Counts(), False
    cache = table(tokens.get("cache"))
    told = Told(
        amount(tokens.get("input")),
        amount(tokens.get("output")),
        amount(cache.get("read")),
        amount(cache.get("write")),
        amount(tokens.get("reasoning")),
        amount(tokens.get("total")) or None,
    )
    whole = settled(told, "disjoint", reasoning_inside=False)
    counts = Counts(
        prompt=_figure(whole.prompt, told.prompt),
        cache_read=measured(told.cache_read),
        cache_write=measured(told.cache_write),
        output=_figure(whole.output, told.output),
        reasoning=measured(told.reasoning),
    )
    return counts, whole.unknown


def _figure(whole: float | None, told: float | None) -> Figure:
    return measured(whole) if whole == told else derived(whole)


def calls_of(step: Step) -> list[Table]:
    return [part for part in step.parts if part.get("type") == "tool"]


def end_of(part: Table) -> float | None:
    return moment(table(table(part.get("state")).get("time")).get("end"))


def tool_of(part: Table) -> RecordedTool:
    state = table(part.get("state"))
    time = table(state.get("time"))
    name = text(part.get("tool"))
    began_s, ended_s = moment(time.get("start")), moment(time.get("end"))
    if began_s is not None and ended_s is not None and ended_s < began_s:
        ended_s = None
    return RecordedTool(
        name,
        text(part.get("callID")),
        began_s=measured(began_s),
        ended_s=measured(ended_s),
        failed=text(state.get("status")) == "error" or name == "invalid",
    )


def times_of(step: Step, completed_s: float | None) -> tuple[float | None, Figure]:
    """When the first of it came, and when it ended. An answer is completed after its tools have
    run: its own end is then not known, save that it was not before the last call began."""
    starts: list[float | None] = []
    ends: list[float | None] = []
    for part in step.parts:
        time = table(part.get("time"))
        if part.get("type") in ("text", "reasoning"):
            starts.append(moment(time.get("start")))
            ends.append(moment(time.get("end")))
        elif part.get("type") == "tool":
            ends.append(moment(table(table(part.get("state")).get("time")).get("start")))
    first_s = min((one for one in starts if one is not None), default=None)
    last_s = max((one for one in ends if one is not None), default=None)
    if not calls_of(step) and not step.number and completed_s is not None:
        return first_s, measured(completed_s)
    return first_s, estimated(completed_s if last_s is None else last_s)
