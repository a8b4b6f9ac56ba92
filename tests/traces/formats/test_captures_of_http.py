"""What captures of HTTP hold of requests to models: archives, proxies, servers of one's own."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from reflexarc.steps.prompt import Prompt
from reflexarc.traces.logs import Logs
from tests.traces.formats.measures import totals
from tests.traces.formats.written import write_json, write_jsonl

Read = Callable[..., Logs]
ASKED = {"model": "gpt-4.1", "messages": [{"role": "user", "content": "Rain?"}]}
ANSWER = {
    "id": "chatcmpl-1", "choices": [{"message": {"role": "assistant", "content": "Yes."}}],
    "usage": {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11},
}  # fmt: skip


def entry(asked: Any, answer: str) -> dict[str, Any]:
    return {
        "startedDateTime": "2026-01-01T00:00:00.000Z", "time": 1500,
        "request": {"method": "POST", "url": "x", "postData": {"text": json.dumps(asked)}},
        "response": {"status": 200, "content": {"mimeType": "x", "text": answer}},
    }  # fmt: skip


def test_an_archive_s_requests_to_models_are_read_and_its_pages_are_not(
    tmp_path: Path, read: Read
) -> None:
    page = entry({"q": 1}, "<html></html>")
    log = {"log": {"version": "1.2", "entries": [entry(ASKED, json.dumps(ANSWER)), page]}}
    logs = read(write_json(tmp_path / "a.har", log))
    (request,) = logs.requests
    assert (request.counts.prompt.value, request.output_text) == (9, "Yes.")
    assert (request.began_s.value, request.ended_s.value) == (1_767_225_600, 1_767_225_601.5)
    assert isinstance(request.prompt, Prompt)
    assert sum(logs.files[0].skipped.values()) == 1


def test_each_half_of_a_pair_may_have_its_own_time(tmp_path: Path, read: Read) -> None:
    usage = {"input_tokens": 5, "cache_read_input_tokens": 100, "output_tokens": 1}
    begun = {"type": "message_start", "message": {"id": "msg_1", "usage": usage}}
    ended = {"type": "message_delta", "usage": {"output_tokens": 42}}
    raw = "".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in (begun, ended))
    row = {
        "request": {"timestamp": 1_767_225_600.5, "url": "x", "body": ASKED},
        "response": {"timestamp": 1_767_225_603.5, "status_code": 200, "body_raw": raw},
        "logged_at": "2026-01-01T00:00:09Z",
    }  # fmt: skip
    (request,) = read(write_jsonl(tmp_path / "log.jsonl", row)).requests
    assert (request.began_s.value, request.ended_s.value) == (1_767_225_600.5, 1_767_225_603.5)
    assert (request.counts.prompt.value, request.counts.output.value) == (105, 42)


def test_servers_of_one_s_own_count_at_the_top(tmp_path: Path, read: Read) -> None:
    answer = {
        "model": "llama3", "message": {"role": "assistant", "content": "Yes."}, "done": True,
        "prompt_eval_count": 26, "eval_count": 7,
    }  # fmt: skip
    found = totals(
        read(write_jsonl(tmp_path / "a.jsonl", {"request": ASKED, "response": answer})).requests
    )
    assert (found["prompt"], found["output"]) == (26, 7)


def test_a_cloud_s_form_has_cached_tokens_beside_its_input(tmp_path: Path, read: Read) -> None:
    use = {"toolUse": {"toolUseId": "t1", "name": "look", "input": {}}}
    answer = {
        "output": {"message": {"role": "assistant", "content": [{"text": "So."}, use]}},
        "usage": {"inputTokens": 5, "outputTokens": 7, "totalTokens": 112,
                  "cacheReadInputTokens": 100, "cacheWriteInputTokens": 0},
    }  # fmt: skip
    (request,) = read(
        write_jsonl(tmp_path / "a.jsonl", {"request": ASKED, "response": answer})
    ).requests
    assert (request.counts.prompt.value, request.counts.cache_read.value) == (105, 100)
    assert [(tool.name, tool.id) for tool in request.tools] == [("look", "t1")]
    assert request.output_text == "So."


def test_what_a_logger_puts_around_a_pair_is_beside_it(tmp_path: Path, read: Read) -> None:
    pair = {"request": ASKED, "response": ANSWER}
    rows = [
        {"timestamp": "2026-01-01T00:00:00Z", "level": "info", "payload": pair},
        {"event": "llm_call", "data": json.dumps({**pair, "response": {**ANSWER, "id": "other"}})},
    ]
    logs = read(write_jsonl(tmp_path / "a.jsonl", *rows))
    assert totals(logs.requests)["prompt"] == 18
    assert 1_767_225_600 in [request.began_s.value for request in logs.requests]


def test_halves_of_pairs_that_are_lines_of_their_own_are_one_request(
    tmp_path: Path, read: Read
) -> None:
    def half(kind: str, id: str, second: int, body: Any) -> dict[str, Any]:
        at = f"2026-01-01T00:00:{second:02d}Z"
        return {"type": kind, "request_id": id, "timestamp": at, "body": body}

    rows = [
        half("llm.request", "a", 0, ASKED),
        half("llm.request", "b", 1, ASKED),
        half("llm.response", "b", 2, {**ANSWER, "id": "chatcmpl-2"}),
        half("llm.response", "a", 5, ANSWER),
        half("llm.request", "c", 6, ASKED),
        half("llm.error", "c", 7, {"message": "busy"}),
    ]
    logs = read(write_jsonl(tmp_path / "a.jsonl", *rows))
    (report,) = logs.files
    assert (report.requests, report.errors) == (2, 1)
    first = logs.requests[0]
    assert (first.counts.prompt.value, first.began_s.value, first.ended_s.value) == (
        9, 1_767_225_600, 1_767_225_605
    )  # fmt: skip
    assert isinstance(first.prompt, Prompt)
