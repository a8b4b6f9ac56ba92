"""Requests and responses as people keep them: whatever the names, each request once and whole."""

import csv
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reflexarc.steps.prompt import Prompt
from reflexarc.traces.logs import Logs
from reflexarc.traces.requests import RecordedRequest
from tests.traces.formats.measures import damaged, survives, totals
from tests.traces.formats.written import write_json, write_jsonl

Read = Callable[..., Logs]

TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
LOOK = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
CHAT = {
    "model": "gpt-4.1",
    "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Rain?"}],
    "tools": [TOOL],
}
CHAT_ANSWER = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1_767_225_600,
    "model": "gpt-4.1-2025-04-14",
    "service_tier": "default",
    "choices": [
        {
            "index": 0,
            "message": {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": "c1",
                        "type": "function",
                        "function": {"name": "look", "arguments": "{}"},
                    }
                ],
            },
        }
    ],
    "usage": {
        "prompt_tokens": 100,
        "completion_tokens": 20,
        "total_tokens": 120,
        "prompt_tokens_details": {"cached_tokens": 64},
        "completion_tokens_details": {"reasoning_tokens": 8},
    },
}
EXPECTED = {
    "requests": 1, "prompt": 100, "cached": 64, "written": 0, "output": 20, "reasoning": 8
}  # fmt: skip
CLAUDE = {
    "model": "claude-sonnet-4-5",
    "max_tokens": 100,
    "system": [{"type": "text", "text": "Be brief."}],
    "messages": [{"role": "user", "content": "Rain?"}],
    "tools": [{"name": "look", "input_schema": {"type": "object"}}],
}


def only(logs: Logs) -> RecordedRequest:
    (request,) = logs.requests
    return request


def paths_of(request: RecordedRequest, *kinds: str) -> list[str]:
    assert isinstance(request.prompt, Prompt)
    return [piece.path for piece in request.prompt.pieces if piece.kind in kinds]


PAIRS: list[dict[str, Any]] = [
    {"request": CHAT, "response": CHAT_ANSWER},
    {"request": json.dumps(CHAT), "response": json.dumps(CHAT_ANSWER)},
    {"request": {"body": CHAT}, "response": {"status_code": 200, "body": CHAT_ANSWER}},
    {"request": {"body": json.dumps(CHAT)}, "response": {"body": json.dumps(CHAT_ANSWER)}},
    {"request_body": CHAT, "response_body": CHAT_ANSWER, "unknown": [1]},
    {"requestBody": json.dumps(CHAT), "responseBody": json.dumps(CHAT_ANSWER)},
    {"input": CHAT, "output": CHAT_ANSWER, "timestamp": 1_767_225_600},
    {"kwargs": CHAT, "response": CHAT_ANSWER},
    {"body": CHAT, "response": {"body": CHAT_ANSWER}},
    {"req": {"json": CHAT}, "resp": {"json": CHAT_ANSWER}},
    {"custom_id": "one", "response": {"status_code": 200, "body": CHAT_ANSWER}, "error": None},
    CHAT_ANSWER,
]


@pytest.mark.parametrize("row", PAIRS, ids=lambda row: "+".join(row))
def test_a_pair_is_read_whatever_its_names(tmp_path: Path, read: Read, row: dict[str, Any]) -> None:
    logs = read(write_jsonl(tmp_path / "log.jsonl", row))
    request = only(logs)
    assert totals(logs.requests) == EXPECTED
    assert request.counts.prompt.kind == "measured"
    assert (request.model, request.service_tier) == ("gpt-4.1-2025-04-14", "default")
    assert [(tool.name, tool.id) for tool in request.tools] == [("look", "c1")]


@pytest.mark.parametrize("row", PAIRS[:10], ids=lambda row: "+".join(row))
def test_a_request_s_pieces_are_all_of_its_prompt(
    tmp_path: Path, read: Read, row: dict[str, Any]
) -> None:
    request = only(read(write_jsonl(tmp_path / "log.jsonl", row)))
    assert isinstance(request.prompt, Prompt)
    assert request.prompt.complete
    assert paths_of(request, "tool", "message") == ["tools[0]", "messages[0]", "messages[1]"]
    raws = [json.loads(piece.raw) for piece in request.prompt.pieces if piece.kind == "message"]
    assert raws == CHAT["messages"]


