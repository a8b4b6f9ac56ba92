"""One sample of an inspect_ai log as requests: its model events, with the tools they called.

`usage.input_tokens` leaves cached tokens out (src/inspect_ai/model/_model_output.py), save in older
logs, where the sum tells. An epoch is a run of its own.
"""

from collections.abc import Iterator

import msgspec
import xxhash

from reflexarc.steps.prompt import Piece
from reflexarc.traces.formats.chat_pieces import called, words
from reflexarc.traces.formats.inspect_pieces import Budget, SamplePieces
from reflexarc.traces.inclusive import Told, settled
from reflexarc.traces.loose import Table, amount, moment, table, tables, text
from reflexarc.traces.models import bare, owner
from reflexarc.traces.requests import (
    Counts,
    Figure,
    FileReport,
    RecordedRequest,
    RecordedTool,
    derived,
    measured,
)

OWN_CACHE = "answered from inspect's own cache: no request"
MAX_DEPTH = 32
"""Events inside events inside events; deeper ones are not read."""

UNFINISHED = "written again when it had ended"


class Sample(msgspec.Struct, frozen=True):
    """Where a sample stands. `task` and `run` name the log it is of."""

    fields: Table
    file: str
    task: str
    run: str


def requests_of(
    sample: Sample, report: FileReport, shared: dict[bytes, Piece], budget: Budget
) -> Iterator[RecordedRequest]:
    """The requests of a sample, in the order of its events."""
    fields = sample.fields
    flat = list(_flat(tables(fields.get("events"))))
    events = [event for event, _ in flat]
    name = f"{sample.task}/{text(fields.get('id'))}/{text(fields.get('epoch')) or '1'}"
    own = text(fields.get("uuid"))
    ended = {_key(one) for one in events if not one.get("pending") and _key(one)}
    pieces = SamplePieces(fields, shared, budget)
    agents = _Agents(events)
    tools = _tools(events)
    for index, (event, within) in enumerate(flat):
        if event.get("event") != "model":
            continue
        if event.get("pending") and _key(event) in ended:
            report.duplicate(UNFINISHED)
            continue
        if event.get("cache") == "read":
            report.skip(OWN_CACHE)
            continue
        place = _key(event) or f"{text(event.get('timestamp'))}#{index}"
        # a sample that a later run took over has its uuid, or its times, there too
        identity = f"{own or name}:{place}"
        yield _request(
            event,
            RecordedRequest(
                id=xxhash.xxh3_128_hexdigest(identity.encode()),
                session=f"{name} {own or sample.run}",
                file=sample.file,
                agent=agents.of(event) or within,
                prompt=pieces.prompt(event),
            ),
            tools,
        )


def _flat(events: list[Table], within: str = "", depth: int = 0) -> Iterator[tuple[Table, str]]:
    """Events with those inside them: older logs keep what a tool or a subtask did in its event,
    which is an agent of its own."""
    for index, event in enumerate(events):
        yield event, within
        inner = tables(event.get("events"))
        if inner and depth < MAX_DEPTH:
            name = text(event.get("function")) or text(event.get("name")) or "inner"
            yield from _flat(inner, f"{within}{name}-{index}", depth + 1)


def _request(
    event: Table, base: RecordedRequest, tools: dict[str, RecordedTool]
) -> RecordedRequest:
    output = table(event.get("output"))
    usage = table(output.get("usage"))
    named = text(event.get("model"))
    whose = owner(named)
    answer = table((tables(output.get("choices")) or [{}])[0].get("message"))
    began, ended = _times(event, output)
    retries = amount(event.get("retries")) or 0
    failed = bool(event.get("error") or output.get("error")) and not usage
    unfinished = bool(event.get("pending"))
    counts, unknown = _counts(usage)
    notes = (
        *((f"{retries:.0f} attempts before it failed",) if retries else ()),
        *(("it had not ended when the log was written",) if unfinished else ()),
    )
    return msgspec.structs.replace(
        base,
        model=(text(output.get("model")) if whose else "") or bare(named),
        provider=whose,
        service_tier=_tier(event),
        began_s=began,
        ended_s=ended,
        counts=counts,
        unknown_cache=unknown,
        cost_usd=measured(amount(usage.get("total_cost"))),
        tools=tuple(
            tools.get(id) or RecordedTool(name, id) for name, id, _ in called(answer) if name
        ),
        output_text=words(answer),
        failed=failed or unfinished,
        notes=notes,
    )


def _tier(event: Table) -> str:
    response = table(table(event.get("call")).get("response"))
    tier = text(response.get("service_tier"))
    return "" if tier == "default" else tier


def _counts(usage: Table) -> tuple[Counts, bool]:
    """And whether it cannot be told if cached tokens are inside the prompt."""
    read = amount(usage.get("input_tokens_cache_read"))
    written = amount(usage.get("input_tokens_cache_write"))
    reasoning = amount(usage.get("reasoning_tokens"))
    told = Told(
        prompt=amount(usage.get("input_tokens")),
        output=amount(usage.get("output_tokens")),
        cache_read=read,
        cache_write=written,
        reasoning=reasoning,
        total=amount(usage.get("total_tokens")),
    )
    found = settled(told, "disjoint")
    counts = Counts(
        prompt=measured(found.prompt) if found.prompt == told.prompt else derived(found.prompt),
        cache_read=measured(read),
        cache_write=measured(written),
        output=measured(found.output) if found.output == told.output else derived(found.output),
        reasoning=measured(reasoning),
    )
    return counts, found.unknown


def _times(event: Table, output: Table) -> tuple[Figure, Figure]:
    """Its start and end. The seconds of the attempt that succeeded are known better than when the
    event began, which may have waited for its turn or failed before."""
    noted = moment(event.get("timestamp"))
    completed = moment(event.get("completed"))
    took = amount(output.get("time"))
    if completed is not None:
        began = measured(noted) if took is None else derived(max(0.0, completed - took))
        return began, measured(completed)
    ended = None if noted is None or took is None else noted + took
    return measured(noted), derived(ended)


def _key(event: Table) -> str:
    return text(event.get("uuid"))


def _tools(events: list[Table]) -> dict[str, RecordedTool]:
    found: dict[str, RecordedTool] = {}
    for event in events:
        id = text(event.get("id"))
        if event.get("event") != "tool" or not id or event.get("pending"):
            continue
        found[id] = RecordedTool(
            text(event.get("function")),
            id,
            began_s=measured(moment(event.get("timestamp"))),
            ended_s=measured(moment(event.get("completed"))),
            own_s=measured(amount(event.get("working_time"))),
            failed=bool(event.get("error")),
        )
    return found


class _Agents:
    """Which agent a request was of: a role (a grader), or a span of an agent inside another's."""

    def __init__(self, events: list[Table]) -> None:
        self._spans = {
            text(one.get("id")): one for one in events if one.get("event") == "span_begin"
        }

    def of(self, event: Table) -> str:
        role = text(event.get("role"))
        if role:
            return role
        inner = ""
        seen: set[str] = set()
        at = text(event.get("span_id"))
        while at in self._spans and at not in seen:
            seen.add(at)
            span = self._spans[at]
            if span.get("type") == "agent":
                if inner:
                    return inner
                inner = f"{text(span.get('name'))}-{at[:8]}"
            at = text(span.get("parent_id"))
        return ""
