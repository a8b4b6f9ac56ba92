"""aiperf's `profile_export.jsonl`: a line a request that a benchmark made, with its times.

Warm-up requests are left out, requests that were cancelled or failed are errors. Lengths are
counted by the client's tokenizer unless the server's counts stand beside them.
"""

from collections.abc import Sequence
from pathlib import Path

from reflexarc.traces.documents import tally
from reflexarc.traces.formats.fields import first_text, is_table
from reflexarc.traces.formats.rows import Keeping, first_row, rows
from reflexarc.traces.logs import Head
from reflexarc.traces.loose import Table, amount, moment, number, table, text
from reflexarc.traces.requests import (
    ABSENT,
    Counts,
    Figure,
    FileReport,
    RecordedRequest,
    derived,
    measured,
)

COPY = "a request of another file again"
NO_METRICS = "a line without metadata and metrics"
WARM_UP = "a request of the warm-up"
_SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "sec": 1.0}


class Aiperf:
    name = "aiperf"

    def recognises(self, head: Head) -> bool:
        row = first_row(head)
        if not {"metadata", "metrics"} <= row.keys():
            return False
        metadata = table(row["metadata"])
        return not metadata or bool(metadata.keys() & {"request_start_ns", "benchmark_phase"})

    def read(self, paths: Sequence[Path], reports: dict[Path, FileReport]) -> list[RecordedRequest]:
        keeping = Keeping()
        for row in rows(paths, reports):
            metadata = table(row.fields.get("metadata"))
            if not metadata or not isinstance(row.fields.get("metrics"), dict | None):
                row.report.skip(NO_METRICS)
            elif text(metadata.get("benchmark_phase")).lower() == "warmup":
                row.report.skip(WARM_UP)
            else:
                keeping.keep(_request(row.fields, metadata, row.path, row.mark), row.report, COPY)
        tally(keeping.requests, reports)
        return keeping.requests


def _request(fields: Table, metadata: Table, path: Path, mark: str) -> RecordedRequest:
    metrics = table(fields.get("metrics"))
    began = moment(metadata.get("request_start_ns"))
    ended = moment(metadata.get("request_end_ns"))
    own = first_text(metadata, "x_request_id", "request_id")
    stem = path.name.partition(".")[0]
    return RecordedRequest(
        id=f"{own}@{began}" if own else mark,
        session=first_text(metadata, "x_correlation_id", "conversation_id") or stem,
        file=str(path),
        model=first_text(metadata, "model", "model_name"),
        began_s=measured(began),
        first_s=_first(metrics, began),
        ended_s=_ended(metrics, began, ended),
        counts=Counts(
            prompt=_tokens(metrics, "usage_prompt_tokens", "input_sequence_length"),
            cache_read=_tokens(metrics, "usage_prompt_cache_read_tokens"),
            output=_tokens(metrics, "usage_completion_tokens", "output_sequence_length"),
            reasoning=_tokens(metrics, "usage_reasoning_tokens", "reasoning_token_count"),
        ),
        failed=bool(metadata.get("was_cancelled") or fields.get("error")),
    )


def _tokens(metrics: Table, *names: str) -> Figure:
    for name in names:
        found = amount(_value(metrics, name))
        if found is not None:
            return measured(found)
    return ABSENT


def _value(metrics: Table, name: str) -> object:
    told = metrics.get(name)
    return table(told).get("value") if is_table(told) else told


def _span(metrics: Table, name: str) -> float | None:
    told = table(metrics.get(name))
    value, unit = number(told.get("value")), _SECONDS.get(text(told.get("unit")).lower())
    return None if value is None or unit is None or value < 0 else value * unit


def _first(metrics: Table, began: float | None) -> Figure:
    waited = _span(metrics, "time_to_first_token")
    return ABSENT if began is None or waited is None else derived(began + waited)


def _ended(metrics: Table, began: float | None, ended: float | None) -> Figure:
    if ended is not None:
        return measured(ended)
    took = _span(metrics, "request_latency")
    return ABSENT if began is None or took is None else derived(began + took)
