"""Requests and responses as people log them: pairs under many names, answers alone, results of
batches, dumps of `{timestamp, input, output, session_id}`, HTTP archives. JSON Lines, JSON or CSV.

Bodies are read in the form of any API (`asked`, `answered`). The last to be tried: whatever has a
format of its own is read by that.
"""

from collections.abc import Sequence
from pathlib import Path

from reflexarc.traces.documents import tally
from reflexarc.traces.estimates import filled
from reflexarc.traces.formats.answered import Answered, answered_in, cost_in
from reflexarc.traces.formats.asked import Asked, Sharing, asked_in, unpacked
from reflexarc.traces.formats.fields import first_amount, first_text, is_list
from reflexarc.traces.formats.logged_times import Times, times_of
from reflexarc.traces.formats.openings import opening_of
from reflexarc.traces.formats.providers import maker, spoken_by
from reflexarc.traces.formats.request_rows import asks_model, brought_together, out_of_envelope
from reflexarc.traces.formats.rows import Keeping, Row, first_row, rows
from reflexarc.traces.formats.token_names import Tokens, tokens_of
from reflexarc.traces.logs import Head
from reflexarc.traces.loose import Table, amount, table, tables, text
from reflexarc.traces.models import bare, owner
from reflexarc.traces.requests import (
    FileReport,
    RecordedRequest,
    RecordedTool,
    estimated,
    measured,
)

COPY = "a response that stands elsewhere too"
NO_REQUEST = "a row without request and response"
_LISTS = ("data", "rows", "results", "items", "logs", "records", "entries", "requests", "log")

_REQUEST = (
    "request", "req", "request_body", "requestBody", "raw_request", "llm_request", "input",
    "request_data", "prompt", "messages", "params", "kwargs", "llm_input", "body",
)  # fmt: skip
_RESPONSE = (
    "response", "resp", "response_body", "responseBody", "raw_response", "llm_response", "output",
    "response_data", "completion", "result", "reply", "answer", "llm_output",
)  # fmt: skip
_STRICT = (
    ("request", "response"), ("req", "resp"), ("request_body", "response_body"),
    ("requestBody", "responseBody"), ("raw_request", "raw_response"),
    ("llm_request", "llm_response"), ("request_data", "response_data"), ("messages", "response"),
    ("prompt", "response"), ("params", "response"), ("kwargs", "response"), ("body", "response"),
    ("request", "output"), ("request", "result"), ("prompt", "completion"), ("input", "response"),
    ("llm_input", "llm_output"), ("messages", "output"), ("messages", "completion"),
    ("request", "error"),
)  # fmt: skip
_OBJECTS = frozenset({"chat.completion", "response", "text_completion"})
_DRAWN, _MIXED = 20, 12
_SESSIONS = (
    "session_id", "sessionId", "conversation_id", "conversationId", "thread_id", "threadId",
    "chat_id", "trace_id", "traceId", "run_id", "session", "conversation",
)  # fmt: skip


class RequestLog:
    name = "request-logs"

    def recognises(self, head: Head) -> bool:
        row = first_row(head, _LISTS)
        if row.keys() == {"log"}:
            return b'"startedDateTime"' in head.data
        if not row or (head.first is None and not _says_model(head.data)):
            return False
        row = out_of_envelope(row)
        is_whole = _is_dump(row) or _is_pair(row) or _is_answer(row) or _is_request(row)
        return is_whole or asks_model(row)

    def read(self, paths: Sequence[Path], reports: dict[Path, FileReport]) -> list[RecordedRequest]:
        sharing, keeping = Sharing(), Keeping()
        for row in brought_together(rows(paths, reports, lists=_LISTS)):
            request = _request(row, sharing)
            if request is None:
                row.report.skip(NO_REQUEST)
            else:
                keeping.keep(request, row.report, COPY)
        tally(keeping.requests, reports)
        return keeping.requests


def _says_model(data: bytes) -> bool:
    return b"model" in data or b"session" in data or b"," in data.split(b"\n", 1)[0]


def _is_dump(row: Table) -> bool:
    if not {"input", "output"} <= row.keys():
        return False
    is_chat = any("role" in one for one in tables(row["input"])) or "choices" in table(
        row["output"]
    )
    return is_chat or bool(row.keys() & {"timestamp", "session_id", "created_at", "model", "usage"})


def _is_pair(row: Table) -> bool:
    return any(one in row and other in row for one, other in _STRICT) or (
        "custom_id" in row and bool(row.keys() & {"response", "result"})
    )


def _is_answer(row: Table) -> bool:
    if text(row.get("object")) in _OBJECTS:
        return True
    return row.get("type") == "message" and "usage" in row and "content" in row


def _is_request(row: Table) -> bool:
    return "model" in row and is_list(row.get("messages", row.get("contents")))


