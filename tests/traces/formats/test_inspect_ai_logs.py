"""inspect_ai: every model event once, counts as documented, archives that are packed or hostile."""

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reflexarc.steps.prompt import Prompt
from reflexarc.traces.formats import inspect_archive
from reflexarc.traces.logs import Logs
from tests.traces.formats.archives import DEFLATED, STORED, ZSTD, archive
from tests.traces.formats.measures import damaged, survives, totals

Read = Callable[..., Logs]

HEADER = {
    "version": 2,
    "status": "success",
    "eval": {"task": "guess", "eval_id": "ev1", "run_id": "r1", "model": "openai/gpt-x"},
}
SYSTEM = {"role": "system", "content": "attachment://" + "ab" * 16, "id": "m0"}
USER = {"role": "user", "content": "Where?", "source": "input", "id": "m1"}
TOOL = {"name": "look", "description": "Looks.", "parameters": {"type": "object"}}


def model_event(number: int, **more: Any) -> dict[str, Any]:
    usage = {"input_tokens": 100, "output_tokens": 10, "total_tokens": 110}
    return {
        "event": "model",
        "uuid": f"e{number}",
        "timestamp": f"2026-01-01T00:00:{number:02d}+00:00",
        "completed": f"2026-01-01T00:00:{number:02d}.900000+00:00",
        "model": "openai/gpt-x",
        "input": [SYSTEM, USER],
        "tools": [TOOL],
        "output": {"model": "gpt-x-2026", "usage": usage, "time": 0.5, "choices": []},
        **more,
    }


def using(**usage: Any) -> dict[str, Any]:
    return {"model": "gpt-x-2026", "usage": usage, "choices": []}


def sample(*events: Any, **more: Any) -> dict[str, Any]:
    return {
        "id": 1,
        "epoch": 1,
        "uuid": "s1",
        "events": list(events),
        "attachments": {"ab" * 16: 'Be "brief".'},
        **more,
    }


def run(path: Path, *samples: Any, **how: Any) -> Path:
    members = {f"samples/{one['id']}_epoch_{one['epoch']}.json": one for one in samples}
    return archive(path, {**members, "header.json": HEADER}, **how)


@pytest.mark.parametrize(("method", "frames"), [(STORED, 1), (DEFLATED, 1), (ZSTD, 1), (ZSTD, 7)])
def test_members_are_read_however_they_are_packed(
    tmp_path: Path, read: Read, method: int, frames: int
) -> None:
    path = run(tmp_path / "a.eval", sample(model_event(1)), method=method, frames=frames)
    logs = read(path)
    assert totals(logs.requests) == {
        "requests": 1, "prompt": 100, "output": 10, "cached": 0, "written": 0, "reasoning": 0
    }  # fmt: skip
    assert logs.files[0].format == "inspect-ai"


def test_a_request_has_its_times_its_model_and_its_prompt(tmp_path: Path, read: Read) -> None:
    (one,) = read(run(tmp_path / "a.eval", sample(model_event(1)))).requests
    assert one.began_s.kind == "derived"
    assert one.began_s.value == pytest.approx(1767225601.4)
    assert one.ended_s.value == pytest.approx(1767225601.9)
    assert (one.provider, one.model) == ("openai", "gpt-x-2026")
    assert isinstance(one.prompt, Prompt)
    assert [piece.kind for piece in one.prompt.pieces] == ["tool", "system", "message"]
    assert json.loads(one.prompt.pieces[1].raw) == {"role": "system", "content": 'Be "brief".'}


def test_cached_tokens_stand_beside_input_tokens(tmp_path: Path, read: Read) -> None:
    output = using(
        input_tokens=5,
        input_tokens_cache_read=900,
        input_tokens_cache_write=50,
        output_tokens=20,
        reasoning_tokens=8,
        total_tokens=975,
    )
    (one,) = read(run(tmp_path / "a.eval", sample(model_event(1, output=output)))).requests
    assert (one.counts.prompt.value, one.counts.prompt.kind) == (955, "derived")
    assert (one.counts.cache_read.value, one.counts.cache_write.value) == (900, 50)
    assert (one.counts.output.value, one.counts.reasoning.value) == (20, 8)


def test_where_the_sum_says_that_cached_tokens_are_inside_they_are(
    tmp_path: Path, read: Read
) -> None:
    output = using(
        input_tokens=1000, input_tokens_cache_read=900, output_tokens=20, total_tokens=1020
    )
    (one,) = read(run(tmp_path / "a.eval", sample(model_event(1, output=output)))).requests
    assert (one.counts.prompt.value, one.counts.prompt.kind) == (1000, "measured")


