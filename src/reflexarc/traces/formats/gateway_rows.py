"""Exports of Helicone and Portkey: a row a request, as both write them (JSON, JSON Lines, CSV).

What is not among the columns that were exported is absent, not zero. Portkey's cost has no unit in
the export and is not taken.
"""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from reflexarc.traces.documents import tally
from reflexarc.traces.estimates import filled
from reflexarc.traces.formats.answered import Answered, answered_in
from reflexarc.traces.formats.asked import Sharing, asked_in, unpacked
from reflexarc.traces.formats.fields import first_amount, first_text
from reflexarc.traces.formats.logged_times import times_of
from reflexarc.traces.formats.providers import maker, spoken_by
from reflexarc.traces.formats.rows import Keeping, Row, first_row, rows
from reflexarc.traces.formats.token_names import Tokens, tokens_of
from reflexarc.traces.logs import Head
from reflexarc.traces.loose import Table, number, table, text
from reflexarc.traces.models import bare, owner
from reflexarc.traces.requests import FileReport, RecordedRequest, RecordedTool, measured

COPY = "the same request"
OWN_CACHE = "an answer from the gateway's own cache"
_NO_CACHE = frozenset(
    {"", "false", "miss", "cache miss", "disabled", "cache disabled", "none", "null", "0"}
    | {"00000000-0000-0000-0000-000000000000"}
)
_CACHES = ("cache_hit", "cache_reference_id", "cache_status", "is_cached")
_SESSION = (
    "Helicone-Session-Id", "helicone-session-id", "session_id", "sessionId", "_session_id",
    "conversation_id",
)  # fmt: skip


class _Names(msgspec.Struct, frozen=True):
    """Under which names a gateway keeps what is told of a request."""

    id: tuple[str, ...]
    request: tuple[str, ...]
    response: tuple[str, ...]
    model: tuple[str, ...]
    provider: tuple[str, ...]
    status: tuple[str, ...]
    tags: tuple[str, ...]
    cost: tuple[str, ...]
    tokens: dict[str, tuple[str, ...]]


_HELICONE = _Names(
    id=("request_id",),
    request=("request_body",),
    response=("response_body",),
    model=("response_model", "request_model", "model", "model_override"),
    provider=("provider",),
    status=("response_status", "status"),
    tags=("request_properties", "properties"),
    cost=("cost", "cost_usd", "costUSD"),
    tokens={},
)
_PORTKEY = _Names(
    id=("id", "request_id"),
    request=("request", "request_body"),
    response=("response", "response_body"),
    model=("ai_model", "model"),
    provider=("ai_org", "ai_provider", "provider"),
    status=("response_status_code", "status"),
    tags=("metadata",),
    cost=(),
    tokens={
        "prompt_tokens": ("prompt_tokens", "req_units", "request_tokens"),
        "completion_tokens": ("completion_tokens", "res_units", "response_tokens"),
        "total_tokens": ("total_tokens", "total_units"),
    },
)


class Helicone:
    name = "helicone"

    def recognises(self, head: Head) -> bool:
        keys = first_row(head).keys()
        return "request_id" in keys and bool(
            keys & {"request_created_at", "response_created_at", "request_properties"}
        )

    def read(self, paths: Sequence[Path], reports: dict[Path, FileReport]) -> list[RecordedRequest]:
        return _read(paths, reports, _HELICONE)


class Portkey:
    name = "portkey"

    def recognises(self, head: Head) -> bool:
        keys = first_row(head).keys()
        return bool(keys & {"ai_org", "ai_model", "ai_provider"}) and bool(
            keys & {"trace_id", "id", "response_status_code", "created_at", "response_time"}
        )

    def read(self, paths: Sequence[Path], reports: dict[Path, FileReport]) -> list[RecordedRequest]:
        return _read(paths, reports, _PORTKEY)


def _read(
    paths: Sequence[Path], reports: dict[Path, FileReport], names: _Names
) -> list[RecordedRequest]:
    sharing, keeping = Sharing(), Keeping()
    for row in rows(paths, reports):
        if _is_cached(row.fields):
            row.report.skip(OWN_CACHE)
        elif not first_text(row.fields, *names.id, *names.model):
            row.report.skip("a row that tells of no request")
        else:
            keeping.keep(_request(row, names, sharing), row.report, COPY)
    tally(keeping.requests, reports)
    return keeping.requests


def _is_cached(fields: Table) -> bool:
    return any(
        fields.get(name) is True or text(fields.get(name)).lower() not in _NO_CACHE
        for name in _CACHES
    )


def _request(row: Row, names: _Names, sharing: Sharing) -> RecordedRequest:
    fields = row.fields
    answered = answered_in(_first(fields, names.response))
    asked = asked_in(_first(fields, names.request), sharing)
    provider = first_text(fields, *names.provider)
    tokens = _tokens(fields, names, provider, answered)
    failed = (_failed(fields, names) or answered.failed) and not tokens.counts.output.value
    model = first_text(fields, *names.model) or answered.model or asked.model
    times = times_of(_timed(fields))
    tags = table(unpacked(_first(fields, names.tags)))
    session = first_text(tags, *_SESSION) or first_text(fields, *_SESSION, "trace_id")
    return RecordedRequest(
        id=first_text(fields, *names.id) or row.mark,
        session=session or row.path.name.partition(".")[0],
        file=str(row.path),
        agent=first_text(tags, "agent", "agent_name", "Helicone-Session-Name"),
        model=bare(model),
        provider=maker(provider) if provider else owner(model) or spoken_by(model, asked.body, {}),
        service_tier=answered.tier,
        began_s=times.began_s,
        first_s=times.first_s,
        ended_s=times.ended_s,
        counts=filled(tokens.counts, asked.prompt, answered.said.written, failed=failed),
        cost_usd=measured(first_amount(fields, *names.cost) or None),
        tools=tuple(RecordedTool(call.name, call.id) for call in answered.said.calls),
        prompt=asked.prompt,
        output_text=answered.said.text,
        failed=failed,
        unknown_cache=tokens.unknown,
    )


def _first(fields: Table, names: tuple[str, ...]) -> object:
    return next((fields[name] for name in names if fields.get(name)), None)


def _tokens(fields: Table, names: _Names, provider: str, answered: Answered) -> Tokens:
    """The provider's own usage, else the columns, in which cached tokens are as the provider has
    them: beside Anthropic's in some versions, which the total tells."""
    if answered.tokens.known:
        return answered.tokens
    told = {key: one for key, one in fields.items() if key.endswith("_tokens")}
    for name, columns in names.tokens.items():
        found = first_amount(fields, *columns)
        if found is not None:
            told[name] = found
    usual = None if "anthropic" in provider.lower() else "inclusive"
    return tokens_of(told, usual)


def _failed(fields: Table, names: _Names) -> bool:
    """Also where no answer came at all, which Helicone writes as a negative status."""
    status = next((one for name in names.status if (one := number(fields.get(name)))), None)
    return status is not None and not 200 <= status < 400


def _timed(fields: Table) -> Table:
    """With the units that the gateways' columns have: milliseconds."""
    found = {key: one for key, one in fields.items() if isinstance(one, str | int | float)}
    for name in ("response_time", "time_to_first_token", "latency"):
        if name in found:
            found[f"{name}_ms"] = found.pop(name)
    if "delay_ms" not in found and "delay" in found:
        found["delay_ms"] = found.pop("delay")
    return found
