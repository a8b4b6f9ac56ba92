"""Spans of OpenTelemetry's JSON, flat: their attributes as plain values, their tree by ids."""

import base64
import binascii
import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from reflexarc.traces.documents import Document
from reflexarc.traces.loose import Table, decoded, listed, moment, table, tables, text

_HEX = re.compile(r"[0-9a-fA-F]{16}|[0-9a-fA-F]{32}")
MAX_DEPTH = 64
"""Spans inside one another, and values inside one another, that are looked through."""

_NAME = 256
"""What is longer is a text."""


class Span(msgspec.Struct):
    """`failed`: its status is an error. `more` are attributes of events that tell of it."""

    trace: str
    id: str
    parent: str
    name: str
    file: str
    began_s: float | None
    ended_s: float | None
    attributes: Table
    failed: bool
    more: list[Table] = []
    children: "list[Span]" = []

    def get(self, *names: str) -> Any:
        """The first of these attributes that there is."""
        for name in names:
            if (found := self.attributes.get(name)) is not None:
                return found
        return None

    def forget_texts(self) -> None:
        """Of a span that was made use of: numbers and names stay. Prompts share their pieces, and
        the same texts in every span would be most of the memory."""
        self.attributes = {
            name: value
            for name, value in self.attributes.items()
            if isinstance(value, int | float) or (isinstance(value, str) and len(value) < _NAME)
        }
        self.more = []

    def below(self, depth: int = 0) -> "Iterator[Span]":
        """All spans under this one."""
        if depth < MAX_DEPTH:
            for child in self.children:
                yield child
                yield from child.below(depth + 1)


def spans_of(documents: Iterable[Document]) -> list[Span]:
    """Every span once, with its children, and what log records tell of them."""
    found: dict[tuple[str, str], Span] = {}
    records: list[tuple[str, str, Table, Document]] = []
    for document in documents:
        for span in _spans(document):
            if (span.trace, span.id) in found:
                document.report.duplicate("the same span")
                continue
            found[span.trace, span.id] = span
        records += _records(document)
    for trace, id, attributes, document in records:
        told = found.get((trace, id))
        if told is None:
            # An event without its span is all that there is of a request.
            told = found[trace, id] = Span(
                trace, id, "", "", str(document.path), None,
                moment(attributes.get("_observed")), {}, False,
            )  # fmt: skip
        told.more.append(attributes)
        for name, value in attributes.items():
            told.attributes.setdefault(name, value)
    spans = list(found.values())
    for span in spans:
        parent = found.get((span.trace, span.parent))
        if parent is not None and parent is not span:
            parent.children.append(span)
    return spans


def is_flat(fields: Table) -> bool:
    """Whether it is a span by itself, as SDKs' own exporters and tables of spans have them."""
    if "context.trace_id" in fields and "context.span_id" in fields:
        return True
    context = table(fields.get("context"))
    has_id = bool(_named(context, "trace_id", "traceId") or _named(fields, "trace_id", "traceId"))
    return has_id and "name" in fields and isinstance(fields.get("attributes"), dict | list)


def _named(fields: Table, *names: str) -> Any:
    return next((fields[name] for name in names if fields.get(name) is not None), None)


def _of_columns(fields: Table) -> Table:
    """A row of a table of spans, whose columns are named by where a value stood, as a span."""
    found = {name: value for name, value in fields.items() if "." not in name}
    held: Table = {"openinference.span.kind": fields.get("span_kind")}
    for name, value in fields.items():
        if name.startswith("attributes.") and value is not None:
            held[name.removeprefix("attributes.")] = value
    ids = {name: fields.get(f"context.{name}") for name in ("trace_id", "span_id")}
    return {**found, "context": ids, "attributes": held}


def _flat_span(fields: Table, document: Document) -> Span:
    if "context.trace_id" in fields:
        fields = _of_columns(fields)
    context = table(fields.get("context")) or fields
    status = fields.get("status", fields.get("status_code"))
    code = table(status).get("status_code", table(status).get("code", status))
    return Span(
        trace=_id(_named(context, "trace_id", "traceId")),
        id=_id(_named(context, "span_id", "spanId")),
        parent=_id(_named(fields, "parent_id", "parentId", "parent_span_id", "parentSpanId")),
        name=text(fields.get("name")),
        file=str(document.path),
        began_s=moment(_named(fields, "start_time", "startTime", "startTimeUnixNano")),
        ended_s=moment(_named(fields, "end_time", "endTime", "endTimeUnixNano")),
        attributes=_dotted(attributes_of(fields.get("attributes"))),
        failed=text(code).upper() in ("ERROR", "2", "STATUS_CODE_ERROR"),
        more=_events(fields),
    )


