"""Sums over requests that tests compare, and damage done to files for tests of hostile input."""

import random
from collections.abc import Iterable
from pathlib import Path

from reflexarc.traces.formats import FORMATS
from reflexarc.traces.logs import Logs, read_logs
from reflexarc.traces.requests import Counts, Figure, RecordedRequest

FIGURES = (
    ("prompt", lambda c: c.prompt),
    ("cached", lambda c: c.cache_read),
    ("written", lambda c: c.cache_write),
    ("output", lambda c: c.output),
    ("reasoning", lambda c: c.reasoning),
)


def totals(requests: Iterable[RecordedRequest]) -> dict[str, float]:
    """Requests that did not fail, and their known tokens."""
    kept = [one for one in requests if not one.failed]
    found: dict[str, float] = {"requests": len(kept)}
    for name, figure in FIGURES:
        values = [figure(one.counts).value for one in kept]
        found[name] = sum(value for value in values if value is not None)
    return found


def all_figures(request: RecordedRequest) -> list[Figure]:
    counts: Counts = request.counts
    return [figure(counts) for _, figure in FIGURES] + [
        request.cost_usd,
        request.began_s,
        request.ended_s,
        *(tool.own_s for tool in request.tools),
    ]


def damaged(data: bytes, seed: int) -> bytes:
    """The data with a few places changed: bytes, pieces cut out, words of another kind."""
    chosen = random.Random(seed)
    found = bytearray(data)
    words = [
        b"null",
        b"-5",
        b'"7"',
        b"1e999",
        b"[]",
        b"{}",
        b'"\\ud800"',
        b"true",
        b"[[1]]",
        b"NaN",
    ]
    for _ in range(chosen.randint(1, 12)):
        if not found:
            break
        at = chosen.randrange(len(found))
        match chosen.randrange(4):
            case 0:
                found[at] = chosen.randrange(256)
            case 1:
                del found[at : at + chosen.randrange(1, 40)]
            case _:
                # a whole value after a colon becomes one of another kind
                colon = found.find(b":", at)
                if colon < 0:
                    continue
                end = min(
                    (i for i in (found.find(b",", colon), found.find(b"}", colon)) if i > 0),
                    default=len(found),
                )
                found[colon + 1 : end] = chosen.choice(words)
    return bytes(found)


def survives(paths: Iterable[Path]) -> Logs:
    """Reads hostile files with every format, whichever recognises them or not."""
    listed = list(paths)
    logs = read_logs(listed, FORMATS)
    for one in logs.requests:
        assert all(figure.value is None or figure.value >= 0 for figure in all_figures(one))
        assert one.counts.prompt.kind == "absent" or one.counts.prompt.value is not None
    assert sum(report.requests for report in logs.files) == totals(logs.requests)["requests"]
    return logs


def times_in_order(logs: Logs) -> None:
    """Nothing ends before it begins, nor has its first token before or after it."""
    for one in logs.requests:
        known = [
            moment.value
            for moment in (one.began_s, one.first_s, one.ended_s)
            if moment.value is not None
        ]
        assert known == sorted(known)
        for tool in one.tools:
            if tool.began_s.value is not None and tool.ended_s.value is not None:
                assert tool.began_s.value <= tool.ended_s.value