def _request(row: Row, sharing: Sharing) -> RecordedRequest | None:
    fields = row.fields
    alone = _is_answer(fields)
    answered = answered_in(fields if alone else _value(fields, _RESPONSE))
    asked = _asked(fields, sharing, alone=alone)
    if asked.prompt is None and not asked.model and not answered.tells:
        return None
    if "startedDateTime" in fields and not asked.model and not answered.tokens.known:
        return None
    told = _tokens(answered, fields)
    failed = answered.failed or _failed(fields)
    named = asked.model or answered.model or first_text(fields, "model", "model_name")
    times = _times(row)
    cost = cost_in(answered.body)
    if cost is None:
        cost = first_amount(fields, "cost", "cost_usd", "response_cost", "total_cost", "spend")
    return RecordedRequest(
        id=_identity(row, answered, times.began_s.value),
        session=_session(row, asked, answered) or _opening(row, asked),
        file=str(row.path),
        agent=first_text(fields, "agent", "agent_id", "agent_name"),
        model=bare(answered.model or named),
        provider=_provider(fields, named, asked, answered),
        service_tier=answered.tier,
        began_s=times.began_s if times != Times() else estimated(answered.created_s),
        first_s=times.first_s,
        ended_s=times.ended_s,
        counts=filled(told.counts, asked.prompt, answered.said.written, failed=failed),
        cost_usd=measured(cost),
        tools=tuple(RecordedTool(call.name, call.id) for call in answered.said.calls),
        prompt=asked.prompt,
        output_text=answered.said.text,
        failed=failed,
        unknown_cache=told.unknown,
    )  # fmt: skip


def _times(row: Row) -> Times:
    """Of the row; where each half of a pair has its own, of these."""
    asked, answered = (table(row.fields.get(name)) for name in ("request", "response"))
    began, ended = asked.get("timestamp"), answered.get("timestamp")
    if began is not None:
        return times_of({"start_time": began, "end_time": ended})
    return times_of(row.fields, row.outer)


def _asked(fields: Table, sharing: Sharing, *, alone: bool) -> Asked:
    if alone:
        return asked_in(fields.get("request"), sharing)
    if _is_request(fields):
        return asked_in(fields, sharing)
    # what stands beside a list of messages belongs to it
    found = asked_in(_value(fields, _REQUEST), sharing, tools=fields.get("tools"))
    return found if found.body else Asked(found.prompt, {"model": fields.get("model")})


def _value(fields: Table, names: tuple[str, ...]) -> object:
    for name in names:
        found = fields.get(name)
        if found is not None and found != "" and found != {}:
            return _of_archive(found)
    return None


def _of_archive(value: object) -> object:
    """The text in an HTTP archive's request or response."""
    inner = table(value)
    for key in ("postData", "content"):
        held = table(inner.get(key))
        if isinstance(held.get("text"), str):
            return held["text"]
    return value


def _tokens(answered: Answered, fields: Table) -> Tokens:
    if answered.tokens.known:
        return answered.tokens
    for key in ("usage", "token_usage", "tokens"):
        found = tokens_of(unpacked(fields.get(key)))
        if found.known:
            return found
    flat = {key: one for key, one in fields.items() if "token" in key.lower()}
    return tokens_of(flat)


def _failed(fields: Table) -> bool:
    response = table(fields.get("response"))
    for holder in (fields, response, table(fields.get("result"))):
        for key in ("status_code", "status", "response_status", "http_status"):
            code = amount(holder.get(key))
            if code is not None and code >= 400:
                return True
            if text(holder.get(key)) in ("error", "failed", "failure"):
                return True
        if holder.get("error") or text(holder.get("type")) in ("errored", "canceled", "expired"):
            return True
    return False


def _provider(fields: Table, named: str, asked: Asked, answered: Answered) -> str:
    return (
        maker(first_text(fields, "provider"))
        or owner(named)
        or owner(answered.model)
        or spoken_by(answered.model or named, asked.body, answered.body)
    )


def _opening(row: Row, asked: Asked) -> str:
    """Without a name, requests that begin alike are of one conversation."""
    return row.path.name.partition(".")[0] if asked.prompt is None else opening_of(asked.prompt)


def _identity(row: Row, answered: Answered, began_s: float | None) -> str:
    """The response's own id; with when it was where that is short: servers of one's own count from
    one again, providers give an id once."""
    if answered.id:
        if _is_given_once(answered.id):
            return answered.id
        when = answered.created_s if answered.created_s is not None else began_s
        return answered.id if when is None else f"{answered.id}@{when}"
    own = first_text(row.fields, "request_id", "requestId", "id", "custom_id", "uuid")
    return f"{own} {row.mark}"


def _is_given_once(identity: str) -> bool:
    """Whether an id is long enough, and mixed enough, to have been drawn."""
    return len(identity) >= _DRAWN and len(set(identity)) >= _MIXED


def _session(row: Row, asked: Asked, answered: Answered) -> str:
    for holder in (row.fields, table(row.fields.get("metadata")), row.outer):
        found = first_text(holder, *_SESSIONS)
        if found:
            return found
    for body in (asked.body, answered.body):
        metadata = table(body.get("metadata"))
        found = first_text(metadata, *_SESSIONS) or _user_session(text(metadata.get("user_id")))
        found = found or first_text(body, "session_id", "conversation", "prompt_cache_key")
        if found:
            return found
    return ""


def _user_session(user: str) -> str:
    """A session inside a user's id, as some command-line agents write it."""
    return user.rpartition("session_")[2] if "session_" in user else ""
