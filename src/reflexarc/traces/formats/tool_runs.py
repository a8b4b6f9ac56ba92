"""Runs of tools that an export keeps apart from the answers that called them, brought together:
by the call's id, else by the name, after the answer and before the next one."""

from collections.abc import Sequence

import msgspec

from reflexarc.traces.requests import (
    ABSENT,
    Figure,
    RecordedRequest,
    RecordedTool,
    derived,
    measured,
)

_SLACK_S = 0.005
"""Clocks of one trace are one, but times are cut to milliseconds."""


class Run(msgspec.Struct, frozen=True):
    """Times in Unix seconds, None where they are not in the log. `call`: the id of its call."""

    trace: str
    name: str
    call: str = ""
    began_s: float | None = None
    ended_s: float | None = None
    failed: bool = False


def with_runs(
    requests: Sequence[tuple[str, RecordedRequest]], runs: Sequence[Run]
) -> list[RecordedRequest]:
    """The requests, each with its trace, their calls with the times of their runs. Where an answer
    is not in the log, its runs are its calls."""
    found = [request for _, request in requests]
    places: dict[str, list[int]] = {}
    for place, (trace, _) in enumerate(requests):
        places.setdefault(trace, []).append(place)
    is_silent = [not request.tools for request in found]
    for run in sorted(runs, key=lambda one: (one.began_s or 0.0, one.name, one.call)):
        near = places.get(run.trace, [])
        place, at = _place(run, near, found)
        if place is None:
            place = _before(run, near, found)
            if place is None or not is_silent[place] or found[place].output_text:
                continue
            at = len(found[place].tools)
        tools = list(found[place].tools)
        tools[at : at + 1] = [_tool(run, tools[at].id if at < len(tools) else run.call)]
        found[place] = msgspec.structs.replace(found[place], tools=tuple(tools))
    return found


def _place(
    run: Run, near: Sequence[int], found: Sequence[RecordedRequest]
) -> tuple[int | None, int]:
    if run.call:
        for place in near:
            for at, tool in enumerate(found[place].tools):
                if tool.id == run.call and tool.began_s is ABSENT:
                    return place, at
    before = [place for place in near if _is_before(found[place], run)]
    for place in sorted(before, key=lambda one: _end(found[one]), reverse=True):
        for at, tool in enumerate(found[place].tools):
            is_free = tool.began_s.value is None and tool.ended_s.value is None
            if tool.name == run.name and is_free and not (tool.id and run.call):
                return place, at
    return None, 0


def _before(run: Run, near: Sequence[int], found: Sequence[RecordedRequest]) -> int | None:
    before = [place for place in near if _is_before(found[place], run)]
    return max(before, key=lambda one: _end(found[one]), default=None)


def _end(request: RecordedRequest) -> float:
    return request.ended_s.value or request.began_s.value or 0.0


def _is_before(request: RecordedRequest, run: Run) -> bool:
    return run.began_s is not None and _end(request) <= run.began_s + _SLACK_S


def _tool(run: Run, id: str) -> RecordedTool:
    own: Figure = ABSENT
    if run.began_s is not None and run.ended_s is not None:
        own = derived(max(0.0, run.ended_s - run.began_s))
    return RecordedTool(
        run.name, id or run.call, measured(run.began_s), measured(run.ended_s), own, run.failed
    )
