"""Traces of the OpenAI Agents SDK: spans `generation` and `response` are requests, `function` runs
of tools. Custom spans (`task`, `turn`) and agents hold sums, which are not added.

A `response` span often has its id and usage alone: its text is with the provider.
"""

from collections.abc import Sequence
from pathlib import Path

from reflexarc.traces.documents import tally
from reflexarc.traces.estimates import filled
from reflexarc.traces.formats.answered import Answered, answered_in
from reflexarc.traces.formats.asked import Asked, Sharing, asked_in
from reflexarc.traces.formats.fields import first_text, is_list, is_table
from reflexarc.traces.formats.logged_times import Times, times_of
from reflexarc.traces.formats.rows import Row, first_row, rows
from reflexarc.traces.formats.token_names import Tokens, tokens_of
from reflexarc.traces.formats.tool_runs import Run, with_runs
from reflexarc.traces.formats.tree import Key, Tree
from reflexarc.traces.logs import Head
from reflexarc.traces.loose import Table, table, text
from reflexarc.traces.models import bare, owner
from reflexarc.traces.requests import FileReport, RecordedRequest, RecordedTool

COPY = "the same span"
AROUND = "a span around the request it tells of"
_LISTS = ("data", "spans", "items", "rows")
_REQUESTS = ("generation", "response")
_SETTINGS = ("tools", "instructions", "tool_choice")


class AgentsSdk:
    name = "openai-agents"

    def recognises(self, head: Head) -> bool:
        row = first_row(head, _LISTS)
        if text(row.get("object")) in ("trace", "trace.span"):
            return text(row.get("object")) == "trace.span" or "workflow_name" in row
        return "span_data" in row and "trace_id" in row

    def read(self, paths: Sequence[Path], reports: dict[Path, FileReport]) -> list[RecordedRequest]:
        held: dict[Key, Row] = {}
        groups: dict[str, str] = {}
        for row in rows(paths, reports, lists=_LISTS):
            fields = row.fields
            if text(fields.get("object")) == "trace":
                groups[text(fields.get("id"))] = text(fields.get("group_id"))
                continue
            key = (text(fields.get("trace_id")), text(fields.get("id")) or row.mark)
            if not is_table(fields.get("span_data")):
                row.report.skip("a row that is no span")
            elif key in held:
                row.report.duplicate(COPY)
            else:
                held[key] = row
        tree = Tree(held, {key: (key[0], _parent(row)) for key, row in held.items()})
        sharing = Sharing()
        requests: list[tuple[str, RecordedRequest]] = []
        for key, row in held.items():
            if _kind(row) not in _REQUESTS:
                continue
            if any(_kind(one) in _REQUESTS for one in tree.below(key)):
                row.report.duplicate(AROUND)
                continue
            session = groups.get(key[0]) or key[0] or row.path.name.partition(".")[0]
            requests.append((key[0], _request(key, row, session, tree, sharing)))
        runs = [_run(key[0], row) for key, row in held.items() if _kind(row) == "function"]
        found = with_runs(requests, runs)
        tally(found, reports)
        return found


def _data(row: Row) -> Table:
    return table(row.fields.get("span_data"))


def _kind(row: Row) -> str:
    return text(_data(row).get("type"))


def _parent(row: Row) -> str:
    return text(row.fields.get("parent_id"))


def _request(
    key: Key, row: Row, session: str, tree: Tree[Row], sharing: Sharing
) -> RecordedRequest:
    data = _data(row)
    body = table(data.get("response"))
    answered = answered_in(body or data.get("output"))
    asked = _asked(data, body, sharing)
    tokens = _tokens(data, answered)
    failed = bool(row.fields.get("error")) and not tokens.counts.output.value
    model = first_text(data, "model") or answered.model
    agents = (one for one in tree.above(key) if _kind(one) == "agent")
    agent = next(agents, None)
    times = _times(row.fields)
    is_openai = _kind(row) == "response" or model.startswith(("gpt-", "o1", "o3", "o4"))
    return RecordedRequest(
        id=f"{key[0]}:{key[1]}",
        session=session,
        file=str(row.path),
        agent="" if agent is None else first_text(_data(agent), "name"),
        model=bare(model),
        provider=owner(model) or ("openai" if is_openai else ""),
        service_tier=answered.tier,
        began_s=times.began_s,
        first_s=times.first_s,
        ended_s=times.ended_s,
        counts=filled(tokens.counts, asked.prompt, answered.said.written, failed=failed),
        tools=tuple(RecordedTool(call.name, call.id) for call in answered.said.calls),
        prompt=asked.prompt,
        output_text=answered.said.text,
        failed=failed,
        unknown_cache=tokens.unknown,
    )


def _tokens(data: Table, answered: Answered) -> Tokens:
    found = tokens_of(data.get("usage"), "inclusive")
    return found if found.known else answered.tokens


def _asked(data: Table, body: Table, sharing: Sharing) -> Asked:
    """The input, with what a response repeats of its request."""
    given = data.get("input")
    settings = {name: body[name] for name in _SETTINGS if body.get(name) is not None}
    if settings and (is_list(given) or isinstance(given, str)):
        return asked_in({"model": body.get("model"), **settings, "input": given}, sharing)
    return asked_in(given, sharing, tools=data.get("tools"))


def _times(fields: Table) -> Times:
    return times_of({name: fields.get(name) for name in ("started_at", "ended_at")})


def _run(trace: str, row: Row) -> Run:
    data = _data(row)
    times = _times(row.fields)
    return Run(
        trace,
        text(data.get("name")),
        first_text(data, "call_id", "tool_call_id"),
        times.began_s.value,
        times.ended_s.value,
        bool(row.fields.get("error")),
    )
