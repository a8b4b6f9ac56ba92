"""LangSmith's runs: a run of type `llm` is a request; chains and agents hold sums of those below.

A run of a model inside another is one request: the inner one counts. Times without a zone are UTC.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from reflexarc.traces.documents import tally
from reflexarc.traces.estimates import filled
from reflexarc.traces.formats.answered import Answered, answered_in
from reflexarc.traces.formats.asked import Asked, Sharing, asked_in, unpacked
from reflexarc.traces.formats.fields import first_amount, first_text, is_list, is_table
from reflexarc.traces.formats.logged_times import Times, times_of
from reflexarc.traces.formats.providers import maker, spoken_by
from reflexarc.traces.formats.rows import Row, first_row, rows
from reflexarc.traces.formats.token_names import Tokens, tokens_of
from reflexarc.traces.formats.tool_runs import Run, with_runs
from reflexarc.traces.formats.tree import Key, Tree
from reflexarc.traces.logs import Head
from reflexarc.traces.loose import Table, listed, table, tables, text
from reflexarc.traces.models import bare, owner
from reflexarc.traces.requests import FileReport, RecordedRequest, RecordedTool, measured

COPY = "the same run"
OUTER = "a run of a model around another"
_LISTS = ("runs", "data", "rows", "items", "results")
_PLACE = frozenset({"trace_id", "parent_run_id", "dotted_order", "inputs", "start_time"})
_SESSION = ("session_id", "conversation_id", "thread_id")
_TOP = (
    "prompt_tokens", "completion_tokens", "total_tokens", "prompt_token_details",
    "completion_token_details",
)  # fmt: skip


class LangSmith:
    name = "langsmith"

    def recognises(self, head: Head) -> bool:
        row = first_row(head, _LISTS)
        return "run_type" in row and len(row.keys() & _PLACE) >= 2

    def read(self, paths: Sequence[Path], reports: dict[Path, FileReport]) -> list[RecordedRequest]:
        held: dict[Key, Row] = {}
        for row in _all_runs(rows(paths, reports, lists=_LISTS)):
            id = text(row.fields.get("id")) or row.mark
            key = (_trace(row.fields), id)
            if not text(row.fields.get("run_type")):
                row.report.skip("a row that is no run")
            elif key in held:
                row.report.duplicate(COPY)
            else:
                held[key] = row
        tree = Tree(held, {key: (key[0], _parent(row)) for key, row in held.items()})
        sharing = Sharing()
        requests: list[tuple[str, RecordedRequest]] = []
        for key, row in held.items():
            if not _is(row, "llm"):
                continue
            if any(_is(one, "llm") for one in tree.below(key)):
                row.report.duplicate(OUTER)
                continue
            requests.append((key[0], _request(key, row, sharing)))
        runs = [_run(key[0], row) for key, row in held.items() if _is(row, "tool")]
        found = with_runs(requests, runs)
        tally(found, reports)
        return found


def _all_runs(given: Iterable[Row]) -> Iterator[Row]:
    """Also those inside others, as some exports have them."""
    for row in given:
        waiting = [row.fields]
        while waiting:
            fields = waiting.pop()
            inner = tables(fields.get("child_runs"))
            own = (text(fields.get("trace_id")), text(fields.get("id")))
            waiting += [
                {**child, "trace_id": child.get("trace_id") or own[0],
                 "parent_run_id": child.get("parent_run_id") or own[1]}
                for child in inner
            ]  # fmt: skip
            yield msgspec.structs.replace(row, fields=fields)


def _trace(fields: Table) -> str:
    """The id that a dotted order begins with, where no other is told."""
    order = text(fields.get("dotted_order")).partition(".")[0]
    return text(fields.get("trace_id")) or order.partition("Z")[2]


def _parent(row: Row) -> str:
    return text(row.fields.get("parent_run_id"))


def _is(row: Row, kind: str) -> bool:
    return text(row.fields.get("run_type")).lower() == kind


def _request(key: Key, row: Row, sharing: Sharing) -> RecordedRequest:
    fields = row.fields
    extra = table(unpacked(fields.get("extra")))
    metadata = table(extra.get("metadata"))
    settings = table(extra.get("invocation_params"))
    answered = answered_in(_output(fields))
    asked = _asked(fields, settings, sharing)
    tokens = _tokens(fields, metadata, answered)
    failed = bool(fields.get("error")) or text(fields.get("status")) == "error"
    failed = failed and not tokens.counts.output.value
    model = (
        answered.model
        or first_text(metadata, "ls_model_name")
        or first_text(settings, "model", "model_name")
        or asked.model
    )
    named = first_text(metadata, "ls_provider")
    times = _times(fields)
    return RecordedRequest(
        id=f"{key[0]}:{key[1]}",
        session=first_text(metadata, *_SESSION) or key[0] or row.path.name.partition(".")[0],
        file=str(row.path),
        agent=first_text(metadata, "lc_agent_name", "agent_name"),
        model=bare(model),
        provider=maker(named) if named else owner(model) or spoken_by(model, asked.body, {}),
        service_tier=answered.tier,
        began_s=times.began_s,
        first_s=times.first_s,
        ended_s=times.ended_s,
        counts=filled(tokens.counts, asked.prompt, answered.said.written, failed=failed),
        cost_usd=measured(first_amount(fields, "total_cost") or None),
        tools=tuple(RecordedTool(call.name, call.id) for call in answered.said.calls),
        prompt=asked.prompt,
        output_text=answered.said.text,
        failed=failed,
        unknown_cache=tokens.unknown,
    )


def _output(fields: Table) -> object:
    """Of an answer's message kept under a name of its own, that message with what stands beside."""
    found = table(unpacked(fields.get("outputs")))
    inner = found.get("output")
    if len(found) <= 2 and is_table(inner):
        return {**found, **table(inner)} if "usage_metadata" in found else table(inner)
    return found


def _tokens(fields: Table, metadata: Table, answered: Answered) -> Tokens:
    outputs = table(unpacked(fields.get("outputs")))
    for told in (
        outputs.get("usage_metadata"),
        metadata.get("usage_metadata"),
    ):
        found = tokens_of(told, "inclusive")
        if found.known:
            return found
    if answered.tokens.known:
        return answered.tokens
    return tokens_of({name: fields[name] for name in _TOP if name in fields}, "inclusive")


def _asked(fields: Table, settings: Table, sharing: Sharing) -> Asked:
    inputs = unpacked(fields.get("inputs"))
    given = table(inputs)
    tools = given.get("tools", settings.get("tools"))
    messages = unpacked(given.get("messages"))
    if is_list(messages):
        return asked_in({**given, "messages": messages, **_tools(tools)}, sharing)
    prompts = listed(unpacked(given.get("prompts")))
    if len(prompts) == 1 and isinstance(prompts[0], str):
        return asked_in(prompts[0], sharing)
    return asked_in(inputs, sharing, tools=tools)


def _tools(tools: object) -> Table:
    return {} if tools is None else {"tools": tools}


def _times(fields: Table) -> Times:
    names = ("start_time", "end_time", "first_token_time")
    return times_of({name: fields.get(name) for name in names})


def _run(trace: str, row: Row) -> Run:
    fields = row.fields
    times = _times(fields)
    output = table(table(unpacked(fields.get("outputs"))).get("output"))
    call = first_text(output, "tool_call_id") or first_text(
        table(output.get("kwargs")), "tool_call_id"
    )
    return Run(
        trace, text(fields.get("name")), call, times.began_s.value, times.ended_s.value,
        bool(fields.get("error")),
    )  # fmt: skip
