"""Codex rollouts: totals told again are no requests, copies of a parent are not the child's."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reflexarc.traces.formats.codex import Codex
from reflexarc.traces.logs import Logs, read_logs
from reflexarc.traces.requests import RecordedRequest

DATA = Path(__file__).parents[4] / "shared" / "data" / "logs"


def usage(prompt: int, output: int = 10, cached: int = 0) -> dict[str, int]:
    return {
        "input_tokens": prompt,
        "cached_input_tokens": cached,
        "output_tokens": output,
        "reasoning_output_tokens": 0,
        "total_tokens": prompt + output,
    }


class Rollout:
    """Writes records; totals run on from `total`."""

    def __init__(self, id: str = "t1", **meta: Any) -> None:
        self.id = id
        self.lines: list[dict[str, Any]] = []
        self.total = usage(0, 0)
        self.add("session_meta", id=id, originator="codex_cli_rs", model_provider="openai", **meta)

    def add(self, kind: str, **payload: Any) -> None:
        second = len(self.lines)
        stamp = f"2026-05-01T10:{second // 60:02d}:{second % 60:02d}.000Z"
        self.lines.append({"timestamp": stamp, "type": kind, "payload": payload})

    def turn(self, id: str = "turn-1", model: str = "gpt-5.1-codex") -> None:
        self.add("turn_context", turn_id=id, model=model)

    def count(self, last: dict[str, int] | None, again: bool = False) -> None:
        if last is not None and not again:
            self.total = {name: self.total[name] + last[name] for name in self.total}
        info = {"last_token_usage": last, "total_token_usage": dict(self.total)}
        self.add("event_msg", type="token_count", info=info)

    def record(self, response: str, used: dict[str, int], thread: str = "") -> None:
        self.add(
            "token_usage_record", thread_id=thread or self.id, response_id=response, usage=used
        )

    def item(self, **payload: Any) -> None:
        self.add("response_item", **payload)

    def copied_from(self, other: "Rollout", what: Iterable[dict[str, Any]]) -> "Rollout":
        self.lines += [{**line, "timestamp": self.lines[0]["timestamp"]} for line in what]
        self.total = dict(other.total)
        return self

    def write(self, folder: Path, name: str = "") -> Path:
        path = folder / (name or f"rollout-2026-05-01T10-00-00-{self.id}.jsonl")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(line) + "\n" for line in self.lines))
        return path


def read(*paths: Path) -> Logs:
    return read_logs(paths, [Codex()])


def total(requests: Iterable[RecordedRequest], name: str = "prompt") -> float:
    return sum(getattr(request.counts, name).value or 0 for request in requests)


def test_totals_told_again_are_no_request_and_equal_requests_are_two(tmp_path: Path) -> None:
    rollout = Rollout()
    rollout.turn()
    rollout.count(usage(100))
    rollout.count(usage(100), again=True)
    rollout.count(usage(100))
    rollout.add("event_msg", type="token_count", info=None)
    rollout.count(usage(100), again=True)
    logs = read(rollout.write(tmp_path))
    assert (len(logs.requests), total(logs.requests)) == (2, 200)
    assert logs.files[0].duplicates == {"totals told again": 2}


def test_totals_are_compared_as_a_whole_when_their_sum_is_missing(tmp_path: Path) -> None:
    rollout = Rollout()
    for _ in range(3):
        rollout.count(usage(100))
    for line in rollout.lines[1:]:
        line["payload"]["info"]["total_token_usage"]["total_tokens"] = 0
    assert total(read(rollout.write(tmp_path)).requests) == 300


def test_every_request_counts_not_the_last_alone(tmp_path: Path) -> None:
    rollout = Rollout()
    for number in range(30):
        rollout.count(usage(1_000 * (number + 1), output=4))
    requests = read(rollout.write(tmp_path)).requests
    assert (len(requests), total(requests), total(requests, "output")) == (30, 465_000, 120)


def test_where_the_last_is_not_told_the_difference_is(tmp_path: Path) -> None:
    rollout = Rollout()
    rollout.count(usage(100))
    rollout.count(usage(150))
    rollout.lines[-1]["payload"]["info"]["last_token_usage"] = None
    assert total(read(rollout.write(tmp_path)).requests) == 250


def test_totals_that_fall_give_no_negative_request(tmp_path: Path) -> None:
    rollout = Rollout()
    rollout.count(usage(500))
    rollout.total = usage(0, 0)
    rollout.count(usage(70))
    assert total(read(rollout.write(tmp_path)).requests) == 570


def test_a_fork_repeats_its_parents_counts_and_they_are_the_parents(tmp_path: Path) -> None:
    parent = Rollout("parent")
    parent.turn("p1")
    for _ in range(8):
        parent.count(usage(39_101, output=0))
    child = Rollout("child", forked_from_id="parent").copied_from(parent, parent.lines)
    child.turn("c1")
    child.count(usage(28_138, output=0))
    parent.write(tmp_path)
    alone = read(child.write(tmp_path))
    logs = read(tmp_path)
    by_session = {
        name: total(one for one in logs.requests if one.session == name)
        for name in ("parent", "child")
    }
    assert by_session == {"parent": 312_808, "child": 28_138}
    assert total(alone.requests) == 340_946
    assert any("may include copied history" in note for note in alone.files[0].notes)


def test_subagents_that_copy_nothing_keep_their_first_turn(tmp_path: Path) -> None:
    parent = Rollout("parent")
    parent.turn("p1")
    parent.count(usage(9_000))
    source = {"subagent": {"thread_spawn": {"parent_thread_id": "parent", "depth": 1}}}
    child = Rollout("child", source=source, session_id="parent")
    child.lines.append({**parent.lines[0]})  # the parent's own meta, and no counts
    child.turn("c1")
    child.count(usage(23_291))
    child.count(usage(23_062))
    parent.write(tmp_path)
    child.write(tmp_path)
    own = [one for one in read(tmp_path).requests if one.agent == "child"]
    assert total(own) == 46_353
    assert {one.session for one in own} == {"parent"}


def test_a_fork_whose_totals_begin_at_its_parents_counts_its_own_turns(tmp_path: Path) -> None:
    parent = Rollout("parent")
    parent.count(usage(3_157_900_000, output=0))
    child = Rollout("child", forked_from_id="parent")
    child.total = dict(parent.total)
    child.turn("c1")
    child.count(usage(9_035, output=0))
    child.count(usage(748_286, output=0))
    parent.write(tmp_path)
    child.write(tmp_path)
    own = [one for one in read(tmp_path).requests if one.session == "child"]
    assert total(own) == 757_321


def test_a_compaction_that_has_a_record_is_counted(tmp_path: Path) -> None:
    rollout = Rollout()
    rollout.turn()
    rollout.count(usage(100))
    rollout.record("resp_1", usage(100))
    rollout.record("resp_compaction", usage(90_000, output=700))
    rollout.add(
        "compacted", message="in short", compaction_response_id="resp_compaction",
        latest_token_usage_record={"response_id": "resp_1", "usage": usage(100)},
        replacement_history=[{"type": "message", "role": "user", "content": []}],
    )  # fmt: skip
    rollout.record("resp_2", usage(40))
    rollout.record("resp_2", usage(40))
    rollout.record("other", usage(5_000), thread="another-thread")
    requests = read(rollout.write(tmp_path)).requests
    # The count before the first record is another view of the same request.
    assert total(requests) == 100 + 90_000 + 40
    assert requests[-1].starts == "compaction"


def test_counts_before_the_first_record_and_records_from_then_on(tmp_path: Path) -> None:
    rollout = Rollout()
    rollout.count(usage(100))
    rollout.record("resp_1", usage(200))
    rollout.count(usage(200))
    rollout.record("resp_2", usage(300))
    rollout.count(usage(300))
    assert total(read(rollout.write(tmp_path)).requests) == 600


def test_compactions_without_a_record_are_said_to_be_missing(tmp_path: Path) -> None:
    rollout = Rollout()
    rollout.count(usage(100))
    rollout.add("compacted", message="in short", replacement_history=[])
    rollout.count(usage(20))
    logs = read(rollout.write(tmp_path))
    assert any("compactions whose tokens are not in this log" in n for n in logs.files[0].notes)


def test_any_originator_is_read(tmp_path: Path) -> None:
    rollout = Rollout()
    rollout.lines[0]["payload"]["originator"] = "some_desktop_app"
    rollout.count(usage(100))
    assert total(read(rollout.write(tmp_path)).requests) == 100


def test_of_copies_the_active_and_the_plain_one_counts(tmp_path: Path) -> None:
    rollout = Rollout()
    rollout.count(usage(100))
    rollout.write(tmp_path / "archived_sessions")
    rollout.write(tmp_path / "sessions" / "2026" / "05" / "01")
    logs = read(tmp_path)
    assert total(logs.requests) == 100
    assert {Path(one.file).parent.name: one.requests for one in logs.files} == {
        "archived_sessions": 0,
        "01": 1,
    }


def test_prompts_tools_and_times_are_those_of_the_request(tmp_path: Path) -> None:
    rollout = Rollout(base_instructions={"text": "Be brief."})
    rollout.turn()
    rollout.item(type="message", role="user", content=[{"type": "input_text", "text": "look"}])
    rollout.item(type="reasoning", summary=[])
    rollout.item(type="function_call", name="exec_command", call_id="c1", arguments="{}")
    rollout.count(usage(100))
    rollout.item(
        type="function_call_output", call_id="c1", output="Chunk ID: 1\nWall time: 1.5 seconds\nok"
    )
    rollout.item(type="message", role="assistant", content=[{"type": "text", "text": "done"}])
    rollout.count(usage(150))
    first, second = read(rollout.write(tmp_path)).requests
    assert (first.model, first.provider, first.starts) == ("gpt-5.1-codex", "openai", "session")
    [tool] = first.tools
    assert (tool.name, tool.own_s.value, tool.ended_s.value) == (
        "exec_command",
        1.5,
        (tool.began_s.value or 0) + 2,
    )
    assert first.prompt is not None
    assert second.prompt is not None
    kinds = [piece.kind for piece in first.prompt.pieces]  # type: ignore[union-attr]
    assert kinds == ["system", "message"]
    assert len(second.prompt.pieces) == 5  # type: ignore[union-attr]
    assert second.output_text == "done"
    assert (second.ended_s.value or 0) - (second.began_s.value or 0) == 2


def test_files_from_before_the_envelope_are_estimated(tmp_path: Path) -> None:
    path = tmp_path / "rollout-2025-06-01T10-00-00-old.jsonl"
    lines = [
        {"id": "old", "timestamp": "2025-06-01T10:00:00Z", "instructions": "Be brief."},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "look"}]},
        {"type": "message", "role": "assistant", "content": [{"type": "text", "text": "done"}]},
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    [request] = read(path).requests
    assert request.counts.prompt.kind == "estimated"
    assert request.session == "old"


@pytest.mark.skipif(not DATA.is_dir(), reason="needs ../shared/data/logs")
def test_a_real_rollout_gives_the_totals_worked_out_by_hand() -> None:
    requests = read(DATA / "codex" / "tracelab_codex.jsonl").requests
    named = ("prompt", "cache_read", "output", "reasoning")
    assert len(requests) == 9
    assert [total(requests, name) for name in named] == [95_819, 79_488, 1_912, 581]


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_damage_raises_nothing(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    rollout = Rollout(source={"subagent": {"thread_spawn": {"parent_thread_id": "p"}}})
    rollout.turn()
    rollout.item(type="message", role="user", content=[{"type": "input_text", "text": "look"}])
    rollout.item(type="function_call", name="x", call_id="c1", arguments="{}")
    rollout.count(usage(100))
    rollout.item(type="function_call_output", call_id="c1", output="Wall time: 1 seconds")
    rollout.record("r", usage(5))
    rollout.add("compacted", replacement_history=[{}])
    odd = st.one_of(st.none(), st.integers(), st.text(max_size=3), st.just([]), st.just({}))
    for _ in range(data.draw(st.integers(1, 4))):
        at: Any = rollout.lines[data.draw(st.integers(0, len(rollout.lines) - 1))]
        while isinstance(at, dict) and at:
            key = data.draw(st.sampled_from(sorted(at)))
            if isinstance(at[key], dict) and data.draw(st.booleans()):
                at = at[key]
                continue
            at[key] = data.draw(odd)
            break
    logs = read(rollout.write(tmp_path_factory.mktemp("damaged")))
    assert total(logs.requests) >= 0