def test_lists_of_pairs_and_packed_files_are_read_alike(tmp_path: Path, read: Read) -> None:
    for name, value in (("a.json", [PAIRS[0]]), ("b.json", {"data": [PAIRS[0]]})):
        assert totals(read(write_json(tmp_path / name, value)).requests) == EXPECTED
    packed = tmp_path / "c.jsonl.gz"
    packed.write_bytes(gzip.compress(json.dumps(PAIRS[0]).encode()))
    assert totals(read(packed).requests) == EXPECTED


def test_pairs_in_csv_are_read(tmp_path: Path, read: Read) -> None:
    path = tmp_path / "log.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["request", "response", "session_id", "cost_usd"])
        writer.writerow([json.dumps(CHAT), json.dumps(CHAT_ANSWER), "s1", "0.25"])
    logs = read(path)
    assert totals(logs.requests) == EXPECTED
    assert (only(logs).session, only(logs).cost_usd.value) == ("s1", 0.25)


def test_one_response_logged_twice_counts_once_whatever_the_order_of_files(
    tmp_path: Path, read: Read
) -> None:
    one = write_jsonl(tmp_path / "a.jsonl", PAIRS[0])
    other = write_jsonl(tmp_path / "b.jsonl", PAIRS[4], {"request": CHAT, "response": "No."})
    forward, backward = read(one, other), read(other, one)
    assert totals(forward.requests)["requests"] == 2
    assert forward.requests == backward.requests
    assert sum(sum(report.duplicates.values()) for report in forward.files) == 1


def test_equal_requests_without_ids_in_one_file_stay_apart(tmp_path: Path, read: Read) -> None:
    row = {"request": CHAT, "response": "No."}
    one = write_jsonl(tmp_path / "a.jsonl", row, row)
    assert totals(read(one).requests)["requests"] == 2
    copy = write_jsonl(tmp_path / "b.jsonl", row, row)
    assert totals(read(one, copy).requests)["requests"] == 2


def test_what_anthropic_counts_beside_input_is_part_of_the_prompt(
    tmp_path: Path, read: Read
) -> None:
    answer = {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5",
        "content": [
            {"type": "thinking", "thinking": "hm"},
            {"type": "text", "text": "Let me see."},
            {"type": "tool_use", "id": "t1", "name": "look", "input": {}},
        ],
        "usage": {
            "input_tokens": 5, "output_tokens": 30, "cache_read_input_tokens": 1000,
            "cache_creation_input_tokens": 200,
            "cache_creation": {"ephemeral_5m_input_tokens": 50, "ephemeral_1h_input_tokens": 0},
        },
    }  # fmt: skip
    request = only(
        read(write_jsonl(tmp_path / "log.jsonl", {"request": CLAUDE, "response": answer}))
    )
    counts = request.counts
    assert (counts.prompt.value, counts.prompt.kind) == (1205, "derived")
    assert (counts.cache_read.value, counts.cache_write.value) == (1000, 200)
    assert [tool.name for tool in request.tools] == ["look"]
    assert request.output_text == "Let me see."
    assert paths_of(request, "tool", "system", "message") == [
        "tools[0]", "system[0]", "messages[0]"
    ]  # fmt: skip


def sse(*events: dict[str, Any], named: bool = False) -> str:
    return "".join(
        (f"event: {event['type']}\n" if named else "") + f"data: {json.dumps(event)}\n\n"
        for event in events
    )


