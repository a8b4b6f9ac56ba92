"""Block traces: counts and blocks as they stand, subagents apart, nothing lost or twice."""

import gzip
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reflexarc.steps.prompt import Blocks
from reflexarc.traces.logs import Logs
from tests.traces.formats.measures import damaged, survives, totals

Read = Callable[..., Logs]


def entry(t: float = 0.0, ids: list[Any] | None = None, **more: Any) -> dict[str, Any]:
    return {
        "t": t,
        "type": "n",
        "model": "claude-sonnet-4-5-20250929",
        "in": 100,
        "out": 7,
        "hash_ids": [1, 2] if ids is None else ids,
        "api_time": 2.5,
        **more,
    }


def trace(*requests: Any, name: str = "trace_1", **more: Any) -> dict[str, Any]:
    return {
        "id": name,
        "models": [],
        "block_size": 64,
        "hash_id_scope": "local",
        "requests": list(requests),
        **more,
    }


def write(path: Path, *traces: Any) -> Path:
    path.write_text("\n".join(json.dumps(one) for one in traces))
    return path


def test_a_request_has_its_counts_times_and_blocks(tmp_path: Path, read: Read) -> None:
    path = write(tmp_path / "a.json", trace(entry(10.0, ttft=0.5)))
    (one,) = read(path).requests
    assert (one.counts.prompt.value, one.counts.prompt.kind) == (100, "measured")
    assert (one.counts.output.value, one.counts.output.kind) == (7, "measured")
    assert one.counts.cache_read.kind == "absent"
    assert (one.began_s.value, one.first_s.value, one.ended_s.value) == (10.0, 10.5, 12.5)
    assert isinstance(one.prompt, Blocks)
    assert (one.prompt.block_tokens, list(one.prompt.ids)) == (64, [1, 2])


def test_ids_of_blocks_hold_within_a_file_unless_they_are_global(
    tmp_path: Path, read: Read
) -> None:
    write(tmp_path / "a.json", trace(entry()))
    write(tmp_path / "b.json", trace(entry(1.0), name="trace_2"))
    scopes = {one.prompt.scope for one in read(tmp_path).requests if isinstance(one.prompt, Blocks)}
    assert len(scopes) == 2
    for name in "ab":
        made = trace(entry(1.0), name=f"trace_{name}", hash_id_scope="global")
        write(tmp_path / f"{name}.json", made)
    scopes = {one.prompt.scope for one in read(tmp_path).requests if isinstance(one.prompt, Blocks)}
    assert len(scopes) == 1


def test_nested_requests_are_subagents(tmp_path: Path, read: Read) -> None:
    inner = {"t": 1.0, "type": "subagent", "agent_id": "ab12", "requests": [entry(1.0), entry(2.0)]}
    nameless = {"t": 3.0, "type": "subagent", "requests": [entry(3.0)]}
    path = write(tmp_path / "a.json", trace(entry(), inner, nameless, entry(9.0)))
    logs = read(path)
    assert [one.agent for one in logs.requests] == ["", "ab12", "ab12", "subagent-2", ""]
    assert len({one.id for one in logs.requests}) == 5
    assert len({one.session for one in logs.requests}) == 1
    assert logs.files[0].requests == 5


def test_many_traces_may_stand_in_one_file_a_line_each(tmp_path: Path, read: Read) -> None:
    path = write(tmp_path / "a.jsonl", trace(entry()), trace(entry(), entry(4.0), name="trace_2"))
    logs = read(path)
    assert totals(logs.requests)["requests"] == 3
    assert len({one.session for one in logs.requests}) == 2


def test_a_copy_of_a_trace_counts_once_whatever_the_order(tmp_path: Path, read: Read) -> None:
    first = write(tmp_path / "a.json", trace(entry(), entry(3.0)))
    copy = write(tmp_path / "b.json", trace(entry(), entry(3.0)))
    forward, backward = read(first, copy), read(copy, first)
    assert totals(forward.requests) == totals(backward.requests)
    assert totals(forward.requests)["requests"] == 2
    assert [one.file for one in backward.requests] == [str(first)] * 2
    assert {report.file: sum(report.duplicates.values()) for report in backward.files} == {
        str(first): 0,
        str(copy): 1,
    }


def test_numbers_of_other_kinds_are_read_or_absent(tmp_path: Path, read: Read) -> None:
    odd = entry(1.0, **{"in": "120", "out": None})
    bad = entry(2.0, ids=[1, "x"])
    path = write(tmp_path / "a.json", trace(odd, bad, "no object", {"t": 5.0}))
    logs = read(path)
    assert logs.requests[0].counts.prompt.value == 120
    assert logs.requests[0].counts.output.kind == "absent"
    assert logs.requests[1].prompt is None
    assert sum(logs.files[0].skipped.values()) == 3


def test_a_file_cut_off_is_told_and_makes_totals_at_least(tmp_path: Path, read: Read) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps(trace(entry(), entry(1.0)))[:-40])
    (report,) = read(path).files
    assert report.format == "weka"
    assert report.at_least
    assert report.requests == 0


@given(st.integers(min_value=0))
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_damage_raises(tmp_path: Path, seed: int) -> None:
    inner = {"type": "subagent", "agent_id": "x", "requests": [entry(2.0)]}
    path = tmp_path / "a.json"
    path.write_bytes(damaged(json.dumps(trace(entry(), inner, entry(3.0))).encode(), seed))
    survives([path])


def test_all_public_traces_have_the_totals_that_they_name(data: Path, read: Read) -> None:
    """Each file names the sums of its tokens itself (`totals.combined_tokens`)."""
    logs = read(data / "weka")
    named = [json.loads(gzip.decompress(path.read_bytes())) for path in (data / "weka").iterdir()]
    found = totals(logs.requests)
    assert found["prompt"] == sum(one["totals"]["combined_tokens"]["input"] for one in named)
    assert found["output"] == sum(one["totals"]["combined_tokens"]["output"] for one in named)
    assert found["requests"] == sum(len(one["requests"]) for one in named) == 2208
    assert all(isinstance(one.prompt, Blocks) for one in logs.requests)


def test_all_public_traces_fit_into_300_megabytes(data: Path) -> None:
    if not Path("/proc/self/status").exists():
        pytest.skip("the memory of a process is read from /proc, which is not here")
    program = (
        "import sys\n"
        "from pathlib import Path\n"
        "from reflexarc.traces.formats import FORMATS\n"
        "from reflexarc.traces.logs import read_logs\n"
        "kept = read_logs([sys.argv[1]], FORMATS)\n"
        # not ru_maxrss: that begins at what the process that started this one had
        "lines = Path('/proc/self/status').read_text().splitlines()\n"
        "print(next(line.split()[1] for line in lines if line.startswith('VmHWM')))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(data / "weka")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(done.stdout) * 1024 < 300e6
