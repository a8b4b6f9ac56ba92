"""OpenTelemetry GenAI and OpenInference spans as OTLP JSON: one object a file, or one a line.

A request is a model's call with none below it. Spans of agents hold sums, or what their last call
used: never trusted where calls are there. One request instrumented twice is one request.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec

from reflexarc.steps.prompt import Prompt
from reflexarc.traces.documents import documents, tally
from reflexarc.traces.estimates import filled
from reflexarc.traces.formats.asked import Sharing
from reflexarc.traces.formats.openings import opening_of
from reflexarc.traces.formats.otlp_calls import (
    USED,
    billed_under,
    counts_as_request,
    ended_s,
    is_agent,
    is_call,
    is_tool,
    tokens_of_span,
)
from reflexarc.traces.formats.otlp_messages import calls_of, prompt_of, words_of
from reflexarc.traces.formats.otlp_spans import MAX_DEPTH, Span, is_flat, spans_of
from reflexarc.traces.formats.providers import maker
from reflexarc.traces.logs import Head
from reflexarc.traces.loose import amount, table, text
from reflexarc.traces.models import bare, owner
from reflexarc.traces.peek import top_of
from reflexarc.traces.requests import (
    ABSENT,
    FileReport,
    RecordedRequest,
    RecordedTool,
    derived,
    measured,
)


class Otlp:
    name = "otlp"

    def recognises(self, head: Head) -> bool:
        top = top_of(head)
        if top.keys & {"resourceSpans", "resourceLogs"}:
            return True
        first = top.element or table(head.first)
        shown = any(mark in head.data for mark in (b"gen_ai.", b"openinference", b"llm"))
        return shown and is_flat(first)

    def read(self, paths: Sequence[Path], reports: dict[Path, FileReport]) -> list[RecordedRequest]:
        spans = spans_of(documents(paths, reports))
        by_file = {str(path): report for path, report in reports.items()}
        ran = _ran_after(spans)
        by_id = {(span.trace, span.id): span for span in spans}
        answered: dict[tuple[str, str], RecordedRequest] = {}
        billed: dict[tuple[str, str], Span | None] = {}
        sharing = Sharing()
        found: list[RecordedRequest] = []
        for span in spans:
            if not counts_as_request(span):
                continue
            _take_texts(span, by_id, billed)
            request = _request(span, ran.get((span.trace, span.id), ()), sharing)
            span.forget_texts()
            response = text(span.get("gen_ai.response.id"))
            known = answered.get((span.trace, response))
            if response and known is not None and _is_again(request, known):
                by_file[span.file].duplicate("the same response's id")
                continue
            answered[span.trace, response] = request
            found.append(request)
        found = _in_sessions(found)
        _note(spans, by_file)
        tally(found, reports)
        return found


def _in_sessions(requests: list[RecordedRequest]) -> list[RecordedRequest]:
    """Where nothing names a conversation and each request is a trace of its own, those that begin
    alike are of one."""
    counts = Counter(request.session for request in requests)
    return [
        msgspec.structs.replace(request, session=opening_of(request.prompt))
        if counts[request.session] == 1
        and request.id.startswith(f"{request.session}:")
        and isinstance(request.prompt, Prompt)
        else request
        for request in requests
    ]


def _is_again(request: RecordedRequest, known: RecordedRequest) -> bool:
    """Whether two spans with a response's id are of one: servers of one's own give an id twice."""
    one, other = request.counts, known.counts
    if (one.prompt.value, one.output.value) == (other.prompt.value, other.output.value):
        return True
    moments = (request.began_s, request.ended_s, known.began_s, known.ended_s)
    began, ended, known_began, known_ended = (moment.value for moment in moments)
    if began is None or ended is None or known_began is None or known_ended is None:
        return True
    return began < known_ended and known_began < ended


def _take_texts(
    span: Span,
    by_id: dict[tuple[str, str], Span],
    billed: dict[tuple[str, str], Span | None],
) -> None:
    """Of the calls that it stands in, what it does not tell itself: messages, a session; what was
    used where that is its own. `billed` is filled as calls are looked at."""
    above = by_id.get((span.trace, span.parent))
    is_same = True
    for _ in range(MAX_DEPTH):
        if above is None:
            return
        # a call above a tool or an agent is another one
        is_same = is_same and not is_tool(above) and not is_agent(above)
        if is_same and is_call(above):
            key = (above.trace, above.id)
            if key not in billed:
                billed[key] = billed_under(above)
            for name, value in above.attributes.items():
                if billed[key] is span or not name.startswith((*USED, "gen_ai.response.")):
                    span.attributes.setdefault(name, value)
        for name in ("gen_ai.conversation.id", "session.id", "gen_ai.agent.name"):
            if (value := above.get(name)) is not None:
                span.attributes.setdefault(name, value)
        above = by_id.get((above.trace, above.parent))


def _request(span: Span, ran: Sequence[Span], sharing: Sharing) -> RecordedRequest:
    model = text(span.get("gen_ai.response.model", "gen_ai.request.model", "llm.model_name"))
    named = text(span.get("gen_ai.provider.name", "gen_ai.system", "llm.provider", "llm.system"))
    tokens, prompt = tokens_of_span(span), prompt_of(span)
    if prompt is not None:
        prompt = sharing.prompt(prompt.pieces, complete=prompt.complete)
    words, calls = words_of(span), calls_of(span)
    first_s = amount(span.get("gen_ai.response.time_to_first_chunk"))
    began = span.began_s
    session = text(span.get("gen_ai.conversation.id", "session.id")) or span.trace
    # A failure that told usage was billed: it is a request all the same.
    failed = span.failed and tokens.counts.output.value is None
    written = (words, *(name for name, _ in calls))
    return RecordedRequest(
        id=f"{span.trace}:{span.id}",
        session=session,
        agent=text(span.get("gen_ai.agent.name", "gen_ai.agent.id")),
        file=span.file,
        model=bare(model),
        provider=maker(named) if named else owner(model),
        service_tier=text(span.get("gen_ai.openai.response.service_tier")),
        began_s=measured(began),
        first_s=ABSENT if first_s is None or began is None else derived(began + first_s),
        ended_s=measured(span.ended_s),
        counts=filled(tokens.counts, prompt, written, failed=failed),
        cost_usd=measured(
            amount(span.get("gen_ai.usage.cost", "operation.cost", "llm.cost.total"))
        ),
        tools=_tools(calls, ran),
        prompt=prompt,
        output_text=words,
        failed=failed,
        unknown_cache=tokens.unknown,
    )


def _tools(calls: Sequence[tuple[str, str]], ran: Sequence[Span]) -> tuple[RecordedTool, ...]:
    """The calls of its answer with the spans that ran them; where answers are not in the log, the
    spans alone."""
    if not calls:
        return tuple(_tool(_name(one), _called(one), one) for one in ran)
    by_id = {_called(one): one for one in ran}
    return tuple(_tool(name, identity, by_id.get(identity)) for name, identity in calls)


def _ran_after(spans: Sequence[Span]) -> dict[tuple[str, str], list[Span]]:
    """The tools that ran after each call, by its ids: before the next call of the same parent, or
    of the same trace where tools hang elsewhere."""
    by_parent: dict[tuple[str, str], list[Span]] = {}
    by_trace: dict[str, list[Span]] = {}
    for span in spans:
        if counts_as_request(span) and span.ended_s is not None:
            by_parent.setdefault((span.trace, span.parent), []).append(span)
            by_trace.setdefault(span.trace, []).append(span)
    for calls in (*by_parent.values(), *by_trace.values()):
        calls.sort(key=ended_s)
    found: dict[tuple[str, str], list[Span]] = {}
    for tool in spans:
        if not is_tool(tool) or tool.began_s is None:
            continue
        near = by_parent.get((tool.trace, tool.parent)) or by_trace.get(tool.trace, [])
        before = bisect_right(near, tool.began_s, key=ended_s)
        if before:
            last = near[before - 1]
            found.setdefault((last.trace, last.id), []).append(tool)
    return found


def _tool(name: str, identity: str, span: Span | None) -> RecordedTool:
    if span is None:
        return RecordedTool(name, identity)
    took = None
    if span.began_s is not None and span.ended_s is not None:
        took = max(0.0, span.ended_s - span.began_s)
    return RecordedTool(
        name,
        identity,
        began_s=measured(span.began_s),
        ended_s=measured(span.ended_s),
        own_s=derived(took),
        failed=span.failed,
    )


def _name(span: Span) -> str:
    named = text(span.get("gen_ai.tool.name", "tool.name", "ai.toolCall.name"))
    return named or span.name.removeprefix("execute_tool ")


def _called(span: Span) -> str:
    return text(span.get("gen_ai.tool.call.id", "tool_call.id", "ai.toolCall.id"))


def _note(spans: Sequence[Span], reports: dict[str, FileReport]) -> None:
    for span in spans:
        if is_call(span) and not counts_as_request(span):
            reports[span.file].duplicate("a call instrumented twice: the inner one counts")
        elif is_agent(span) and not counts_as_request(span):
            reports[span.file].skip("spans of agents, whose sums are not added")
