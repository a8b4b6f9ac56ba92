"""Langfuse's exports: downloads of a trace, pages of its API, batch exports (JSON, JSON Lines, CSV)
and blobs, in camel or snake case.

An observation of type GENERATION (or EMBEDDING) is a request; one whose tokens are the sum of those
under it is none. Times are taken from the times: units of `latency` differ from export to export.
"""

from collections.abc import Sequence
from pathlib import Path

from reflexarc.traces.documents import tally
from reflexarc.traces.estimates import filled
from reflexarc.traces.formats.answered import answered_in
from reflexarc.traces.formats.asked import Sharing, unpacked
from reflexarc.traces.formats.fields import first_text
from reflexarc.traces.formats.langfuse_fields import (
    attributes_of,
    camel,
    cost_of,
    prompt_of,
    session_of,
    tokens_in,
)
from reflexarc.traces.formats.logged_times import Times, times_of
from reflexarc.traces.formats.providers import maker, spoken_by
from reflexarc.traces.formats.rows import Row, first_row, rows
from reflexarc.traces.formats.token_names import Tokens
from reflexarc.traces.formats.tool_runs import Run, with_runs
from reflexarc.traces.formats.tree import Key, Tree
from reflexarc.traces.logs import Head
from reflexarc.traces.loose import Table, table, text
from reflexarc.traces.models import bare, owner
from reflexarc.traces.requests import FileReport, RecordedRequest, RecordedTool, measured

COPY = "the same observation"
SUM = "a generation that holds the sum of those under it"
_LISTS = ("observations", "data", "rows", "items", "results")
_REQUESTS = frozenset({"GENERATION", "EMBEDDING"})
_OWN = frozenset({"usageDetails", "costDetails", "parentObservationId", "completionStartTime"})


class Langfuse:
    name = "langfuse"

    def recognises(self, head: Head) -> bool:
        row = camel(first_row(head, _LISTS))
        if "observations" in row and row.keys() & {"trace", "sessionId", "projectId"}:
            return True
        return "type" in row and "traceId" in row and bool(row.keys() & _OWN)

    def read(self, paths: Sequence[Path], reports: dict[Path, FileReport]) -> list[RecordedRequest]:
        held: dict[Key, Row] = {}
        for row in rows(paths, reports, lists=_LISTS):
            fields = camel(row.fields)
            key = (text(fields.get("traceId")), text(fields.get("id")) or row.mark)
            if not text(fields.get("type")):
                row.report.skip("a row that is no observation")
            elif key in held:
                row.report.duplicate(COPY)
            else:
                held[key] = Row(row.path, row.report, fields, row.outer, row.mark)
        requests = _requests(held)
        found = with_runs(requests, [_run(key[0], row) for key, row in held.items() if _ran(row)])
        tally(found, reports)
        return found


def _requests(held: dict[Key, Row]) -> list[tuple[str, RecordedRequest]]:
    tree = Tree(held, {key: (key[0], _parent(row)) for key, row in held.items()})
    tokens = {key: _tokens(row) for key, row in held.items() if _asks(row)}
    by_row = {id(held[key]): key for key in tokens}
    sharing = Sharing()
    found: list[tuple[str, RecordedRequest]] = []
    for key, own in tokens.items():
        below = [tokens[by_row[id(row)]] for row in tree.below(key) if id(row) in by_row]
        if below and (not own.known or _is_sum(own, below)):
            held[key].report.duplicate(SUM)
            continue
        found.append((key[0], _request(key, held[key], own, tree, sharing)))
    return found


def _is_sum(own: Tokens, below: list[Tokens]) -> bool:
    sums = (
        sum(one.counts.prompt.value or 0 for one in below),
        sum(one.counts.output.value or 0 for one in below),
    )
    return sums == (own.counts.prompt.value or 0, own.counts.output.value or 0)


def _asks(row: Row) -> bool:
    return text(row.fields.get("type")).upper() in _REQUESTS


def _ran(row: Row) -> bool:
    return text(row.fields.get("type")).upper() == "TOOL"


def _parent(row: Row) -> str:
    return text(row.fields.get("parentObservationId"))


def _tokens(row: Row) -> Tokens:
    return tokens_in(row.fields)


def _request(
    key: Key, row: Row, tokens: Tokens, tree: Tree[Row], sharing: Sharing
) -> RecordedRequest:
    fields = row.fields
    attributes = attributes_of(fields)
    answered = answered_in(fields.get("output"))
    prompt = prompt_of(fields, sharing)
    # what failed and told tokens was billed: a request all the same
    failed = text(fields.get("level")).upper() == "ERROR" and not tokens.counts.output.value
    model = first_text(fields, "model", "providedModelName") or answered.model
    named = first_text(
        attributes, "gen_ai.provider.name", "gen_ai.system", "llm.provider", "llm.system"
    ) or first_text(table(fields.get("metadata")), "ls_provider")
    times = _times(fields)
    return RecordedRequest(
        id=f"{key[0]}:{key[1]}",
        session=session_of(fields, row.outer) or key[0] or row.path.name.partition(".")[0],
        file=str(row.path),
        agent=_agent(key, attributes, tree),
        model=bare(model),
        provider=maker(named) or owner(model) or ("" if named else spoken_by(model, {}, {})),
        service_tier=answered.tier,
        began_s=times.began_s,
        first_s=times.first_s,
        ended_s=times.ended_s,
        counts=filled(tokens.counts, prompt, answered.said.written, failed=failed),
        cost_usd=measured(cost_of(fields)),
        tools=tuple(RecordedTool(call.name, call.id) for call in answered.said.calls),
        prompt=prompt,
        output_text=answered.said.text,
        failed=failed,
        unknown_cache=tokens.unknown,
    )


def _times(fields: Table) -> Times:
    names = ("startTime", "endTime", "completionStartTime")
    return times_of({name: fields.get(name) for name in names})


def _agent(key: Key, attributes: Table, tree: Tree[Row]) -> str:
    own = first_text(attributes, "gen_ai.agent.name", "agent_name")
    if own:
        return own
    for row in tree.above(key):
        named = first_text(attributes_of(row.fields), "gen_ai.agent.name", "agent_name")
        if named:
            return named
        if text(row.fields.get("type")).upper() == "AGENT":
            return text(row.fields.get("name"))
    return ""


def _run(trace: str, row: Row) -> Run:
    fields = row.fields
    attributes = attributes_of(fields)
    times = _times(fields)
    named = first_text(attributes, "gen_ai.tool.name", "tool.name")
    call = first_text(attributes, "gen_ai.tool.call.id", "tool_call.id")
    output = table(unpacked(fields.get("output")))
    return Run(
        trace,
        named or text(fields.get("name")),
        call or first_text(output, "tool_call_id"),
        times.began_s.value,
        times.ended_s.value,
        text(fields.get("level")).upper() == "ERROR",
    )
