"""WEKA block traces: a session as requests with the ids of their blocks of tokens, no text.

`{id, models, block_size, hash_id_scope, requests}`, one a file or one a line; an entry with
`requests` of its own is a subagent. Times are seconds since the session began.
"""

from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from reflexarc.steps.prompt import Blocks
from reflexarc.traces.documents import Document, documents, tally
from reflexarc.traces.logs import Head
from reflexarc.traces.loose import Table, amount, listed, table, text
from reflexarc.traces.requests import (
    ABSENT,
    Counts,
    FileReport,
    RecordedRequest,
    derived,
    measured,
)

MAX_DEPTH = 32
"""Subagents of subagents; deeper ones are counted as skipped."""

MAX_BLOCK_TOKENS = 1_000_000


class _Entry(msgspec.Struct, frozen=True):
    place: str
    agent: str
    fields: Table


class Weka:
    name = "weka"

    def recognises(self, head: Head) -> bool:
        return head.top.keys >= {"block_size", "requests"}

    def read(self, paths: Sequence[Path], reports: dict[Path, FileReport]) -> list[RecordedRequest]:
        found: list[RecordedRequest] = []
        for document in documents(paths, reports):
            found += _requests(document)
        tally(found, reports, dated=False)
        return found


def _requests(document: Document) -> list[RecordedRequest]:
    trace = table(document.value)
    report = document.report
    if not isinstance(trace.get("requests"), list):
        report.skip("no list of requests")
        return []
    note = "times are seconds since each session began, not dates"
    if note not in report.notes:
        report.notes.append(note)
    name = text(trace.get("id")) or document.digest
    is_global = text(trace.get("hash_id_scope")) == "global"
    scope = "global" if is_global else f"{document.path}:{name}"
    block_tokens = amount(trace.get("block_size"))
    if block_tokens is None or not 1 <= block_tokens <= MAX_BLOCK_TOKENS:
        report.notes.append("the size of blocks is missing or no number: prompts are not read")
        block_tokens = None
    return [
        _request(document, name, entry, block_tokens, scope)
        for entry in _entries(listed(trace["requests"]), report)
    ]


def _entries(
    requests: list[object], report: FileReport, place: str = "", agent: str = "", depth: int = 0
) -> Iterator[_Entry]:
    for index, given in enumerate(requests):
        fields = table(given)
        here = f"{place}{index}"
        if not fields:
            report.skip("a request that is no object")
            continue
        if isinstance(fields.get("requests"), list):
            if depth == MAX_DEPTH:
                report.skip("nested too deeply")
                continue
            own = text(fields.get("agent_id")) or f"subagent-{here}"
            yield from _entries(listed(fields["requests"]), report, f"{here}.", own, depth + 1)
        elif amount(fields.get("in")) is None and "hash_ids" not in fields:
            report.skip("an entry without tokens or blocks")
        else:
            yield _Entry(here, agent, fields)


def _request(
    document: Document, name: str, entry: _Entry, block_tokens: float | None, scope: str
) -> RecordedRequest:
    fields = entry.fields
    began = amount(fields.get("t"))
    took = amount(fields.get("api_time"))
    first = amount(fields.get("ttft"))
    model = text(fields.get("model"))
    return RecordedRequest(
        id=f"{document.digest}:{entry.place}",
        session=name,
        agent=entry.agent,
        file=str(document.path),
        model=model,
        provider="anthropic" if model.startswith("claude-") else "",
        began_s=measured(began),
        first_s=ABSENT if began is None or first is None else derived(began + first),
        ended_s=ABSENT if began is None or took is None else derived(began + took),
        counts=Counts(
            prompt=measured(amount(fields.get("in"))), output=measured(amount(fields.get("out")))
        ),
        prompt=None
        if block_tokens is None
        else _blocks(fields, int(block_tokens), scope, document),
    )


def _blocks(fields: Table, block_tokens: int, scope: str, document: Document) -> Blocks | None:
    given = fields.get("hash_ids")
    if given is None:
        return None
    try:
        return Blocks(block_tokens, array("q", listed(given)), scope)
    except (TypeError, OverflowError):
        document.report.skip("a prompt with an id of a block that is no whole number of 64 bits")
        return None
