"""Mooncake's blocks and aiperf's requests: lengths and times as they stand, nothing made up."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reflexarc.steps.prompt import Blocks
from reflexarc.traces.logs import Logs
from tests.traces.formats.measures import damaged, survives, totals
from tests.traces.formats.written import write_jsonl

Read = Callable[..., Logs]

MOONCAKE = [
    {"timestamp": 0, "input_length": 6758, "output_length": 500, "hash_ids": [0, 1, 2]},
    {"timestamp": 3000, "input_length": "7000", "output_length": 490, "hash_ids": [0, 1, 5]},
]


def measure(value: float, unit: str) -> dict[str, Any]:
    return {"value": value, "unit": unit}


def benchmark(turn: int, **metadata: Any) -> dict[str, Any]:
    began = 1_767_225_600_000_000_000 + turn * 10**9
    return {
        "metadata": {
            "conversation_id": "c1", "turn_index": turn, "request_start_ns": began,
            "request_end_ns": began + 500_000_000, "benchmark_phase": "profiling",
            "was_cancelled": False, "x_request_id": f"r{turn}", **metadata,
        },
        "metrics": {
            "input_sequence_length": measure(550, "tokens"),
            "output_sequence_length": measure(9, "tokens"),
            "time_to_first_token": measure(250.0, "ms"),
        },
        "error": None,
    }  # fmt: skip


def test_mooncake_s_blocks_hold_512_tokens(tmp_path: Path, read: Read) -> None:
    logs = read(write_jsonl(tmp_path / "trace.jsonl", *MOONCAKE))
    assert totals(logs.requests)["prompt"] == 13_758
    first, second = logs.requests
    assert isinstance(first.prompt, Blocks)
    assert (first.prompt.block_tokens, list(first.prompt.ids)) == (512, [0, 1, 2])
    assert (second.began_s.value, second.counts.cache_read.kind) == (3, "absent")
    assert logs.files[0].oldest_s is None


def test_equal_lines_of_a_block_trace_are_requests_of_their_own(tmp_path: Path, read: Read) -> None:
    logs = read(write_jsonl(tmp_path / "trace.jsonl", MOONCAKE[0], MOONCAKE[0]))
    assert totals(logs.requests)["requests"] == 2


def test_a_benchmark_s_warm_up_is_left_out(tmp_path: Path, read: Read) -> None:
    rows = [
        benchmark(0, benchmark_phase="warmup"),
        benchmark(1),
        benchmark(2, was_cancelled=True),
        benchmark(3),
    ]
    logs = read(write_jsonl(tmp_path / "profile_export.jsonl", *rows))
    (report,) = logs.files
    assert (report.format, report.requests, report.errors) == ("aiperf", 2, 1)
    assert sum(report.skipped.values()) == 1
    first = next(one for one in logs.requests if not one.failed)
    assert first.first_s.value == 1_767_225_601.25
    assert (first.session, first.counts.prompt.value) == ("c1", 550)


def test_a_metric_that_stands_twice_in_a_line_is_no_harm(tmp_path: Path, read: Read) -> None:
    line = json.dumps(benchmark(1)).replace(
        '"metrics": {', '"metrics": {"time_to_first_token": {"value": 9, "unit": "ms"}, '
    )
    path = tmp_path / "profile_export.jsonl"
    path.write_text(line + "\n")
    assert totals(read(path).requests)["requests"] == 1


@given(st.integers(min_value=0), st.booleans())
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_no_damage_raises(tmp_path: Path, seed: int, blocks: bool) -> None:
    rows = MOONCAKE if blocks else [benchmark(1), benchmark(2)]
    path = tmp_path / "a.jsonl"
    path.write_bytes(damaged("".join(json.dumps(row) + "\n" for row in rows).encode(), seed))
    survives([path])
