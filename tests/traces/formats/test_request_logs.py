"""Logs of requests and answers of providers' APIs, in the wrappings that people use."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reflexarc.steps.prompt import Prompt
from reflexarc.traces.formats import FORMATS
from reflexarc.traces.logs import Logs, read_logs

DATA = Path(__file__).parents[4] / "shared" / "data" / "requests"
USED = {
    "chat": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110,
             "prompt_tokens_details": {"cached_tokens": 60}},
    "messages": {"input_tokens": 30, "output_tokens": 10, "cache_read_input_tokens": 60,
                 "cache_creation_input_tokens": 10},
    "responses": {"input_tokens": 100, "output_tokens": 10, "total_tokens": 110,
                  "input_tokens_details": {"cached_tokens": 60}},
}  # fmt: skip


def asked(dialect: str) -> dict[str, Any]:
    if dialect == "responses":
        return {"model": "gpt-5.1", "input": [{"role": "user", "content": "hi"}]}
    body: dict[str, Any] = {"model": "gpt-5.1", "messages": [{"role": "user", "content": "hi"}]}
    if dialect == "messages":
        body |= {"model": "claude-sonnet-4-5", "max_tokens": 9, "system": "Be brief."}
    return body


def answered(dialect: str, number: int = 1) -> dict[str, Any]:
    usage = USED[dialect]
    if dialect == "chat":
        function = {"name": "look", "arguments": "{}"}
        call = {"id": "c1", "type": "function", "function": function}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
        return {"id": f"chatcmpl-{number}", "object": "chat.completion", "model": "gpt-5.1",
                "choices": [choice], "usage": usage}  # fmt: skip
    if dialect == "messages":
        block = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}
        return {"id": f"msg_{number}", "type": "message", "role": "assistant",
                "model": "claude-sonnet-4-5", "content": [block], "stop_reason": "tool_use",
                "usage": usage}  # fmt: skip
    item = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "look",
            "arguments": "{}", "status": "completed"}  # fmt: skip
    return {"id": f"resp_{number}", "object": "response", "model": "gpt-5.1", "output": [item],
            "status": "completed", "usage": usage}  # fmt: skip


def _wrapped(way: str, request: dict[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
    return {
        "pair": {"request": request, "response": answer},
        "bodies": {"request_body": json.dumps(request), "response_body": json.dumps(answer)},
        "http": {
            "request": {"url": "x", "body": request},
            "response": {"status_code": 200, "body": json.dumps(answer)},
        },
        "short": {"ts": 1_790_000_000, "req": request, "resp": answer, "latency_ms": 1500},
        "batch": {"custom_id": "1", "response": {"status_code": 200, "body": answer}},
        "bare": answer,
    }[way]


def read(path: Path, *values: Any) -> Logs:
    path.write_text("".join(json.dumps(one) + "\n" for one in values))
    return read_logs([path], FORMATS)


@pytest.mark.parametrize("dialect", ["chat", "messages", "responses"])
@pytest.mark.parametrize("way", ["pair", "bodies", "http", "short", "batch", "bare"])
def test_any_wrapping_gives_the_same_counts(way: str, dialect: str, tmp_path: Path) -> None:
    line = _wrapped(way, asked(dialect), answered(dialect))
    logs = read(tmp_path / "log.jsonl", line, line)
    [request] = logs.requests
    counts = request.counts
    assert (counts.prompt.value, counts.cache_read.value, counts.output.value) == (100, 60, 10)
    assert counts.cache_write.value == (10 if dialect == "messages" else None)
    assert [tool.name for tool in request.tools] == ["look"]
    assert request.provider == ("anthropic" if dialect == "messages" else "openai")
    assert isinstance(request.prompt, Prompt) == (way not in ("batch", "bare"))
    if way == "short":
        assert (request.ended_s.value, request.ended_s.kind) == (1_790_000_001.5, "derived")


def test_streams_are_read_with_the_usage_of_their_end(tmp_path: Path) -> None:
    events = [
        {"type": "message_start", "message": {"id": "msg_1", "type": "message", "role": "assistant",
         "model": "claude-sonnet-4-5", "content": [], "usage": {**USED["messages"],
                                                                "output_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "yes"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"},
         "usage": {"output_tokens": 10}},
        {"type": "message_stop"},
    ]  # fmt: skip
    stream = "".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in events)
    [request] = read(
        tmp_path / "log.jsonl", {"request": asked("messages"), "response": stream}
    ).requests
    assert (request.id, request.counts.output.value, request.output_text) == ("msg_1", 10, "yes")
    assert (request.counts.prompt.value, request.counts.cache_read.value) == (100, 60)


def test_answers_without_usage_are_estimated_and_errors_are_errors(tmp_path: Path) -> None:
    answer = {name: one for name, one in answered("chat").items() if name != "usage"}
    refused = {"response": {"status_code": 429, "body": {"error": {"message": "slow down"}}}}
    logs = read(
        tmp_path / "log.jsonl",
        {"request": asked("chat"), "response": answer},
        {"request": asked("chat"), **refused},
    )
    assert logs.requests[0].counts.prompt.kind == "estimated"
    assert (logs.files[0].requests, logs.files[0].errors) == (1, 1)
    assert len({one.session for one in logs.requests}) == 1


def test_conversations_are_named_or_known_by_their_opening(tmp_path: Path) -> None:
    other = asked("chat") | {"messages": [{"role": "user", "content": "other"}]}
    longer = asked("chat")
    longer["messages"] = [*longer["messages"], {"role": "assistant", "content": "yes?"}]
    lines = [
        {"request": body, "response": answered("chat", number), **more}
        for number, (body, more) in enumerate(
            [(asked("chat"), {}), (longer, {}), (other, {}), (other, {"session_id": "s"})]
        )
    ]
    by_id = {one.id: one.session for one in read(tmp_path / "log.jsonl", *lines).requests}
    sessions = [by_id[f"chatcmpl-{number}"] for number in range(4)]
    assert sessions[0] == sessions[1]
    assert len(set(sessions)) == 3
    assert sessions[3] == "s"


def test_a_dump_of_requests_is_read_in_order_of_time(tmp_path: Path) -> None:
    lines = [
        {"timestamp": 1_760_428_258_000_000 + at, "input": text, "output": "ok", "session_id": "s"}
        for at, text in ((2, "a" * 80), (1, "a" * 40), (3, [{"role": "user", "content": "b"}]))
    ]
    first, second, third = read(tmp_path / "dump.jsonl", *lines).requests
    assert [one.counts.prompt.value for one in (first, second)] == [10, 20]
    assert (first.counts.prompt.kind, first.session) == ("estimated", "s")
    assert isinstance(third.prompt, Prompt)
    assert not third.prompt.pieces[0].plain


@pytest.mark.skipif(not DATA.is_dir(), reason="needs ../shared/data/requests")
def test_every_line_of_the_real_dumps_is_a_request() -> None:
    logs = read_logs([DATA], FORMATS)
    lines = sum(
        len(gzip.decompress(path.read_bytes()).splitlines()) for path in DATA.glob("*.jsonl.gz")
    )
    same = sum(sum(report.duplicates.values()) for report in logs.files)
    assert len(logs.requests) + same == lines
    assert {report.format for report in logs.files} == {"request-logs"}


@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_damage_raises_nothing(data: st.DataObject, tmp_path_factory: Any) -> None:
    dialect = data.draw(st.sampled_from(["chat", "messages", "responses"]))
    # a copy of its own: what is damaged here stands in other tests too
    line: Any = json.loads(json.dumps({"request": asked(dialect), "response": answered(dialect)}))
    odd = st.one_of(st.none(), st.integers(), st.text(max_size=3), st.just([]), st.just({}))
    for _ in range(data.draw(st.integers(1, 3))):
        at = line
        while isinstance(at, dict) and at:
            key = data.draw(st.sampled_from(sorted(at)))
            inner = at[key]
            if isinstance(inner, list) and inner:
                inner = inner[0]
            if isinstance(inner, dict) and data.draw(st.booleans()):
                at = inner
                continue
            at[key] = data.draw(odd)
            break
    logs = read(tmp_path_factory.mktemp("damaged") / "log.jsonl", line)
    assert all((one.counts.prompt.value or 0) >= 0 for one in logs.requests)


def test_an_id_that_was_drawn_is_one_response_whenever_its_lines_were_written(
    tmp_path: Path,
) -> None:
    bare = {**answered("messages"), "id": "msg_01XFDUDYJgAACzvnptvVoYEL", "usage": None}
    whole = {**bare, "usage": USED["messages"]}
    for number, answer in enumerate([bare, whole, whole]):
        row = {"timestamp": 1_790_000_000 + number, "request": asked("messages")}
        (tmp_path / f"{number}.jsonl").write_text(json.dumps({**row, "response": answer}))

    (request,) = read_logs([tmp_path], FORMATS).requests

    assert (request.counts.prompt.value, request.counts.prompt.kind) == (100, "derived")


@pytest.mark.parametrize("identity", ["chatcmpl-7", "chatcmpl-000000000000000000001"])
def test_an_id_that_was_counted_is_another_response_at_another_time(
    tmp_path: Path, identity: str
) -> None:
    rows = [
        {"timestamp": 1_790_000_000 + at, "request": asked("chat"),
         "response": {**answered("chat"), "id": identity}}
        for at in (0, 3_600)
    ]  # fmt: skip
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    assert len(read_logs([tmp_path], FORMATS).requests) == 2


def test_what_a_providers_own_tools_put_into_a_prompt_was_read(tmp_path: Path) -> None:
    usage = {
        "promptTokenCount": 1_000, "cachedContentTokenCount": 300, "toolUsePromptTokenCount": 50,
        "candidatesTokenCount": 400, "thoughtsTokenCount": 100, "totalTokenCount": 1_550,
    }  # fmt: skip
    answer = {
        "candidates": [{"content": {"role": "model", "parts": [{"text": "x"}]}}],
        "usageMetadata": usage, "modelVersion": "gemini-2.5-pro",
    }  # fmt: skip
    request = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}
    (tmp_path / "a.jsonl").write_text(json.dumps({"request": request, "response": answer}))

    (found,) = read_logs([tmp_path], FORMATS).requests

    assert (found.counts.prompt.value, found.counts.output.value) == (1_050, 500)
    assert not found.unknown_cache