def test_a_chat_stream_kept_as_text_is_put_together(tmp_path: Path, read: Read) -> None:
    def chunk(delta: dict[str, Any], **more: Any) -> dict[str, Any]:
        return {
            "id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "gpt-4.1",
            "choices": [{"index": 0, "delta": delta}], **more,
        }  # fmt: skip

    begun = {"index": 0, "id": "c1", "function": {"name": "look", "arguments": ""}}
    stream = sse(
        chunk({"role": "assistant", "content": "So"}),
        chunk({"content": "."}),
        chunk({"tool_calls": [begun]}),
        chunk({"tool_calls": [{"index": 0, "function": {"arguments": "{}"}}]}),
        {**chunk({}), "choices": [], "usage": CHAT_ANSWER["usage"]},
    )
    request = only(
        read(
            write_jsonl(
                tmp_path / "log.jsonl", {"request": CHAT, "response": stream + "data: [DONE]\n\n"}
            )
        )
    )
    assert totals([request]) == EXPECTED
    assert (request.output_text, [tool.name for tool in request.tools]) == ("So.", ["look"])


def test_a_messages_stream_has_its_last_word_on_tokens(tmp_path: Path, read: Read) -> None:
    usage = {"input_tokens": 5, "cache_read_input_tokens": 100, "output_tokens": 1}
    stream = sse(
        {"type": "message_start", "message": {"id": "msg_1", "model": "claude-x", "usage": usage}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hi"}},
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {},
            "usage": {"output_tokens": 42, "input_tokens": None},
        },
        {"type": "message_stop"},
        named=True,
    )
    request = only(
        read(write_jsonl(tmp_path / "log.jsonl", {"request": CLAUDE, "response": {"body": stream}}))
    )
    assert (request.counts.prompt.value, request.counts.output.value) == (105, 42)
    assert request.output_text == "Hi"


