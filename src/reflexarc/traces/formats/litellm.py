"""LiteLLM: rows of its spend logs (JSON, JSON Lines, CSV) and its standard logging payload.

`cache_hit` tells of LiteLLM's own cache of answers: then no model was asked. What caches of
providers held is in the usage. One call that was bridged to another API is logged as two rows.
"""

from collections.abc import Sequence
from pathlib import Path

from reflexarc.traces.documents import tally
from reflexarc.traces.estimates import filled
from reflexarc.traces.formats.answered import Answered, answered_in
from reflexarc.traces.formats.asked import Asked, Sharing, asked_in, unpacked
from reflexarc.traces.formats.fields import first_amount, first_text, is_list, is_table
from reflexarc.traces.formats.logged_times import Times, times_of
from reflexarc.traces.formats.providers import maker, spoken_by
from reflexarc.traces.formats.rows import Row, first_row, rows
from reflexarc.traces.formats.token_names import Tokens, tokens_of
from reflexarc.traces.logs import Head
from reflexarc.traces.loose import Table, amount, table, text
from reflexarc.traces.models import bare, owner
from reflexarc.traces.requests import (
    ABSENT,
    FileReport,
    RecordedRequest,
    RecordedTool,
    measured,
)

COPY = "one call logged as several rows"
OWN_CACHE = "an answer from the gateway's own cache"
_SPEND = frozenset({"request_id", "spend", "call_type"})
_PAYLOAD = frozenset({"call_type", "startTime", "model"})
_MONEY = frozenset({"spend", "response_cost", "custom_llm_provider", "hidden_params"})
_NO_CALLS = ("/health", "health", "list_models")
_CALL_IDS = ("litellm_call_id", "call_id")
_DETAILS = ("cache_read_input_tokens", "cache_creation_input_tokens")


class LiteLlm:
    name = "litellm"

    def recognises(self, head: Head) -> bool:
        keys = first_row(head).keys()
        return keys >= _SPEND or (keys >= _PAYLOAD and bool(keys & _MONEY))

    def read(self, paths: Sequence[Path], reports: dict[Path, FileReport]) -> list[RecordedRequest]:
        sharing = Sharing()
        seen: set[tuple[str, bool]] = set()
        bridged: dict[tuple[str, float, float], list[tuple[str, Times]]] = {}
        found: list[RecordedRequest] = []
        for row in rows(paths, reports):
            fields = row.fields
            if not first_text(fields, "call_type", "model") or _is_no_call(fields):
                row.report.skip("a row that is no call of a model")
                continue
            if text(fields.get("cache_hit")).lower() == "true" or fields.get("cache_hit") is True:
                row.report.skip(OWN_CACHE)
                continue
            request, ids = _request(row, sharing)
            marks = {(one, request.failed) for one in ids if one}
            if marks & seen or _is_bridged(request, fields, bridged):
                row.report.duplicate(COPY)
                seen |= marks
                continue
            seen |= marks
            found.append(request)
        tally(found, reports)
        return found


def _is_no_call(fields: Table) -> bool:
    return text(fields.get("call_type")) in _NO_CALLS


def _request(row: Row, sharing: Sharing) -> tuple[RecordedRequest, list[str]]:
    """And the ids that tell it from others."""
    fields = row.fields
    metadata = table(unpacked(fields.get("metadata")))
    hidden = table(unpacked(fields.get("hidden_params")))
    answered = answered_in(fields.get("response"))
    asked = _asked(fields, sharing)
    tokens = _tokens(fields, metadata, hidden, answered)
    failed = _failed(fields, metadata) and not tokens.counts.output.value
    provider = first_text(fields, "custom_llm_provider") or text(hidden.get("custom_llm_provider"))
    model = first_text(fields, "model", "model_group") or answered.model
    times = _times(fields)
    own = first_text(fields, "request_id", "id")
    ids = [own, answered.id]
    ids += [first_text(holder, *_CALL_IDS) for holder in (fields, metadata, hidden)]
    request = RecordedRequest(
        id=own or answered.id or row.mark,
        session=_session(fields, metadata) or row.path.name.partition(".")[0],
        file=str(row.path),
        agent=first_text(fields, "agent_id"),
        model=bare(model),
        provider=maker(provider) if provider else owner(model) or spoken_by(model, asked.body, {}),
        service_tier=answered.tier,
        began_s=times.began_s,
        first_s=times.first_s,
        ended_s=times.ended_s,
        counts=filled(tokens.counts, asked.prompt, answered.said.written, failed=failed),
        cost_usd=measured(first_amount(fields, "response_cost", "spend") or None),
        tools=tuple(RecordedTool(call.name, call.id) for call in answered.said.calls),
        prompt=asked.prompt,
        output_text=answered.said.text,
        failed=failed,
        unknown_cache=tokens.unknown,
    )
    return request, ids