def test_references_into_the_pool_of_messages_are_followed(tmp_path: Path, read: Read) -> None:
    pool = [SYSTEM, USER, {"role": "assistant", "content": "Here."}]
    events = [
        model_event(1, input=[], input_refs=[[0, 2]]),
        model_event(2, input=[], input_refs=[[0, 1], [2, 99]]),
        model_event(3, input=[], input_refs=[["x", None], [3]]),
    ]
    early = run(tmp_path / "a.eval", sample(*events, message_pool=pool))
    current = run(
        tmp_path / "b.eval", sample(*events, uuid="other", events_data={"messages": pool})
    )
    for path in (early, current):
        prompts = [one.prompt for one in read(path).requests]
        roles = [
            [piece.role for piece in one.pieces if piece.role]
            for one in prompts
            if isinstance(one, Prompt)
        ]
        assert roles == [["system", "user"], ["system", "assistant"], []]


def test_an_event_that_was_pending_counts_once(tmp_path: Path, read: Read) -> None:
    pending = model_event(1, pending=True, output={}, completed=None)
    alone = model_event(2, pending=True, output={}, completed=None)
    logs = read(run(tmp_path / "a.eval", sample(pending, model_event(1), alone)))
    assert totals(logs.requests)["requests"] == 1
    assert (logs.files[0].requests, logs.files[0].errors) == (1, 1)
    assert sum(logs.files[0].duplicates.values()) == 1


def test_what_inspects_own_cache_answered_is_no_request(tmp_path: Path, read: Read) -> None:
    logs = read(run(tmp_path / "a.eval", sample(model_event(1), model_event(2, cache="read"))))
    assert totals(logs.requests)["requests"] == 1
    assert sum(logs.files[0].skipped.values()) == 1


def test_a_request_that_failed_is_an_error(tmp_path: Path, read: Read) -> None:
    bad = model_event(2, error="overloaded", output={"model": "gpt-x", "choices": []}, retries=3)
    logs = read(run(tmp_path / "a.eval", sample(model_event(1), bad)))
    assert [one.failed for one in logs.requests] == [False, True]
    assert logs.requests[1].notes == ("3 attempts before it failed",)


def test_tools_are_joined_with_the_calls_by_their_ids(tmp_path: Path, read: Read) -> None:
    call = {"id": "c1", "function": "look", "arguments": {"at": "x"}}
    message = {"role": "assistant", "content": [{"type": "text", "text": "So."}]}
    output = {"choices": [{"message": {**message, "tool_calls": [call]}}]}
    tool = {
        "event": "tool",
        "id": "c1",
        "function": "look",
        "timestamp": "2026-01-01T00:00:02Z",
        "completed": "2026-01-01T00:00:05Z",
        "working_time": 2.5,
    }
    (one,) = read(run(tmp_path / "a.eval", sample(model_event(1, output=output), tool))).requests
    assert one.output_text == "So."
    (used,) = one.tools
    assert (used.name, used.own_s.value) == ("look", 2.5)
    assert used.ended_s.value == 1767225605


def test_graders_and_agents_inside_agents_are_apart(tmp_path: Path, read: Read) -> None:
    outer = {"event": "span_begin", "id": "o", "type": "agent", "name": "main"}
    inner = {"event": "span_begin", "id": "i", "type": "agent", "name": "sub", "parent_id": "o"}
    events = [
        outer,
        inner,
        model_event(1, span_id="o"),
        model_event(2, span_id="i"),
        model_event(3, role="grader"),
    ]
    agents = [one.agent for one in read(run(tmp_path / "a.eval", sample(*events))).requests]
    assert agents == ["", "sub-i", "grader"]


def test_epochs_are_runs_of_their_own(tmp_path: Path, read: Read) -> None:
    first = sample(model_event(1))
    second = sample(model_event(1), epoch=2, uuid="s2")
    logs = read(run(tmp_path / "a.eval", first, second))
    assert totals(logs.requests)["requests"] == 2
    assert len({one.session for one in logs.requests}) == 2


@pytest.mark.parametrize("uuids", [True, False])
def test_the_same_log_as_archive_and_as_json_counts_once(
    tmp_path: Path, read: Read, uuids: bool
) -> None:
    one = sample(model_event(1), model_event(2))
    if not uuids:
        one.pop("uuid")
        for event in one["events"]:
            event.pop("uuid")
    packed = run(tmp_path / "b.eval", one)
    plain = tmp_path / "a.json"
    plain.write_text(json.dumps({**HEADER, "samples": [one]}))
    forward, backward = read(packed, plain), read(plain, packed)
    assert totals(forward.requests)["requests"] == 2
    assert forward.requests == backward.requests
    assert {one.file for one in forward.requests} == {str(plain)}


def test_a_run_that_crashed_has_its_beginning_in_the_journal(tmp_path: Path, read: Read) -> None:
    members = {"_journal/start.json": HEADER, "samples/1_epoch_1.json": sample(model_event(1))}
    logs = read(archive(tmp_path / "a.eval", members))
    assert logs.requests[0].session.startswith("guess/1/1")
    assert "did not come to its end" in logs.files[0].notes[0]