def _dotted(attributes: Table, before: str = "", depth: int = 0) -> Table:
    """Names as spans have them, where an exporter has made a tree of them."""
    found: Table = {}
    for name, value in attributes.items():
        inner = table(value)
        if inner and depth < 8:
            found.update(_dotted(inner, f"{before}{name}.", depth + 1))
        found[before + name] = value
    return found


def _events(fields: Table) -> list[Table]:
    return [
        {"event.name": text(event.get("name")), **of}
        for event in tables(fields.get("events"))
        if (of := attributes_of(event.get("attributes")))
    ]


def _spans(document: Document) -> Iterator[Span]:
    for one in [table(document.value), *tables(document.value)]:
        if is_flat(one):
            yield _flat_span(one, document)
    top = table(document.value)
    for resource in tables(top.get("resourceSpans")):
        scopes = resource.get("scopeSpans") or resource.get("instrumentationLibrarySpans")
        for scope in tables(scopes):
            for given in tables(scope.get("spans")):
                status = table(given.get("status"))
                yield Span(
                    trace=_id(given.get("traceId")),
                    id=_id(given.get("spanId")),
                    parent=_id(given.get("parentSpanId")),
                    name=text(given.get("name")),
                    file=str(document.path),
                    began_s=moment(given.get("startTimeUnixNano")),
                    ended_s=moment(given.get("endTimeUnixNano")),
                    attributes=attributes_of(given.get("attributes")),
                    failed=status.get("code") in (2, "STATUS_CODE_ERROR", "2"),
                    more=_events(given),
                )


def _records(document: Document) -> list[tuple[str, str, Table, Document]]:
    """Log records of GenAI events, by the span that they belong to."""
    found: list[tuple[str, str, Table, Document]] = []
    for resource in tables(table(document.value).get("resourceLogs")):
        for scope in tables(resource.get("scopeLogs")):
            for given in tables(scope.get("logRecords")):
                attributes = attributes_of(given.get("attributes"))
                name = text(given.get("eventName")) or text(attributes.get("event.name"))
                if not name.startswith("gen_ai."):
                    document.report.skip("log records of other events")
                    continue
                body = _value(given.get("body"))
                attributes = {**table(body), **attributes}
                attributes["event.name"] = name
                attributes["_observed"] = given.get("timeUnixNano")
                span = _id(given.get("spanId")) or f"{document.digest}:{len(found)}"
                found.append((_id(given.get("traceId")), span, attributes, document))
    return found


def attributes_of(given: object) -> Table:
    """As plain values: of a list of keys and values, or of an object that some exporters write."""
    if fields := table(given):
        return {name: _value(value) for name, value in fields.items()}
    return {text(one.get("key")): _value(one.get("value")) for one in tables(given)}


def _value(given: Any, depth: int = 0) -> Any:
    fields = table(given)
    if not fields or depth > MAX_DEPTH:
        return given
    for name in ("stringValue", "intValue", "doubleValue", "boolValue", "bytesValue"):
        if name in fields:
            return fields[name]
    if "arrayValue" in fields:
        inner = table(fields["arrayValue"]).get("values")
        return [_value(one, depth + 1) for one in listed(inner)]
    if "kvlistValue" in fields:
        inner = table(fields["kvlistValue"]).get("values")
        return {text(one.get("key")): _value(one.get("value"), depth + 1) for one in tables(inner)}
    return {name: _value(value, depth + 1) for name, value in fields.items()}


def _id(given: object) -> str:
    """In hexadecimal: some writers leave it in base64."""
    shown = text(given).removeprefix("0x")
    if not shown or _HEX.fullmatch(shown):
        return shown.lower()
    try:
        return base64.b64decode(shown, validate=True).hex()
    except (binascii.Error, ValueError):
        return shown


def structured(value: Any) -> Any:
    """A value that is JSON as text on spans and structured on events."""
    if not isinstance(value, str):
        return value
    try:
        return decoded(value)
    except ValueError:
        return value


def unflattened(attributes: Table, prefix: str) -> list[Any]:
    """`llm.input_messages.0.message.role` and the like as a list; numbers sort as numbers."""
    root: dict[str, Any] = {}
    for name, value in attributes.items():
        if not name.startswith(prefix + "."):
            continue
        parts = name[len(prefix) + 1 :].split(".")
        if len(parts) > MAX_DEPTH:
            continue
        at = root
        for part in parts[:-1]:
            if not table(at.get(part)):
                at[part] = {}
            at = at[part]
        at[parts[-1]] = value
    return _as_list(root)


def _as_list(given: dict[str, Any]) -> list[Any]:
    numbered = sorted((name for name in given if name.isdecimal()), key=int)
    return [_lists(given[name]) for name in numbered]


def _lists(value: Any) -> Any:
    fields = table(value)
    if not fields:
        return value
    if all(name.isdecimal() for name in fields):
        return _as_list(fields)
    return {name: _lists(one) for name, one in fields.items()}
