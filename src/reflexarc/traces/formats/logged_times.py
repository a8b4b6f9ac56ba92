"""When a logged request began, gave its first token and ended, from the names that logs use.

A duration without a unit in its name is not taken: it may be seconds or milliseconds.
"""

import msgspec

from reflexarc.traces.formats.fields import first_amount, first_moment
from reflexarc.traces.loose import Table
from reflexarc.traces.requests import ABSENT, Figure, derived, measured

_BEGAN = (
    "start_time", "startTime", "started_at", "startedAt", "request_time", "request_timestamp",
    "requested_at", "request_created_at", "request_started_at", "t_start", "began_s", "begin",
    "startedDateTime", "start", "timestamp", "time_start", "ts", "time", "created_at", "createdAt",
    "datetime", "date", "@timestamp", "logged_at",
)  # fmt: skip
_ENDED = (
    "end_time", "endTime", "ended_at", "endedAt", "response_time_stamp", "response_timestamp",
    "responded_at", "response_created_at", "completed_at", "completedAt", "finished_at", "t_end",
    "ended_s", "end", "time_end",
)  # fmt: skip
_FIRST = (
    "completionStartTime", "completion_start_time", "first_token_time", "first_token_at",
    "firstTokenTime", "t_first", "first_s",
)  # fmt: skip
_LASTED = ("duration", "latency", "elapsed", "response_time", "total_time", "delay", "took")
_WAITED = ("ttft", "time_to_first_token", "first_token_latency", "first_token")
_UNITS = (
    ("_ms", 1e3), ("Ms", 1e3), ("_millis", 1e3), ("_s", 1.0), ("_sec", 1.0), ("_secs", 1.0),
    ("_seconds", 1.0), ("Seconds", 1.0), ("_us", 1e6), ("_ns", 1e9),
)  # fmt: skip


class Times(msgspec.Struct, frozen=True):
    """Unix seconds."""

    began_s: Figure = ABSENT
    first_s: Figure = ABSENT
    ended_s: Figure = ABSENT


def times_of(fields: Table, outer: Table | None = None) -> Times:
    """`outer` is looked at for what `fields` do not tell."""
    found = _times(fields)
    return found if found != Times() or not outer else _times(outer)


def _times(fields: Table) -> Times:
    began, ended = first_moment(fields, *_BEGAN), first_moment(fields, *_ENDED)
    lasted = _span(fields, _LASTED)
    if "startedDateTime" in fields:  # an HTTP archive's time, by its specification
        lasted_ms = first_amount(fields, "time")
        lasted = None if lasted_ms is None else lasted_ms / 1e3
    end = measured(ended)
    if ended is None and began is not None and lasted is not None:
        end = derived(began + lasted)
    start = measured(began)
    if began is None and ended is not None and lasted is not None:
        start = derived(ended - lasted) if ended >= lasted else ABSENT
    return Times(start, _first(fields, start.value, end.value), end)


def _first(fields: Table, began: float | None, ended: float | None) -> Figure:
    told = first_moment(fields, *_FIRST)
    if told is None:
        waited = _span(fields, _WAITED)
        return ABSENT if began is None or not waited else derived(began + waited)
    # some write the end where there was no stream
    is_real = told != ended and (began is None or told >= began)
    return measured(told) if is_real else ABSENT


def _span(fields: Table, names: tuple[str, ...]) -> float | None:
    """Seconds."""
    for name in names:
        for unit, each in _UNITS:
            found = first_amount(fields, name + unit)
            if found is not None:
                return found / each
    return None
