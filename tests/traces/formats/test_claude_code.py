"""Claude Code transcripts: a response counts once, whatever lines and files tell of it."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reflexarc.traces.formats.claude_code import ClaudeCode
from reflexarc.traces.logs import Logs, read_logs
from reflexarc.traces.requests import RecordedRequest

DATA = Path(__file__).parents[4] / "shared" / "data" / "logs"


class Transcript:
    """Writes lines, each after the one before unless told otherwise."""

    def __init__(self, session: str = "s1") -> None:
        self.session = session
        self.lines: list[dict[str, Any]] = []
        self.last: str | None = None
        self.clock = 0

    def add(self, kind: str, after: str | None = "last", **fields: Any) -> str:
        self.clock += 1
        uuid = fields.pop("uuid", f"{self.session}-{len(self.lines)}")
        line = {
            "type": kind,
            "uuid": uuid,
            "parentUuid": self.last if after == "last" else after,
            "timestamp": f"2026-09-01T10:{self.clock // 60:02d}:{self.clock % 60:02d}.000Z",
            "sessionId": self.session,
            **fields,
        }
        self.lines.append(line)
        self.last = uuid
        return uuid

    def user(self, content: Any, after: str | None = "last", **fields: Any) -> str:
        return self.add("user", after, message={"role": "user", "content": content}, **fields)

    def answer(
        self, id: str | None, blocks: list[Any], after: str | None = "last", **fields: Any
    ) -> str:
        used = {
            "input_tokens": fields.pop("input", 10),
            "cache_read_input_tokens": fields.pop("read", 0),
            "cache_creation_input_tokens": fields.pop("written", 0),
            "output_tokens": fields.pop("output", 5),
            **fields.pop("usage", {}),
        }
        message = {
            "role": "assistant",
            "model": fields.pop("model", "claude-sonnet-4-5"),
            "content": blocks,
            "usage": used,
            "stop_reason": fields.pop("stop", None),
        }
        if id is not None:
            message["id"] = id
        return self.add("assistant", after, message=message, **fields)

    def write(self, path: Path) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(line) + "\n" for line in self.lines))
        return path


TEXT = {"type": "text", "text": "x"}


def use(number: int, name: str = "Bash") -> dict[str, Any]:
    return {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": {"command": "ls"}}


def result(number: int, text: str = "done", **more: Any) -> list[dict[str, Any]]:
    return [{"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": text, **more}]


def read(*paths: Path) -> Logs:
    return read_logs(paths, [ClaudeCode()])


def total(logs: Logs, name: str) -> float:
    made = [request for request in logs.requests if not request.failed]
    return sum(getattr(request.counts, name).value or 0 for request in made)


def made(logs: Logs) -> list[RecordedRequest]:
    return [request for request in logs.requests if not request.failed]


def test_what_was_answered_fast_is_not_of_the_usual_tier(tmp_path: Path) -> None:
    written = Transcript()
    written.answer("m1", [], usage={"service_tier": "standard", "speed": "fast"})
    written.answer("m2", [], usage={"service_tier": "standard", "speed": "standard"})

    requests = read(written.write(tmp_path / "s1.jsonl")).requests

    assert [one.service_tier for one in requests] == ["fast", "standard"]


def test_a_line_that_goes_on_from_an_unfinished_one_is_of_the_same_response(tmp_path: Path) -> None:
    written = Transcript()
    written.user("look")
    written.answer("m1", [], input=3, read=0, output=1)
    written.answer("m1", [{"type": "text", "text": "done"}], input=3, read=50_000, output=159)

    (request,) = read(written.write(tmp_path / "s1.jsonl")).requests

    assert (request.counts.prompt.value, request.counts.output.value) == (50_003, 159)


@pytest.mark.parametrize(
    ("usage", "wanted"),
    [
        ({"input_tokens": 23_000, "output_tokens": 1_000}, [23_000, 180_000]),
        ({"input_tokens": 203_000, "output_tokens": 4_500}, [203_000]),
    ],
    ids=["beside the usage", "inside it"],
)
def test_what_a_providers_compaction_read_counts_once(
    tmp_path: Path, usage: dict[str, Any], wanted: list[int]
) -> None:
    passes = [
        {"type": "compaction", "input_tokens": 180_000, "output_tokens": 3_500},
        {"type": "message", "input_tokens": 23_000, "output_tokens": 1_000},
    ]
    written = Transcript()
    written.user("look")
    written.answer("m1", [], usage={**usage, "iterations": passes})

    requests = read(written.write(tmp_path / "s1.jsonl")).requests

    assert [one.counts.prompt.value for one in requests] == wanted
    assert {one.model for one in requests} == {"claude-sonnet-4-5"}
    assert sum(one.counts.output.value or 0 for one in requests) == 4_500


def test_of_lines_that_grow_the_greatest_output_counts_once(tmp_path: Path) -> None:
    script = Transcript()
    for output, block in ((9, {"type": "thinking", "thinking": ""}), (9, TEXT), (159, use(1))):
        script.answer("msg_A", [block], input=10, read=15_555, written=11_862, output=output)
    script.answer("msg_A", [TEXT], input=10, read=15_555, written=11_862, output=0)
    logs = read(script.write(tmp_path / "s1.jsonl"))
    assert [len(made(logs)), total(logs, "output"), total(logs, "prompt")] == [1, 159, 27_427]


def test_without_ids_of_requests_those_of_messages_tell(tmp_path: Path) -> None:
    script = Transcript()
    for number in range(171):
        for _ in range(2 + (number < 26)):
            script.answer(f"chatcmpl-{number}", [TEXT], input=100, output=3, requestId="")
    assert len(script.lines) == 368
    logs = read(script.write(tmp_path / "s1.jsonl"))
    assert [len(made(logs)), total(logs, "prompt")] == [171, 17_100]


def test_identical_usage_on_every_line_counts_once(tmp_path: Path) -> None:
    script = Transcript()
    for number in range(89):
        for block in (TEXT, use(number)):
            script.answer(f"msg_{number}", [block], input=7, output=2)
    logs = read(script.write(tmp_path / "s1.jsonl"))
    assert [len(made(logs)), total(logs, "output")] == [89, 178]


def test_calls_of_every_line_are_kept(tmp_path: Path) -> None:
    script = Transcript()
    script.answer("msg_A", [TEXT], output=1)
    script.answer("msg_A", [use(1, "mcp__x__y")], output=1)
    script.answer("msg_A", [use(2), use(2)], output=8)
    [request] = made(read(script.write(tmp_path / "s1.jsonl")))
    assert [tool.name for tool in request.tools] == ["mcp__x__y", "Bash"]


def test_a_sidechain_that_repeats_its_parent_adds_only_its_own(tmp_path: Path) -> None:
    script = Transcript()
    script.answer("msg_A", [TEXT], read=50_000, output=20, requestId="req_1")
    side = {"isSidechain": True, "agentId": "btw"}
    script.answer("msg_A", [TEXT], read=50_000, output=20, requestId="req_2", **side)
    script.answer("msg_B", [TEXT], read=100, output=4, requestId="req_3", **side)
    logs = read(script.write(tmp_path / "s1.jsonl"))
    assert [(one.id, one.agent) for one in made(logs)] == [("msg_A", ""), ("msg_B", "btw")]
    assert total(logs, "cache_read") == 50_100


def test_subagents_are_counted_under_their_agent(tmp_path: Path) -> None:
    root, agent = Transcript(), Transcript()
    root.answer("msg_A", [use(1, "Task")], output=10)
    for number in range(3):
        agent.answer(f"msg_S{number}", [TEXT], output=100, isSidechain=True, agentId="abc")
    root.write(tmp_path / "p" / "s1.jsonl")
    agent.write(tmp_path / "p" / "s1" / "subagents" / "agent-abc.jsonl")
    logs = read(tmp_path)
    assert total(logs, "output") == 310
    assert {(one.session, one.agent) for one in made(logs)} == {("s1", ""), ("s1", "abc")}


def test_a_background_copy_owns_its_new_lines_alone(tmp_path: Path) -> None:
    parent, child = Transcript("parent"), Transcript("child")
    for script in (parent, child):
        for number in range(2):
            script.answer(f"msg_{number}", [TEXT], output=50, uuid=f"shared-{number}")
    child.answer("msg_own", [TEXT], output=80)
    # Their names say nothing of which is the copy.
    parent.write(tmp_path / "zz.jsonl")
    child.write(tmp_path / "aa.jsonl")
    logs = read(tmp_path)
    assert [len(made(logs)), total(logs, "output")] == [3, 180]
    by_file = {Path(report.file).name: report.requests for report in logs.files}
    assert by_file == {"zz.jsonl": 2, "aa.jsonl": 1}


def test_advisors_are_requests_of_their_own_and_the_context_is_the_last_pass(
    tmp_path: Path,
) -> None:
    script = Transcript()
    passes = [
        {"type": "message", "input_tokens": 2, "cache_read_input_tokens": 490_866,
         "cache_creation_input_tokens": 2_496, "output_tokens": 100},
        {"type": "advisor_message", "model": "claude-advisor-1", "input_tokens": 497_522,
         "output_tokens": 900},
        {"type": "message", "input_tokens": 2, "cache_read_input_tokens": 493_362,
         "cache_creation_input_tokens": 1_226, "output_tokens": 200},
    ]  # fmt: skip
    script.answer(
        "msg_B", [TEXT], input=4, read=984_228, written=3_722, output=300,
        usage={"iterations": passes},
    )  # fmt: skip
    main, advisor = made(read(script.write(tmp_path / "s1.jsonl")))
    assert (main.counts.prompt.value, main.counts.context.value) == (987_954, 494_590)
    assert (advisor.model, advisor.counts.prompt.value) == ("claude-advisor-1", 497_522)
    assert advisor.counts.output.value == 900


def test_what_reached_no_model_is_an_error_and_no_request(tmp_path: Path) -> None:
    script = Transcript()
    script.answer("msg_A", [TEXT], output=5)
    script.answer("x1", [TEXT], model="<synthetic>", input=0, output=0)
    script.answer("x2", [TEXT], isApiErrorMessage=True, input=0, output=0)
    logs = read(script.write(tmp_path / "s1.jsonl"))
    assert (logs.files[0].requests, logs.files[0].errors) == (1, 2)


def test_an_id_used_for_another_model_is_another_response(tmp_path: Path) -> None:
    script = Transcript()
    script.answer("msg_A", [TEXT], input=1_000, output=5, model="claude-opus-4-5")
    script.answer("msg_A", [TEXT], input=40, output=5, model="claude-haiku-4-5")
    logs = read(script.write(tmp_path / "s1.jsonl"))
    assert sorted(one.model for one in made(logs)) == ["claude-haiku-4-5", "claude-opus-4-5"]
    assert any(one.notes for one in made(logs))


def test_without_any_id_each_line_is_a_response(tmp_path: Path) -> None:
    script = Transcript()
    script.answer(None, [TEXT], output=5)
    script.answer(None, [TEXT], output=5)
    assert len(made(read(script.write(tmp_path / "s1.jsonl")))) == 2


def test_prompts_hold_what_stands_before_results_of_parallel_calls_too(tmp_path: Path) -> None:
    script = Transcript()
    script.user("please look")
    first = script.answer("msg_A", [use(1)])
    second = script.answer("msg_A", [use(2)])
    script.user(result(1, "one"), after=first, toolUseResult={"durationMs": 1500})
    script.user(result(2, "two", is_error=True), after=second)
    script.answer("msg_B", [TEXT])
    asked, answered = made(read(script.write(tmp_path / "s1.jsonl")))
    assert asked.prompt is not None
    assert answered.prompt is not None
    texts = [piece.raw.decode() for piece in answered.prompt.pieces]  # type: ignore[union-attr]
    assert len(texts) == 5
    assert ["one" in texts[3], "two" in texts[4]] == [True, True]
    assert [tool.own_s.value for tool in asked.tools] == [1.5, None]
    assert [tool.failed for tool in asked.tools] == [False, True]
    assert answered.starts == ""
    assert answered.began_s.kind == "estimated"
    assert answered.gap


def test_compaction_and_rewinding_begin_new_chains(tmp_path: Path) -> None:
    script = Transcript()
    opening = script.user("please look")
    script.answer("msg_A", [TEXT])
    script.user("no, this", after=opening)
    script.answer("msg_B", [TEXT])
    script.add("system", None, subtype="compact_boundary", logicalParentUuid=script.last)
    script.user("in short: ...", isCompactSummary=True)
    script.answer("msg_C", [TEXT])
    requests = made(read(script.write(tmp_path / "s1.jsonl")))
    assert [one.starts for one in requests] == ["session", "rewind", "compaction"]


def test_a_copy_in_a_progress_line_is_the_same_response(tmp_path: Path) -> None:
    script = Transcript()
    inner = {"id": "msg_S", "role": "assistant", "model": "claude-haiku-4-5", "content": [use(9)],
             "usage": {"input_tokens": 4, "output_tokens": 6}}  # fmt: skip
    data = {"type": "agent_progress", "agentId": "abc"}
    script.add("progress", data={**data, "message": {"type": "assistant", "message": inner}})
    script.add("progress", data={"type": "bash_progress"})
    script.answer("msg_S", [TEXT], input=4, output=6, agentId="abc", model="claude-haiku-4-5")
    logs = read(script.write(tmp_path / "s1.jsonl"))
    assert [len(made(logs)), total(logs, "output")] == [1, 6]


def test_unknown_lines_are_counted_and_a_live_file_may_break_off(tmp_path: Path) -> None:
    script = Transcript()
    script.add("telepathy")
    script.add("mode", uuid=None)
    script.answer("msg_A", [TEXT])
    path = script.write(tmp_path / "s1.jsonl")
    path.write_text(path.read_text() + '{"type":"assistant","mess')
    [report] = read(path).files
    assert report.skipped == {"lines of type 'telepathy'": 1, "not JSON": 1}
    assert not report.at_least
    assert any("breaks off" in note for note in report.notes)


def test_a_bad_line_in_the_middle_makes_totals_at_least(tmp_path: Path) -> None:
    script = Transcript()
    script.answer("msg_A", [TEXT])
    path = script.write(tmp_path / "s1.jsonl")
    path.write_text(path.read_text() + "{broken\n" + path.read_text())
    assert read(path).files[0].at_least


def test_odd_numbers_and_absent_ones(tmp_path: Path) -> None:
    script = Transcript()
    script.answer("msg_A", [TEXT], usage={"output_tokens": "12", "cache_read_input_tokens": None})
    script.answer("msg_B", [TEXT], usage={"output_tokens": -4, "input_tokens": 3.0})
    first, second = made(read(script.write(tmp_path / "s1.jsonl")))
    assert (first.counts.output.value, first.counts.cache_read.kind) == (12, "absent")
    assert (second.counts.output.kind, second.counts.prompt.value) == ("absent", 3)


@pytest.mark.skipif(not DATA.is_dir(), reason="needs ../shared/data/logs")
def test_a_real_transcript_gives_the_totals_worked_out_by_hand() -> None:
    logs = read(DATA / "claude-code" / "tracelab_claude.jsonl")
    assert len(made(logs)) == 10
    named = ("prompt", "cache_read", "cache_write", "output")
    assert [total(logs, name) for name in named] == [418_193, 394_068, 21_086, 9_423]


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_damage_raises_nothing_and_the_order_of_files_changes_nothing(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("damaged")
    script = Transcript()
    script.user("please look")
    script.answer("msg_A", [use(1)], read=100)
    script.user(result(1))
    script.answer("msg_B", [TEXT], usage={"iterations": [{"type": "advisor_message"}]})
    odd = st.one_of(st.none(), st.integers(), st.text(max_size=3), st.just([]), st.just({}))
    for _ in range(data.draw(st.integers(1, 4))):
        at: Any = script.lines[data.draw(st.integers(0, len(script.lines) - 1))]
        while isinstance(at, dict) and at:
            key = data.draw(st.sampled_from(sorted(at)))
            if isinstance(at[key], dict) and data.draw(st.booleans()):
                at = at[key]
                continue
            at[key] = data.draw(odd)
            break
    first, second = script.write(folder / "a.jsonl"), script.write(folder / "b.jsonl")
    logs, other = read(first, second), read(second, first)
    for name in ("prompt", "output", "cache_read"):
        assert total(logs, name) >= 0
        assert total(logs, name) == total(other, name)
