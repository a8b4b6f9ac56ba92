"""Requests to providers' APIs and their answers, as people keep them: a pair of bodies a line, in
any of the usual wrappings; answers alone; results of batches. OpenAI's chat and responses,
Anthropic's messages, Gemini's content.
"""

from collections.abc import Sequence
from pathlib import Path

import xxhash

from reflexarc.steps.errors import InputError
from reflexarc.steps.prompt import Piece, Prompt
from reflexarc.traces.documents import Document, documents, tally
from reflexarc.traces.estimates import output_tokens, prompt_tokens
from reflexarc.traces.formats.provider_bodies import (
    answer_of,
    dialect_of,
    pair_of,
    session_of,
    usage_of,
)
from reflexarc.traces.logs import Head
from reflexarc.traces.loose import Table, amount, encoded, moment, table, text
from reflexarc.traces.models import bare, owner
from reflexarc.traces.peek import top_of
from reflexarc.traces.requests import (
    ABSENT,
    Counts,
    Figure,
    FileReport,
    RecordedRequest,
    RecordedTool,
    derived,
    measured,
)
from reflexarc.wire.json import split_object
from reflexarc.wire.pieces import pieces_of

_PAIRS = (
    ("request", "response"), ("request_body", "response_body"), ("req", "resp"), ("req", "res"),
    ("body", "response"), ("input", "response"), ("params", "result"), ("prompt", "completion"),
)  # fmt: skip
_PROVIDERS = {"messages": "anthropic", "responses": "openai", "gemini": "gemini"}
_BEGAN = (
    "started_at", "start_time", "startTime", "request_time", "request_created_at", "timestamp",
    "time", "ts", "created_at", "date",
)  # fmt: skip
_ENDED = ("ended_at", "end_time", "endTime", "completed_at", "response_created_at")
_TOOK_MS = ("duration_ms", "latency_ms", "response_time_ms", "elapsed_ms", "request_duration_ms")
_FIRST_MS = ("ttft_ms", "time_to_first_token_ms", "first_token_ms")
_COST = ("cost_usd", "total_cost", "cost", "response_cost")


class ProviderLogs:
    name = "provider-logs"

    def recognises(self, head: Head) -> bool:
        keys = top_of(head).keys
        fields = table(head.first)
        if fields:
            pair = pair_of(fields)
            return pair is not None and dialect_of(pair) is not None
        return any(set(pair) <= keys for pair in _PAIRS)

    def read(self, paths: Sequence[Path], reports: dict[Path, FileReport]) -> list[RecordedRequest]:
        shared: dict[bytes, Piece] = {}
        answered: set[str] = set()
        found: list[RecordedRequest] = []
        for document in documents(paths, reports):
            request = _request(document, shared)
            if request is None:
                continue
            if request.id in answered:
                document.report.duplicate("the same answer's id")
                continue
            answered.add(request.id)
            found.append(request)
        tally(found, reports)
        return found


def _request(document: Document, shared: dict[bytes, Piece]) -> RecordedRequest | None:
    fields = table(document.value)
    pair = pair_of(fields)
    dialect = None if pair is None else dialect_of(pair)
    if pair is None or dialect is None:
        document.report.skip("a line without a request or an answer")
        return None
    prompt = _prompt(dialect, pair.request, shared)
    usage = usage_of(dialect, pair)
    answer = answer_of(dialect, pair)
    model = text(pair.answer.get("model")) or text(pair.request.get("model"))
    began, ended = _times(fields)
    failed = pair.status is not None and pair.status >= 400
    counts = Counts()
    if usage is not None:
        counts = Counts(
            prompt=derived(usage.input) if dialect == "messages" else measured(usage.input),
            cache_read=measured(usage.cache_read) if usage.told_read else ABSENT,
            cache_write=measured(usage.cache_write) if usage.told_write else ABSENT,
            cache_write_1h=measured(usage.cache_write_1h) if usage.told_write else ABSENT,
            output=measured(usage.output),
            reasoning=measured(usage.reasoning) if usage.reasoning else ABSENT,
        )
    elif prompt is not None and not failed:
        written = [call.name + call.raw for call in answer.calls] if answer else []
        counts = Counts(
            prompt=prompt_tokens(prompt),
            output=output_tokens(answer.content, *written) if answer else ABSENT,
        )
    return RecordedRequest(
        id=text(pair.answer.get("id")) or text(pair.answer.get("responseId")) or document.digest,
        session=session_of(fields, pair) or _opening(prompt, document),
        file=str(document.path),
        model=bare(model),
        provider=owner(model) or _provider(dialect, model),
        service_tier=text(pair.answer.get("service_tier")),
        began_s=began,
        first_s=_first(fields, began),
        ended_s=ended,
        counts=counts,
        cost_usd=measured(_named(fields, _COST)),
        tools=tuple(RecordedTool(call.name, call.id) for call in answer.calls) if answer else (),
        prompt=prompt,
        output_text=answer.content if answer else "",
        failed=failed,
    )


def _prompt(dialect: str, request: Table, shared: dict[bytes, Piece]) -> Prompt | None:
    if not request:
        return None
    try:
        members = split_object(encoded(request))
    except InputError:
        return None
    pieces = pieces_of(dialect, members)
    return Prompt(tuple(_same(shared, piece) for piece in pieces)) if pieces else None


def _same(shared: dict[bytes, Piece], piece: Piece) -> Piece:
    known = shared.get(piece.raw)
    if known is not None and known == piece:
        return known
    shared[piece.raw] = piece
    return piece


def _provider(dialect: str, model: str) -> str:
    if dialect == "chat":  # half the world speaks it
        return "openai" if model.startswith(("gpt-", "o1", "o3", "o4", "chatgpt-")) else ""
    return _PROVIDERS[dialect]


def _times(fields: Table) -> tuple[Figure, Figure]:
    began = _moment(fields, _BEGAN)
    ended = _moment(fields, _ENDED)
    took_ms = _named(fields, _TOOK_MS)
    if began is not None and ended is None and took_ms is not None:
        return measured(began), derived(began + took_ms / 1e3)
    return measured(began), measured(ended)


def _first(fields: Table, began: Figure) -> Figure:
    first_ms = _named(fields, _FIRST_MS)
    return (
        ABSENT if first_ms is None or began.value is None else derived(began.value + first_ms / 1e3)
    )


def _moment(fields: Table, names: tuple[str, ...]) -> float | None:
    found = (moment(fields.get(name)) for name in names)
    return next((one for one in found if one is not None), None)


def _named(fields: Table, names: tuple[str, ...]) -> float | None:
    found = (amount(fields.get(name)) for name in names)
    return next((one for one in found if one is not None), None)


def _opening(prompt: Prompt | None, document: Document) -> str:
    """Without a name, requests that begin alike are of one conversation."""
    if prompt is None:
        return document.path.stem
    return opening_of(prompt)


def opening_of(prompt: Prompt) -> str:
    """Stands for all prompts that begin alike: their first instructions, their first message."""
    first = [piece.raw for piece in prompt.pieces if piece.kind == "system"][:1]
    first += [piece.raw for piece in prompt.pieces if piece.kind == "message"][:1]
    return "~" + xxhash.xxh3_64_hexdigest(b"\0".join(first))