def _tokens(fields: Table, metadata: Table, hidden: Table, answered: Answered) -> Tokens:
    """The row's own sums with the details that stand elsewhere: older rows have the cached tokens
    beside the prompt, which shows where they are more than it."""
    held = {
        key: one
        for key in ("prompt_tokens", "completion_tokens", "total_tokens")
        if amount(one := fields.get(key)) is not None
    }
    usage: Table = {}
    for source in (metadata, hidden):
        usage = usage or table(unpacked(source.get("usage_object")))
    usage = usage or table(answered.body.get("usage"))
    more = table(unpacked(metadata.get("additional_usage_values")))
    top = {key: fields[key] for key in _DETAILS if key in fields}
    found = tokens_of({**held, **top, **more, **usage})
    return found if found.known else answered.tokens


def _asked(fields: Table, sharing: Sharing) -> Asked:
    """The whole body as the proxy had it, else the messages with the tools beside them."""
    whole = asked_in(fields.get("proxy_server_request"), sharing)
    if whole.prompt is not None:
        return whole
    messages = unpacked(fields.get("messages"))
    settings = table(unpacked(fields.get("model_parameters")))
    if not messages or not (is_list(messages) or isinstance(messages, str) or is_table(messages)):
        return Asked()
    return asked_in(messages, sharing, tools=settings.get("tools", [] if settings else None))


def _times(fields: Table) -> Times:
    names = ("startTime", "endTime", "completionStartTime")
    found = times_of({name: fields.get(name) for name in names})
    if fields.get("stream") is False:
        return Times(found.began_s, ABSENT, found.ended_s)
    return found


def _failed(fields: Table, metadata: Table) -> bool:
    said = first_text(fields, "status") or text(metadata.get("status"))
    return said.lower() in ("failure", "failed", "error") or bool(
        table(fields.get("error_information")).get("error_class")
    )


def _session(fields: Table, metadata: Table) -> str:
    inner = table(metadata.get("requester_metadata"))
    for holder in (fields, metadata, inner):
        found = first_text(holder, "session_id", "conversation_id")
        if found:
            return found
    return first_text(fields, "trace_id", "litellm_trace_id") or text(metadata.get("trace_id"))


def _is_bridged(
    request: RecordedRequest,
    fields: Table,
    known: dict[tuple[str, float, float], list[tuple[str, Times]]],
) -> bool:
    """Whether a row of the same session, with the same tokens and within the same time, is of the
    other API: that is one call, which ran through both."""
    counts = request.counts
    if counts.prompt.kind not in ("measured", "derived") or request.failed:
        return False
    key = (request.session, counts.prompt.value or 0.0, counts.output.value or 0.0)
    kind = "responses" if "responses" in text(fields.get("call_type")) else "others"
    times = Times(request.began_s, ABSENT, request.ended_s)
    same = known.setdefault(key, [])
    for at, (other, when) in enumerate(same):
        if other != kind and _overlap(when, times):
            del same[at]
            return True
    same.append((kind, times))
    return False


def _overlap(one: Times, other: Times) -> bool:
    began = (one.began_s.value, other.began_s.value)
    ended = (one.ended_s.value, other.ended_s.value)
    if began[0] is None or began[1] is None or ended[0] is None or ended[1] is None:
        return False
    return max(began[0], began[1]) < min(ended[0], ended[1])
