"""OpenHands: conversation folders of its SDK (`base_state.json` beside `events/*.json`), events as
JSON lines, trajectories of before ("V0"), and `output.jsonl` of its evaluations.

A conversation is counted from the best that it has: the list of its calls, else how its sums grew,
else its responses alone. Times of events have no zone, so they are estimates.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from reflexarc.steps.prompt import Prompt
from reflexarc.traces.documents import Document, documents, tally
from reflexarc.traces.estimates import output_tokens, prompt_tokens
from reflexarc.traces.formats.openhands_classic import classic_answers, classic_calls
from reflexarc.traces.formats.openhands_events import Answer, Conversation, sums_by_usage
from reflexarc.traces.formats.openhands_metrics import (
    Call,
    at_unknown_zone,
    calls_of,
    differences,
    missing_tokens,
)
from reflexarc.traces.logs import Head
from reflexarc.traces.loose import Table, has_zone, listed, table, tables, text
from reflexarc.traces.models import bare, owner
from reflexarc.traces.references import LEFT_OUT, References
from reflexarc.traces.requests import (
    Counts,
    FileReport,
    RecordedRequest,
    derived,
    measured,
)

COPY = "a request that another log of the same conversation has"
NO_ZONE = "times of its events have no zone and are read as UTC"
_EVENT_FILE = re.compile(r"event-(\d{1,18})")
_SOURCES = ("agent", "user", "environment", "hook")


class _Log(msgspec.Struct):
    """One conversation: what stands of it in which files. `key` tells it from all others that are
    not its copies; "" until its first event or its state is read."""

    name: str
    key: str = ""
    state: Table = {}
    state_file: str = ""
    events: list[tuple[Table, Document]] = []
    ids: set[str] = set()


class OpenHands:
    name = "openhands"

    def recognises(self, head: Head) -> bool:
        top = head.top
        if head.path.name == "base_state.json" and top.keys:
            return True
        if head.path.parent.name == "events" and _EVENT_FILE.match(head.path.name):
            return bool(top.keys)
        if top.element:
            return _is_event(top.element)
        if _is_event(table(head.first)):
            return True
        if top.keys >= {"stats", "agent", "workspace"}:
            return True
        if "instance_id" in top.keys and top.keys & {"history", "test_result"}:
            return "trajectory" not in top.keys
        events = table(head.first).get("history") or table(head.first).get("trajectory")
        return bool(events) and _is_event(table(listed(events)[:1] and listed(events)[0]))

    def read(self, paths: Sequence[Path], reports: dict[Path, FileReport]) -> list[RecordedRequest]:
        found: dict[str, RecordedRequest] = {}
        references = References()
        by_file = {str(path): report for path, report in reports.items()}
        for log in _logs(documents(paths, reports, keep_copies=True)):
            for request in _requests(log, by_file, references):
                if request.id in found:
                    by_file[request.file].duplicate(COPY)
                else:
                    found[request.id] = request
        tally(found.values(), reports)
        return list(found.values())


def _is_event(fields: Table) -> bool:
    if text(fields.get("source")) not in _SOURCES:
        return False
    if "kind" in fields:
        return {"id", "timestamp"} <= fields.keys()
    return "action" in fields or "observation" in fields


def _logs(read: Iterator[Document]) -> list[_Log]:
    """Conversations by their folder; those that have a file or a line of their own by that."""
    found: dict[str, _Log] = {}
    for document in read:
        path = document.path
        value = table(document.value)
        if sums_by_usage(table(value.get("stats"))) and "kind" not in value:
            log = found.setdefault(str(path.parent), _Log(path.parent.name))
            log.key = text(value.get("id")) or document.digest
            log.state, log.state_file = value, str(path)
            continue
        if value.keys() == set():
            log = found.setdefault(str(path), _Log(path.stem, document.digest))
            events = tables(document.value)
        elif "history" in value or "trajectory" in value:
            name = text(value.get("instance_id")) or document.digest
            log = found.setdefault(f"{path}#{document.digest}", _Log(name, document.digest))
            log.state, log.state_file = value, str(path)
            events = tables(value.get("history") or value.get("trajectory"))
        else:
            folder = path.parent.parent if path.parent.name == "events" else path.parent
            is_apart = path.suffix == ".jsonl" and str(folder) not in found
            key = str(path) if is_apart else str(folder)
            log = found.setdefault(key, _Log(folder.name))
            events = [value]
        for event in events:
            _add(log, event, document)
    for log in found.values():
        log.events.sort(key=_number)
    return [log for log in found.values() if log.events or log.state_file]


def _number(event: tuple[Table, Document]) -> int:
    """The number in the name of a file of one event; all others stay in the order they have."""
    number = _EVENT_FILE.match(event[1].path.name)
    return int(number[1]) if number else 0


def _add(log: _Log, event: Table, document: Document) -> None:
    own = text(event.get("id")) if "kind" in event else ""
    if own and own in log.ids:
        document.report.duplicate("an event that stands twice")
        return
    if not _is_event(event):
        document.report.skip("no event")
        return
    log.ids.add(own)
    log.events.append((event, document))


def _requests(
    log: _Log, reports: dict[str, FileReport], references: References
) -> list[RecordedRequest]:
    events = [event for event, _ in log.events]
    is_classic = bool(events) and not any("kind" in event for event in events)
    file = log.state_file or str(log.events[0][1].path)
    report = reports[file]
    if any(event.get("timestamp") and not has_zone(event["timestamp"]) for event in events):
        report.notes.append(NO_ZONE)
    key = log.key or next((own for own in map(_own, events) if own), log.name)
    refused = references.refused
    if is_classic:
        answers = classic_answers(events, references)
        calls = _listed_calls(log, report) or classic_calls(events)
    else:
        conversation = Conversation(events, references)
        answers = conversation.answers
        calls = _listed_calls(log, report) or [
            call
            for usage, snapshots in conversation.snapshots.items()
            for call in differences(usage, snapshots)
        ]
    if references.refused > refused:
        report.note(LEFT_OUT)
    if not calls:
        calls = [_uncounted(one) for one in answers.values()]
        if calls:
            report.notes.append("it counts no tokens: they are estimated from what it shows")
    found: list[RecordedRequest] = []
    for call, answer in _paired(calls, answers):
        at = call.position
        where = file if at is None or log.state_file else str(log.events[at][1].path)
        found.append(_request(f"{log.name} {key}", key, where, call, answer))
    return found


def _listed_calls(log: _Log, report: FileReport) -> list[Call]:
    """Calls that the state, or an evaluation's line, lists."""
    usages = table(sums_by_usage(table(log.state.get("stats"))))
    if not usages and log.state.get("metrics"):
        usages = {"default": log.state["metrics"]}
    found: dict[str, Call] = {}
    for usage, given in usages.items():
        metrics = table(given)
        lost = missing_tokens(metrics)
        if lost:
            report.notes.append(f"{lost:.0f} prompt tokens of its sum stand in none of its calls")
            report.at_least = True
        for call in calls_of(usage, metrics):
            # one response may be counted under two names
            found.setdefault(call.response_id or call.place, call)
    return list(found.values())


