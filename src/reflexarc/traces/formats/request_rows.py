"""Rows of request logs brought into one shape: out of the envelopes of loggers, and the two halves
of a pair together where each is a row of its own."""

from collections.abc import Iterable, Iterator

import msgspec

from reflexarc.traces.formats.asked import body_of, dialect_of, unpacked
from reflexarc.traces.formats.fields import first_text
from reflexarc.traces.formats.rows import Row
from reflexarc.traces.loose import Table, table

_ENVELOPES = ("data", "payload", "attributes", "fields", "record", "extra", "event", "message")
_HALVES = ("request", "response", "error")
_KINDS = ("type", "event", "direction", "kind", "phase", "event_type")
_IDS = ("request_id", "requestId", "correlation_id", "call_id", "trace_id", "id", "span_id")
_BODIES = ("body", "payload", "data", "content", "json", "request", "response")
_TIMES = ("timestamp", "time", "ts", "created_at", "@timestamp")


def out_of_envelope(fields: Table) -> Table:
    """A row with what its logger put around it beside it."""
    if "request" in fields and fields.keys() & {"response", "error"}:
        return fields
    for name in _ENVELOPES:
        inner = table(unpacked(fields.get(name)))
        if "request" in inner and inner.keys() & {"response", "error"}:
            return {**{key: one for key, one in fields.items() if key != name}, **inner}
    return fields


def half_of(fields: Table) -> str:
    """ "request", "response" or "error" where a row is that half of a pair; else ""."""
    if not first_text(fields, *_IDS) or not any(fields.get(name) for name in _BODIES):
        return ""
    for name in _KINDS:
        said = first_text(fields, name).lower()
        for half in _HALVES:
            if said == half or said.endswith((f".{half}", f"_{half}", f"-{half}")):
                return half
    return ""


def asks_model(fields: Table) -> bool:
    """Whether a row is the first half of a pair, with a request to a model in it."""
    if half_of(fields) != "request":
        return False
    body = next((fields[key] for key in _BODIES if fields.get(key)), None)
    return bool(dialect_of(table(body_of(body))))


def brought_together(rows: Iterable[Row]) -> Iterator[Row]:
    """Each pair of halves as one row, where its second half stands; a request without any at the
    end."""
    waiting: dict[tuple[str, str], Row] = {}
    for row in rows:
        half = half_of(row.fields)
        key = (str(row.path), first_text(row.fields, *_IDS))
        if not half:
            yield msgspec.structs.replace(row, fields=out_of_envelope(row.fields))
        elif half == "request":
            before = waiting.pop(key, None)
            if before is not None:
                yield _whole(before, None)
            waiting[key] = row
        else:
            yield _whole(waiting.pop(key, None), row)
    for row in waiting.values():
        yield _whole(row, None)


def _whole(asked: Row | None, answered: Row | None) -> Row:
    row = answered or asked
    assert row is not None
    made: Table = {}
    for half, name, moment in (
        (asked, "request", "start_time"),
        (answered, "response", "end_time"),
    ):
        if half is None:
            continue
        rest = {key: one for key, one in half.fields.items() if key not in (*_BODIES, *_TIMES)}
        body = next((half.fields[key] for key in _BODIES if half.fields.get(key)), None)
        at = next((half.fields[key] for key in _TIMES if half.fields.get(key)), None)
        made.update({**rest, name: body, moment: at})
    if answered is not None and half_of(answered.fields) == "error":
        made["error"] = made.get("response") or True
    return msgspec.structs.replace(row, fields=made)