def test_a_sample_that_is_damaged_is_told_and_the_rest_is_read(tmp_path: Path, read: Read) -> None:
    members = {
        "header.json": HEADER,
        "samples/1_epoch_1.json": sample(model_event(1)),
        "samples/2_epoch_1.json": b"{not json",
    }
    logs = read(archive(tmp_path / "a.eval", members))
    assert totals(logs.requests)["requests"] == 1
    assert logs.files[0].at_least
    assert logs.files[0].skipped == {"a sample that cannot be read": 1}


def test_a_wrong_checksum_is_damage(tmp_path: Path, read: Read) -> None:
    for method in (DEFLATED, ZSTD):
        path = run(tmp_path / f"{method}.eval", sample(model_event(1)), method=method, crc=1)
        (report,) = read(path).files
        assert report.at_least
        assert report.requests == 0


@pytest.mark.parametrize("method", [DEFLATED, ZSTD])
def test_a_bomb_is_not_unpacked(
    tmp_path: Path, read: Read, monkeypatch: pytest.MonkeyPatch, method: int
) -> None:
    monkeypatch.setattr(inspect_archive, "MAX_MEMBER_BYTES", 1_000_000)
    bomb = b" " * 3_000_000
    members = {"header.json": HEADER, "samples/1_epoch_1.json": bomb, "samples/2_epoch_1.json": {}}
    (report,) = read(archive(tmp_path / "a.eval", members, method=method)).files
    assert report.at_least
    assert "longer than 1000000 bytes" in " ".join(report.notes)


def test_all_members_together_are_bounded(
    tmp_path: Path, read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inspect_archive, "MAX_ARCHIVE_BYTES", 2_500)
    samples = [sample(model_event(1), id=number, uuid=f"s{number}") for number in range(9)]
    (report,) = read(run(tmp_path / "a.eval", *samples)).files
    assert 0 < report.requests < 9
    assert report.at_least


def test_too_many_members_are_refused(
    tmp_path: Path, read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inspect_archive, "MAX_MEMBERS", 1)
    (report,) = read(run(tmp_path / "a.eval", sample(model_event(1)))).files
    assert report.at_least
    assert "more than 1 members" in report.notes[0]


@given(st.integers(min_value=0))
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_damage_raises(tmp_path: Path, seed: int) -> None:
    events = [model_event(1), model_event(2, input=[], input_refs=[[0, 1]], pending=True)]
    one = damaged(json.dumps(sample(*events, message_pool=[USER])).encode(), seed)
    inside = archive(
        tmp_path / "a.eval", {"header.json": HEADER, "samples/1_epoch_1.json": one}, frames=2
    )
    outside = tmp_path / "b.eval"
    outside.write_bytes(damaged(inside.read_bytes(), seed))
    plain = tmp_path / "c.json"
    log = json.dumps({**HEADER, "samples": [sample(*events)]}).encode()
    plain.write_bytes(damaged(log, seed))
    survives([inside, outside, plain])


def test_the_public_logs_have_the_totals_that_they_name(data: Path, read: Read) -> None:
    """Each archive names its sums itself (`stats.model_usage` in header.json), and holds one model
    event for each call; the third is of a model that counts no tokens, called six times."""
    folder = data / "logs" / "inspect_ai"
    for path in folder.iterdir():
        with zipfile.ZipFile(path) as opened:
            usage = json.loads(opened.read("header.json"))["stats"]["model_usage"].values()
            events = sum(
                event["event"] == "model"
                for name in opened.namelist()
                if name.startswith("samples/")
                for event in json.loads(opened.read(name))["events"]
            )
        found = totals(read(path).requests)
        assert found["requests"] == events
        assert found["prompt"] == sum(one["input_tokens"] for one in usage)
        assert found["output"] == sum(one["output_tokens"] for one in usage)
    assert totals(read(folder).requests)["requests"] == 20


def test_a_log_packed_anew_with_zstd_reads_the_same(data: Path, tmp_path: Path, read: Read) -> None:
    path = data / "logs" / "inspect_ai" / "log_message_deduplication.eval"
    with zipfile.ZipFile(path) as opened:
        members = {name: opened.read(name) for name in opened.namelist()}
    copy = archive(tmp_path / path.name, members, method=ZSTD, frames=5)
    before, after = read(path).requests, read(copy).requests
    assert [one.prompt for one in before] == [one.prompt for one in after]
    assert len(after) == 6


def test_what_a_tool_asked_a_model_for_is_in_its_event_in_older_logs(
    tmp_path: Path, read: Read
) -> None:
    inner = [model_event(2), model_event(3)]
    tool = {"event": "tool", "id": "c1", "function": "helper", "events": inner}
    found = read(run(tmp_path / "a.eval", sample(model_event(1), tool))).requests
    assert [one.agent for one in found] == ["", "helper-1", "helper-1"]
