"""Pi sessions (`~/.pi/agent/sessions/*/*.jsonl`) and those of its kin that keep the same form.

Cached tokens are beside the input. A session that goes on from another's repeats its entries; an
answer counts once, in the older one.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from reflexarc.traces.documents import tally, values
from reflexarc.traces.formats.pi_tree import Entry, Session, session_of, way_to
from reflexarc.traces.formats.visible import Prompts
from reflexarc.traces.inclusive import Told, settled
from reflexarc.traces.logs import Head
from reflexarc.traces.loose import Table, amount, decoded, moment, number, table, tables, text
from reflexarc.traces.models import provider
from reflexarc.traces.peek import top_of
from reflexarc.traces.requests import (
    ABSENT,
    Counts,
    Figure,
    FileReport,
    RecordedRequest,
    RecordedTool,
    Start,
    derived,
    estimated,
    measured,
)

COPY = "an answer that the session it goes on from has"
_MISSING = "not in these logs: system prompt, schemas of tools"
_LEAST_S = 0.02
"""An answer that took less has no time of its own start, but its end twice."""


class Pi:
    name = "pi"

    def recognises(self, head: Head) -> bool:
        fields = table(head.first)
        if fields.get("type") == "title":
            # kept above the header so that it can be written anew in its place
            fields = _second(head)
        if fields:
            return fields.get("type") == "session" and fields.keys() >= {"timestamp", "cwd"}
        return top_of(head).keys >= {"type", "version", "timestamp", "cwd", "id"}

    def read(self, paths: Sequence[Path], reports: dict[Path, FileReport]) -> list[RecordedRequest]:
        sessions = [
            session_of(path, values(path, reports[path]), reports[path]) for path in sorted(paths)
        ]
        sessions.sort(key=lambda one: (one.began_s, str(one.path)))
        ids = {session.path: session.id for session in sessions}
        prompts = Prompts()
        seen: set[tuple[object, ...]] = set()
        found: list[RecordedRequest] = []
        for session in sessions:
            report = reports[session.path]
            root = _root(session, ids)
            found += _requests(session, root, report, prompts, seen)
            if session.compactions:
                report.notes.append(
                    f"{session.compactions} compactions whose tokens are not in this log"
                )
        tally(found, reports)
        for path in paths:
            if reports[path].requests:
                reports[path].notes.append(_MISSING)
            if prompts.cut:
                reports[path].notes.append(prompts.cut)
        return found


def _second(head: Head) -> Table:
    lines = head.data.split(b"\n", 2)
    try:
        return table(decoded(lines[1])) if len(lines) > 2 else {}
    except ValueError:
        return {}


def _root(session: Session, ids: dict[Path, str]) -> str:
    """Subagents' files lie in a folder of the name of the file that began them."""
    at, found = session.path, session.id
    while (above := at.parent.with_name(f"{at.parent.name}.jsonl")) in ids:
        at, found = above, ids[above]
    return found


def _requests(
    session: Session,
    root: str,
    report: FileReport,
    prompts: Prompts,
    seen: set[tuple[object, ...]],
) -> Iterator[RecordedRequest]:
    last = None
    goes_on = False
    agent = "" if root == session.id else session.id
    for entry in session.entries:
        usage = table(entry.message.get("usage"))
        key = _key(entry, usage)
        if key is not None and key in seen:
            report.duplicate(COPY)
            goes_on = True
            continue
        if key is not None:
            seen.add(key)
        way = way_to(entry.before, last, prompts)
        starts: Start = "branch" if goes_on and way.starts == "session" else way.starts
        counts, unknown = _counts(usage)
        stopped = text(entry.message.get("stopReason"))
        failed = stopped in ("error", "aborted") and counts == Counts()
        began, gap = _began(entry, way.asked_s)
        content = tables(entry.message.get("content"))
        yield RecordedRequest(
            id=f"{session.id}:{entry.id}",
            session=root,
            agent=f"{agent}/{entry.aside}".strip("/") if entry.aside else agent,
            file=str(session.path),
            model=entry.model,
            provider=provider(entry.provider),
            began_s=began,
            ended_s=measured(entry.at_s),
            gap=gap,
            counts=counts,
            cost_usd=measured(_cost(usage)),
            tools=tuple(_tool(one, entry, session) for one in content if _is_call(one)),
            prompt=way.prompt,
            output_text="".join(
                text(one.get("text")) for one in content if one.get("type") == "text"
            ),
            starts="session" if entry.aside else starts,
            failed=failed,
            unknown_cache=unknown,
        )
        if not failed and not entry.aside:
            last = entry.node


def _key(entry: Entry, usage: Table) -> tuple[object, ...] | None:
    """What tells an answer from all others, copies aside; None where it has no time."""
    at_s = moment(entry.message.get("timestamp")) or entry.at_s
    if at_s is None:
        return None
    tokens = tuple(number(usage.get(name)) for name in ("input", "output", "cacheRead"))
    calls = tuple(
        text(one.get("id")) for one in tables(entry.message.get("content")) if _is_call(one)
    )
    return at_s, entry.at_s, entry.model, entry.aside, tokens, calls


def _counts(usage: Table) -> tuple[Counts, bool]:
    """Zeros all over stand for an answer that brought no usage."""
    nested = table(usage.get("cache"))
    told = Told(
        amount(usage.get("input")),
        amount(usage.get("output")),
        _first(usage.get("cacheRead"), nested.get("read")),
        _first(usage.get("cacheWrite"), usage.get("cacheCreation"), nested.get("write")),
        amount(usage.get("reasoning")),
        amount(usage.get("totalTokens")) or None,
    )
    if not any((told.prompt, told.output, told.cache_read, told.cache_write)):
        return Counts(), False
    whole = settled(told, "disjoint")
    counts = Counts(
        prompt=_figure(whole.prompt, told.prompt),
        cache_read=measured(told.cache_read),
        cache_write=measured(told.cache_write),
        output=_figure(whole.output, told.output),
        reasoning=measured(told.reasoning),
    )
    return counts, whole.unknown


def _first(*values: object) -> float | None:
    return next((found for found in map(amount, values) if found is not None), None)


def _figure(whole: float | None, told: float | None) -> Figure:
    return measured(whole) if whole == told else derived(whole)


def _cost(usage: Table) -> float | None:
    """None for nothing: what a subscription pays for is not told."""
    cost = usage.get("cost")
    return amount(table(cost).get("total")) or amount(cost) or None


def _began(entry: Entry, asked_s: float | None) -> tuple[Figure, bool]:
    """When it began, and whether that is only when its input was there."""
    own = moment(entry.message.get("timestamp")) if not entry.aside else None
    if own is not None and entry.at_s is not None and own <= entry.at_s - _LEAST_S:
        return measured(own), False
    if entry.aside or asked_s is None or (entry.at_s is not None and asked_s > entry.at_s):
        return ABSENT, False
    return estimated(asked_s), True


def _is_call(block: Table) -> bool:
    return block.get("type") == "toolCall"


def _tool(block: Table, entry: Entry, session: Session) -> RecordedTool:
    id = text(block.get("id"))
    ended_s, failed = session.results.get(id, (None, False))
    began_s = entry.at_s if ended_s is None or (entry.at_s or 0) <= ended_s else None
    return RecordedTool(
        text(block.get("name")), id, estimated(began_s), measured(ended_s), failed=failed
    )