def test_a_responses_stream_is_its_last_event(tmp_path: Path, read: Read) -> None:
    asked = {"model": "gpt-5", "instructions": "Be brief.", "input": "Rain?", "store": False}
    call = {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"}
    body = {
        "id": "resp_1", "object": "response", "model": "gpt-5", "output": [call],
        "usage": {
            "input_tokens": 70, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 9,
            "output_tokens_details": {"reasoning_tokens": 4}, "total_tokens": 79,
        },
    }  # fmt: skip
    stream = sse(
        {"type": "response.created", "response": {**body, "output": [], "usage": None}},
        {"type": "response.completed", "response": body},
    )
    request = only(
        read(write_jsonl(tmp_path / "log.jsonl", {"request": asked, "response": stream}))
    )
    counts = request.counts
    assert (counts.prompt.value, counts.cache_read.value, counts.output.value) == (70, 0, 9)
    assert [(tool.name, tool.id) for tool in request.tools] == [("look", "c1")]
    assert paths_of(request, "system", "message") == ["instructions", "input[0]"]


def test_results_of_anthropic_s_batches_are_read(tmp_path: Path, read: Read) -> None:
    usage = {"input_tokens": 7, "output_tokens": 3}
    message = {
        "id": "msg_1", "type": "message", "role": "assistant", "content": [], "usage": usage
    }  # fmt: skip
    done = {"custom_id": "a", "result": {"type": "succeeded", "message": message}}
    failed = {"custom_id": "b", "result": {"type": "errored", "error": {"type": "overloaded"}}}
    logs = read(write_jsonl(tmp_path / "batch.jsonl", done, failed))
    assert totals(logs.requests)["prompt"] == 7
    assert [(report.requests, report.errors) for report in logs.files] == [(1, 1)]


def test_tokens_that_are_not_in_the_log_are_estimated_from_the_text(
    tmp_path: Path, read: Read
) -> None:
    row = {
        "timestamp": 1_760_995_776_640_783, "input": "user: hello\nassistant: hi " + "x" * 374,
        "output": "y" * 40, "session_id": "s1",
    }  # fmt: skip
    request = only(read(write_jsonl(tmp_path / "dump.jsonl", row)))
    assert (request.counts.prompt.value, request.counts.prompt.kind) == (100, "estimated")
    assert (request.counts.output.value, request.counts.output.kind) == (10, "estimated")
    assert request.counts.cache_read.kind == "absent"
    assert request.began_s.value == pytest.approx(1_760_995_776.640783)
    assert request.session == "s1"


def test_a_plain_prompt_is_one_piece_however_it_looks(tmp_path: Path, read: Read) -> None:
    given = 'system: be brief\nuser: ["not", "parsed"]'
    row = {"timestamp": 1, "input": given, "output": "ok", "session_id": "s"}
    prompt = only(read(write_jsonl(tmp_path / "dump.jsonl", row))).prompt
    assert isinstance(prompt, Prompt)
    (piece,) = prompt.pieces
    assert (piece.raw, piece.plain, piece.kind) == (given.encode(), True, "message")


def test_a_dump_s_chat_messages_are_pieces(tmp_path: Path, read: Read) -> None:
    row = {"timestamp": 1, "input": CHAT["messages"], "output": "ok", "session_id": "s"}
    request = only(read(write_jsonl(tmp_path / "dump.jsonl", row)))
    assert paths_of(request, "system", "message") == ["messages[0]", "messages[1]"]


def test_json_that_a_model_wrote_is_its_text(tmp_path: Path, read: Read) -> None:
    row = {"timestamp": 1, "input": '{"task": 1}', "output": '{"done": true}', "session_id": "s"}
    request = only(read(write_jsonl(tmp_path / "dump.jsonl", row)))
    assert request.output_text == '{"done": true}'
    assert isinstance(request.prompt, Prompt)
    assert [piece.raw for piece in request.prompt.pieces] == [b'{"task": 1}']


def test_errors_are_no_requests(tmp_path: Path, read: Read) -> None:
    rows = [
        {"request": CHAT, "response": {"error": {"message": "busy"}}},
        {"request": CHAT, "response": {"status_code": 529, "body": "busy"}},
        {"request": CHAT, "response": None, "status": "error"},
        PAIRS[0],
    ]
    logs = read(write_jsonl(tmp_path / "log.jsonl", *rows))
    assert totals(logs.requests) == EXPECTED
    assert logs.files[0].errors == 3


def test_times_are_taken_where_their_unit_is_said(tmp_path: Path, read: Read) -> None:
    at = "2026-01-01T00:00:00Z"
    row = {**PAIRS[0], "timestamp": at, "latency_ms": 1500, "ttft_ms": 250, "duration": 7}
    request = only(read(write_jsonl(tmp_path / "log.jsonl", row)))
    began, first, ended = (one.value for one in (request.began_s, request.first_s, request.ended_s))
    assert (began, first, ended) == (1_767_225_600, 1_767_225_600.25, 1_767_225_601.5)
    vague = {**PAIRS[0], "timestamp": at, "latency": 1500}
    assert only(read(write_jsonl(tmp_path / "b.jsonl", vague))).ended_s.kind == "absent"


def test_bad_lines_are_counted_and_the_rest_is_read(tmp_path: Path, read: Read) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(json.dumps(PAIRS[0]) + "\n{broken\n[]\n7\n" + json.dumps({"x": 1}) + "\n")
    (report,) = read(path).files
    assert (report.requests, report.at_least) == (1, True)
    assert sum(report.skipped.values()) == 3


@given(st.integers(min_value=0), st.sampled_from(PAIRS))
@settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_no_damage_raises(tmp_path: Path, seed: int, row: dict[str, Any]) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(damaged((json.dumps(row) + "\n").encode() * 2, seed))
    survives([path])


def test_every_line_of_the_public_dumps_is_a_request(data: Path, read: Read) -> None:
    """Their texts, counted here by another reader, at four bytes a token."""
    folder = data / "requests"
    lines = prompt = output = 0
    sessions: set[str] = set()
    for path in folder.glob("*.gz"):
        with gzip.open(path, "rt", encoding="utf-8") as file:
            for one in map(json.loads, file):
                lines += 1
                sessions.add(one["session_id"])
                prompt += -(-len(one["input"].encode()) // 4)
                output += -(-len(one["output"].encode()) // 4)
    logs = read(folder)
    found = totals(logs.requests)
    assert (found["requests"], found["prompt"], found["output"]) == (lines, prompt, output)
    assert {request.session for request in logs.requests} == sessions
