"""Which spans are calls of models, which of them count, and what they used. A call may be
instrumented twice, agents hold sums. Not for texts or times."""

from collections.abc import Iterator

from reflexarc.traces.formats.otlp_spans import MAX_DEPTH, Span
from reflexarc.traces.formats.token_names import Tokens, tokens_of
from reflexarc.traces.loose import text

_CALLS = frozenset(
    {"chat", "generate_content", "text_completion", "completion", "embeddings", "message"}
)
_AGENTS = frozenset({"invoke_agent", "create_agent", "invoke_workflow", "agent"})
_KINDS = frozenset({"LLM", "EMBEDDING"})
USED = ("gen_ai.usage.", "llm.token_count.", "llm.usage.", "ai.usage.")
"""What tells of tokens begins so, in the order of whom to believe."""


def tokens_of_span(span: Span) -> Tokens:
    for start in USED:
        told = {
            name.removeprefix(start): value
            for name, value in span.attributes.items()
            if name.startswith(start)
        }
        found = tokens_of(told, "inclusive")
        if found.known:
            return found
    return Tokens()


def billed_under(call: Span) -> Span | None:
    """Of the calls under one, the one whose tokens that one tells: of attempts, the last that did
    not fail. None where several tell tokens of their own."""
    below = [one for one in _instrumented_below(call) if counts_as_request(one)]
    telling = [one for one in below if tokens_of_span(one).known]
    if len(telling) > 1:
        return None
    fine = telling or [one for one in below if not one.failed] or below
    return max(fine, key=ended_s, default=None)


def counts_as_request(span: Span) -> bool:
    if is_call(span):
        return not any(is_call(one) for one in _instrumented_below(span)) and not _is_sum(span)
    # An agent's own usage counts where nothing below tells any.
    return (
        is_agent(span)
        and tokens_of_span(span).known
        and not any(
            is_call(one) or (is_agent(one) and tokens_of_span(one).known) for one in span.below()
        )
    )


def _instrumented_below(span: Span, depth: int = 0) -> Iterator[Span]:
    """What stands under a call for the same call: not what a tool or an agent that ran within it
    asked, which are calls of their own."""
    if depth == MAX_DEPTH:
        return
    for child in span.children:
        if not is_tool(child) and not is_agent(child):
            yield child
            yield from _instrumented_below(child, depth + 1)


def _is_sum(span: Span) -> bool:
    """Whether a call holds the tokens of the calls under it, made by tools or agents."""
    below = [tokens_of_span(one).counts for one in span.below() if is_call(one)]
    own = tokens_of_span(span).counts
    return bool(below) and (own.prompt.value or 0, own.output.value or 0) == (
        sum(one.prompt.value or 0 for one in below),
        sum(one.output.value or 0 for one in below),
    )


def is_call(span: Span) -> bool:
    kind = text(span.get("openinference.span.kind")).upper()
    if kind:
        return kind in _KINDS
    operation = text(span.get("gen_ai.operation.name"))
    if operation:
        return operation in _CALLS
    if is_agent(span) or is_tool(span):
        return False
    # Before there was a name for it: whatever asks a model and tells what that used.
    asks = span.get("gen_ai.request.model", "gen_ai.response.model", "llm.request.type")
    return asks is not None and tokens_of_span(span).known


def is_agent(span: Span) -> bool:
    operation = text(span.get("gen_ai.operation.name"))
    return operation in _AGENTS or text(span.get("openinference.span.kind")).upper() == "AGENT"


def is_tool(span: Span) -> bool:
    kind = text(span.get("openinference.span.kind", "traceloop.span.kind")).upper()
    operation = text(span.get("gen_ai.operation.name", "ai.operationId"))
    return operation in ("execute_tool", "ai.toolCall") or kind == "TOOL"


def ended_s(span: Span) -> float:
    """For putting spans in order: those of no known end are first."""
    return span.ended_s or 0.0
