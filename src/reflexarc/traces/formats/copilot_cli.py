"""Copilot CLI: `session-store.db`, in which each row of `assistant_usage_events` is a request.

Input holds cached tokens, output holds reasoning. Text is not kept whole, so there are no prompts.
What is paid in are credits, which are no money here.
"""

from collections.abc import Sequence
from pathlib import Path

from reflexarc.steps.errors import InputError
from reflexarc.traces.documents import tally
from reflexarc.traces.inclusive import Told, settled
from reflexarc.traces.logs import Head
from reflexarc.traces.loose import Table, amount, moment, text
from reflexarc.traces.requests import (
    ABSENT,
    Counts,
    FileReport,
    RecordedRequest,
    Start,
    derived,
    measured,
)
from reflexarc.traces.sqlite_files import is_sqlite, opened, tables_of

COPY = "a request that another copy of the store has"
_TABLE = "assistant_usage_events"
_COLUMNS = (
    "id", "session_id", "agent_id", "parent_tool_call_id", "model", "input_tokens",
    "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens", "duration_ms",
    "time_to_first_token_ms", "created_at",
)  # fmt: skip
_MISSING = "not in this log: prompts, tools, requests that failed; it is paid in credits"


class CopilotCli:
    name = "copilot-cli"

    def recognises(self, head: Head) -> bool:
        columns = tables_of(head.path).get(_TABLE) if is_sqlite(head) else None
        return columns is not None and columns >= {"session_id", "input_tokens", "output_tokens"}

    def read(self, paths: Sequence[Path], reports: dict[Path, FileReport]) -> list[RecordedRequest]:
        found: dict[str, RecordedRequest] = {}
        threads: set[tuple[str, str]] = set()
        for path in sorted(paths):
            report = reports[path]
            for row in _rows(path, report):
                report.lines += 1
                session = text(row["session_id"])
                agent = text(row["agent_id"]) or text(row["parent_tool_call_id"])
                starts: Start = "" if (session, agent) in threads else "session"
                request = _request(row, path, session, agent, starts)
                if request.id in found:
                    report.duplicate(COPY)
                    continue
                threads.add((session, agent))
                found[request.id] = request
            report.notes.append(_MISSING)
        tally(found.values(), reports)
        return list(found.values())


def _rows(path: Path, report: FileReport) -> list[Table]:
    try:
        with opened(path) as database:
            rows = database.grouped(_TABLE).get(None, [])
            found = list(database.rows(_TABLE, rows, _COLUMNS))
            damage = database.damage
    except InputError as error:
        report.notes.append(str(error))
        report.at_least = True
        return []
    for reason, times in damage.items():
        report.skip(reason, times)
        report.at_least = True
    return found


def _request(row: Table, path: Path, session: str, agent: str, starts: Start) -> RecordedRequest:
    told = Told(
        amount(row["input_tokens"]),
        amount(row["output_tokens"]),
        amount(row["cache_read_tokens"]),
        amount(row["cache_write_tokens"]),
        amount(row["reasoning_tokens"]),
    )
    whole = settled(told, "inclusive")
    ended_s = moment(row["created_at"])
    took_s = _seconds(row["duration_ms"])
    first_s = _seconds(row["time_to_first_token_ms"])
    began_s = None if ended_s is None or took_s is None else max(0.0, ended_s - took_s)
    return RecordedRequest(
        id=f"{session}:{text(row['id'])}:{text(row['created_at'])}",
        session=session,
        agent=agent,
        file=str(path),
        model=text(row["model"]),
        began_s=derived(began_s),
        first_s=ABSENT
        if began_s is None or first_s is None or first_s > (took_s or 0)
        else derived(began_s + first_s),
        ended_s=measured(ended_s),
        counts=Counts(
            prompt=derived(whole.prompt) if whole.sums else measured(whole.prompt),
            cache_read=measured(told.cache_read),
            cache_write=measured(told.cache_write),
            output=measured(whole.output),
            reasoning=measured(told.reasoning),
        ),
        starts=starts,
        unknown_cache=whole.unknown,
    )


def _seconds(milliseconds: object) -> float | None:
    found = amount(milliseconds)
    return None if found is None else found / 1000