def _uncounted(answer: Answer) -> Call:
    counts = Counts()
    if answer.prompt is not None:
        counts = Counts(prompt=prompt_tokens(answer.prompt), output=output_tokens(answer.text))
    return Call(
        usage="default",
        place=answer.response_id,
        response_id=answer.response_id,
        counts=counts,
        at_s=answer.at_s,
        position=answer.position,
    )


def _paired(calls: list[Call], answers: dict[str, Answer]) -> Iterator[tuple[Call, Answer | None]]:
    """Calls with their responses: by id, else (sums that grew) the first response after the sum
    and before the next."""
    left = [one for one in answers.values() if not one.condensed]
    places = [one.position for one in left]
    marks = sorted(
        one.position for one in calls if one.position is not None and one.usage == "default"
    )
    for call in calls:
        if call.response_id:
            yield call, answers.get(call.response_id)
            continue
        if call.position is None or call.usage != "default":
            yield call, None
            continue
        after = bisect_right(marks, call.position)
        first = bisect_left(places, call.position)
        is_before_next = first < len(left) and (after == len(marks) or places[first] < marks[after])
        yield call, left[first] if is_before_next else None


def _own(event: Table) -> str:
    return text(event.get("id")) or text(event.get("timestamp"))


def _request(
    session: str, key: str, file: str, call: Call, answer: Answer | None
) -> RecordedRequest:
    # a cost's time is of a clock with a zone, an event's is not
    at = call.at_s if call.at_s is not None or answer is None else answer.at_s
    is_measured = call.position is None and call.at_s is not None
    ended = measured(at) if is_measured else at_unknown_zone(at)
    began = ABSENT_START
    if at is not None and call.latency_s is not None:
        began = (
            derived(at - call.latency_s) if is_measured else at_unknown_zone(at - call.latency_s)
        )
    gap = False
    if began.value is None and answer is not None and answer.asked_s is not None:
        began, gap = at_unknown_zone(answer.asked_s), True
    return RecordedRequest(
        id=call.response_id or f"{key}:{call.place}",
        session=session,
        agent="" if call.usage in ("default", "agent") else call.usage,
        file=file,
        model=bare(call.model),
        provider=owner(call.model),
        began_s=began,
        ended_s=ended,
        gap=gap,
        counts=call.counts,
        cost_usd=call.cost_usd,
        tools=() if answer is None else tuple(answer.tools),
        prompt=_prompt(answer),
        output_text="" if answer is None else answer.text,
        starts="" if answer is None else answer.starts,
        notes=call.notes,
    )


def _prompt(answer: Answer | None) -> Prompt | None:
    return None if answer is None else answer.prompt


ABSENT_START = derived(None)
