"""OTLP spans: the calls of models count, once each, whatever stands above and beside them."""

import base64
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reflexarc.steps.prompt import Prompt
from reflexarc.traces.formats.otlp import Otlp
from reflexarc.traces.logs import Logs, read_logs
from reflexarc.traces.requests import RecordedRequest

DATA = Path(__file__).parents[4] / "shared" / "data" / "logs"
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
SECOND = 10**9


def value(given: Any) -> dict[str, Any]:
    if isinstance(given, bool):
        return {"boolValue": given}
    if isinstance(given, int):
        return {"intValue": str(given)}
    if isinstance(given, float):
        return {"doubleValue": given}
    if isinstance(given, list):
        return {"arrayValue": {"values": [value(one) for one in given]}}
    if isinstance(given, dict):
        listed = [{"key": name, "value": value(one)} for name, one in given.items()]
        return {"kvlistValue": {"values": listed}}
    return {"stringValue": given}


def attributes(of: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"key": name, "value": value(one)} for name, one in of.items()]


def span(id: int, parent: int = 0, at_s: int = 0, took_s: int = 1, **more: Any) -> dict[str, Any]:
    of = {name.replace("__", "."): one for name, one in more.items() if name.startswith("gen_ai")}
    rest = {name: one for name, one in more.items() if not name.startswith("gen_ai")}
    began = (1_790_000_000 + at_s) * SECOND
    return {
        "traceId": TRACE, "spanId": f"{id:016x}", "name": "x",
        "parentSpanId": f"{parent:016x}" if parent else "", "startTimeUnixNano": str(began),
        "endTimeUnixNano": str(began + took_s * SECOND),
        "attributes": attributes({**of, **rest.pop("of", {})}), **rest,
    }  # fmt: skip


def chat(id: int, parent: int, prompt: int, output: int, **more: Any) -> dict[str, Any]:
    return span(
        id, parent, gen_ai__operation__name="chat", gen_ai__request__model="gpt-5.1",
        gen_ai__usage__input_tokens=prompt, gen_ai__usage__output_tokens=output, **more,
    )  # fmt: skip


def agent(id: int, parent: int = 0, **more: Any) -> dict[str, Any]:
    return span(id, parent, gen_ai__operation__name="invoke_agent", **more)


def batch(spans: Iterable[dict[str, Any]], name: str = "scopeSpans") -> dict[str, Any]:
    return {"resourceSpans": [{name: [{"spans": list(spans)}]}]}


def write(path: Path, *batches: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(one) + "\n" for one in batches))
    return path


def read(*paths: Path) -> Logs:
    return read_logs(paths, [Otlp()])


def sums(requests: Iterable[RecordedRequest]) -> tuple[int, float, float]:
    listed = list(requests)
    return (
        len(listed),
        sum(one.counts.prompt.value or 0 for one in listed),
        sum(one.counts.output.value or 0 for one in listed),
    )


def test_sums_of_an_agent_are_not_added_to_its_calls(tmp_path: Path) -> None:
    top = agent(1, gen_ai__usage__input_tokens=300, gen_ai__usage__output_tokens=30)
    logs = read(write(tmp_path / "a.json", batch([top, chat(2, 1, 100, 10), chat(3, 1, 200, 20)])))
    assert sums(logs.requests) == (2, 300, 30)


@pytest.mark.parametrize("tells", [True, False], ids=["the last tells", "the outer alone tells"])
def test_attempts_inside_a_call_are_not_each_given_its_tokens(tmp_path: Path, tells: bool) -> None:
    """A wrapper's span over a failed attempt and one that went well."""
    used: dict[str, Any] = {"gen_ai__operation__name": "chat"}
    failed = span(3, 2, at_s=1, status={"code": 2}, **used)
    fine = chat(4, 2, 100, 10, at_s=3) if tells else span(4, 2, at_s=3, **used)
    outer = chat(2, 0, 100, 10, at_s=0, took_s=9)

    logs = read(write(tmp_path / "a.json", batch([outer, failed, fine])))

    assert [one.failed for one in logs.requests] == [True, False]
    assert sums(logs.requests) == (2, 100, 10)


def test_a_sum_over_calls_that_tell_tokens_adds_nothing_to_them(tmp_path: Path) -> None:
    read_too = {"gen_ai.usage.cache_read.input_tokens": 90}
    outer = chat(2, 0, 300, 30, took_s=9, of=read_too)

    logs = read(
        write(tmp_path / "a.json", batch([outer, chat(3, 2, 100, 10), chat(4, 2, 150, 20)]))
    )

    assert [one.counts.cache_read.value for one in logs.requests] == [None, None]


def test_prompts_that_repeat_each_other_share_their_pieces(tmp_path: Path) -> None:
    told = [{"role": "user", "parts": [{"type": "text", "content": "hello " * 100}]}] * 2
    calls = [
        chat(at, 0, 100, 10, at_s=at, gen_ai__input__messages=json.dumps(told[:at]))
        for at in (1, 2)
    ]

    requests = read(write(tmp_path / "a.json", batch(calls))).requests

    first, second = (one.prompt for one in requests)
    assert isinstance(first, Prompt)
    assert isinstance(second, Prompt)
    assert (len(first.pieces), len(second.pieces)) == (1, 2)
    assert second.pieces[0] is first.pieces[0]


def test_an_id_that_a_server_gives_again_later_is_of_another_response(tmp_path: Path) -> None:
    again = {"gen_ai__response__id": "chatcmpl-12"}
    first, later = chat(2, 0, 100, 10, **again), chat(3, 0, 180, 10, at_s=60, **again)
    beside = chat(4, 0, 180, 10, at_s=60, **again)

    assert sums(read(write(tmp_path / "a.json", batch([first, later]))).requests)[0] == 2
    assert sums(read(write(tmp_path / "a.json", batch([later, beside]))).requests)[0] == 1


def test_an_agent_that_tells_its_last_call_alone_is_not_believed(tmp_path: Path) -> None:
    top = agent(1, gen_ai__usage__input_tokens=2_569, gen_ai__usage__output_tokens=99)
    calls = [chat(2, 1, 2_239, 192), chat(3, 1, 2_569, 99)]
    assert sums(read(write(tmp_path / "a.json", batch([top, *calls]))).requests) == (2, 4_808, 291)


def test_an_agent_without_any_call_below_counts(tmp_path: Path) -> None:
    outer = agent(1, gen_ai__usage__input_tokens=70, gen_ai__usage__output_tokens=7)
    inner = agent(2, 1, gen_ai__usage__input_tokens=70, gen_ai__usage__output_tokens=7)
    assert sums(read(write(tmp_path / "a.json", batch([outer, inner]))).requests) == (1, 70, 7)


def test_what_an_agent_in_a_tool_asked_is_a_request_of_its_own(tmp_path: Path) -> None:
    tool = span(2, 1, gen_ai__operation__name="execute_tool")
    inner = [tool, agent(3, 2), chat(4, 3, 50, 5)]
    logs = read(write(tmp_path / "a.json", batch([chat(1, 0, 100, 10), *inner])))
    assert sums(logs.requests) == (2, 150, 15)
    summed = read(write(tmp_path / "b.json", batch([chat(1, 0, 50, 5), *inner])))
    assert sums(summed.requests) == (1, 50, 5)


def test_spans_as_sdks_write_them_are_read(tmp_path: Path) -> None:
    def flat(at: int, **more: Any) -> dict[str, Any]:
        named = {"openinference.span.kind": "LLM", "llm.model_name": "gpt-5.1",
                 "llm.token_count.prompt": 10, "llm.token_count.completion": at}  # fmt: skip
        return {
            "name": "llm", "context": {"trace_id": "0x" + TRACE, "span_id": f"0x{at:016x}"},
            "parent_id": None, "start_time": "2026-01-01T00:00:00Z",
            "end_time": "2026-01-01T00:00:02Z", "status": {"status_code": "OK"},
            "attributes": named, **more,
        }  # fmt: skip

    tree = {"openinference": {"span": {"kind": "LLM"}}, "llm": {"token_count": {"prompt": 5}}}
    lines = write(tmp_path / "a.jsonl", flat(1), flat(2), flat(3, attributes=tree))
    assert sums(read(lines).requests) == (3, 25, 3)
    listed = tmp_path / "b.json"
    listed.write_text(json.dumps([flat(1), flat(2, status={"status_code": "ERROR"})]))
    assert sums(read(listed).requests) == (2, 20, 3)


def test_tables_of_spans_are_read(tmp_path: Path) -> None:
    row = {
        "name": "llm", "span_kind": "LLM", "parent_id": None, "status_code": "OK",
        "start_time": 1_790_000_000_000, "end_time": 1_790_000_001_000,
        "context.trace_id": TRACE, "context.span_id": f"{1:016x}",
        "attributes.llm.model_name": "gpt-5.1", "attributes.llm.token_count.prompt": 10.0,
        "attributes.llm.token_count.completion": 2.0, "attributes.session.id": "s1",
        "attributes.llm.input_messages": [{"message": {"role": "user", "content": "hi"}}],
    }  # fmt: skip
    (request,) = read(write(tmp_path / "a.jsonl", row)).requests
    assert sums([request]) == (1, 10, 2)
    assert (request.session, request.model) == ("s1", "gpt-5.1")


def test_calls_without_counts_are_estimated_from_their_text(tmp_path: Path) -> None:
    told = span(
        1, gen_ai__operation__name="chat",
        of={"gen_ai.input.messages": json.dumps([{"role": "user", "content": "x" * 400}])},
    )  # fmt: skip
    (request,) = read(write(tmp_path / "a.json", batch([told]))).requests
    assert request.counts.prompt.kind == "estimated"
    assert request.counts.prompt.value is not None
    assert request.counts.prompt.value > 100
    assert request.counts.output.kind == "absent"


def test_a_prompt_whose_tools_are_not_told_is_not_complete(tmp_path: Path) -> None:
    messages = [{"role": "user", "content": "hi"}, {"role": "tool", "content": "rain"}]
    bare = {"gen_ai.input.messages": json.dumps(messages)}
    whole = {**bare, "gen_ai.tool.definitions": json.dumps([{"name": "look"}])}
    spans = [chat(1, 0, 10, 1, of=bare), chat(2, 0, 10, 1, of=whole, at_s=5)]
    prompts = [one.prompt for one in read(write(tmp_path / "a.json", batch(spans))).requests]
    assert [isinstance(one, Prompt) and one.complete for one in prompts] == [False, True]


def test_what_was_cached_is_inside_the_input_or_beside_it(tmp_path: Path) -> None:
    def cached(prompt: int) -> dict[str, Any]:
        read_, written = "gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.cache_creation"
        return chat(prompt, 1, prompt, 1, of={read_: 128_955, f"{written}.input_tokens": 1_253})

    logs = read(write(tmp_path / "a.json", batch([cached(130_213), cached(5)])))
    assert [one.counts.prompt.value for one in logs.requests] == [130_213, 130_213]
    assert [one.counts.prompt.kind for one in logs.requests] == ["measured", "derived"]


def test_a_call_instrumented_twice_is_one_with_the_texts_of_both(tmp_path: Path) -> None:
    messages = json.dumps([{"role": "user", "parts": [{"type": "text", "content": "hi"}]}])
    outer = chat(1, 0, 100, 10, took_s=9, of={"gen_ai.input.messages": messages})
    logs = read(write(tmp_path / "a.json", batch([outer, chat(2, 1, 100, 10)])))
    [request] = logs.requests
    assert sums(logs.requests) == (1, 100, 10)
    assert request.prompt is not None
    assert (request.ended_s.value or 0) - (request.began_s.value or 0) == 1


def test_batches_sent_again_and_ids_in_base64_are_known(tmp_path: Path) -> None:
    one = chat(2, 0, 100, 10)
    packed = {
        **one,
        "traceId": base64.b64encode(bytes.fromhex(one["traceId"])).decode(),
        "spanId": base64.b64encode(bytes.fromhex(one["spanId"])).decode(),
    }
    old = batch([packed], "instrumentationLibrarySpans")
    logs = read(write(tmp_path / "a.jsonl", batch([one]), old, batch([chat(3, 0, 1, 1)])))
    assert sums(logs.requests) == (2, 101, 11)
    assert logs.files[0].duplicates == {"the same span": 1}


def test_old_names_events_and_log_records_tell_the_same(tmp_path: Path) -> None:
    old = span(
        1, of={"gen_ai.system": "openai", "gen_ai.request.model": "gpt-5.1",
               "gen_ai.usage.prompt_tokens": 50, "gen_ai.usage.completion_tokens": 5},
        events=[{"name": "gen_ai.user.message", "attributes": attributes({"content": "hi"})}],
    )  # fmt: skip
    details = {
        "event.name": "gen_ai.client.inference.operation.details",
        "gen_ai.input.messages": [{"role": "user", "parts": [{"type": "text", "content": "ho"}]}],
        "gen_ai.output.messages": [
            {"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "look"}]}
        ],
    }
    record = {"traceId": TRACE, "spanId": f"{2:016x}", "attributes": attributes(details)}
    logged = {"resourceLogs": [{"scopeLogs": [{"logRecords": [record]}]}]}
    logs = read(write(tmp_path / "a.jsonl", batch([old, chat(2, 0, 60, 6, at_s=5)]), logged))
    first, second = logs.requests
    assert sums(logs.requests) == (2, 110, 11)
    assert first.prompt is not None
    assert second.prompt is not None
    assert [tool.name for tool in second.tools] == ["look"]


def test_tools_are_those_that_ran_before_the_next_call(tmp_path: Path) -> None:
    tool: dict[str, Any] = {"gen_ai__operation__name": "execute_tool"}
    spans = [
        agent(1, took_s=9), chat(2, 1, 10, 1), chat(5, 1, 20, 2, at_s=5),
        span(3, 1, at_s=2, gen_ai__tool__name="look", **tool),
        span(4, 1, at_s=3, took_s=2, gen_ai__tool__name="ask", status={"code": 2}, **tool),
    ]  # fmt: skip
    first, second = read(write(tmp_path / "a.json", batch(spans))).requests
    assert [(one.name, one.own_s.value, one.failed) for one in first.tools] == [
        ("look", 1, False),
        ("ask", 2, True),
    ]
    assert second.tools == ()


def test_a_failed_call_is_an_error(tmp_path: Path) -> None:
    failed = span(1, gen_ai__operation__name="chat", status={"code": "STATUS_CODE_ERROR"})
    logs = read(write(tmp_path / "a.json", batch([failed, chat(2, 0, 5, 1)])))
    assert (logs.files[0].requests, logs.files[0].errors) == (1, 1)


@pytest.mark.skipif(not DATA.is_dir(), reason="needs ../shared/data/logs")
@pytest.mark.parametrize(
    ("file", "prompt", "output", "cached"),
    [
        # two calls of 1,210 and 1,262 tokens, 1,152 of the second read from a cache
        ("otel-genai/pydantic_ai_v2.otlp.json", 2_472, 30, 1_152),
        ("otel-genai/pydantic_ai_v5.otlp.json", 2_472, 30, 1_152),
        ("openinference/openai.otlp.json", 2_472, 30, 1_152),
        ("synthetic/otlp_agent_rollup.json", 300, 30, 96),
    ],
)
def test_samples_give_the_totals_worked_out_by_hand(
    file: str, prompt: int, output: int, cached: int
) -> None:
    logs = read(DATA / file)
    assert sums(logs.requests) == (2, prompt, output)
    assert sum(one.counts.cache_read.value or 0 for one in logs.requests) == cached
    assert sum(len(one.tools) for one in logs.requests) == 1
    assert len({one.session for one in logs.requests}) == 1


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_damage_raises_nothing(data: st.DataObject, tmp_path_factory: Any) -> None:
    spans: list[Any] = [agent(1), chat(2, 1, 10, 1), chat(3, 2, 10, 1), span(4, 4)]
    odd = st.one_of(st.none(), st.integers(), st.text(max_size=3), st.just([]), st.just({}))
    for _ in range(data.draw(st.integers(1, 4))):
        at: Any = spans[data.draw(st.integers(0, len(spans) - 1))]
        key = data.draw(st.sampled_from(sorted(at)))
        if key == "attributes" and at[key] and data.draw(st.booleans()):
            at = at[key][data.draw(st.integers(0, len(at[key]) - 1))]
            key = data.draw(st.sampled_from(["key", "value"]))
        at[key] = data.draw(odd)
        if isinstance(at.get("attributes"), int | str):
            at["attributes"] = []
    logs = read(write(tmp_path_factory.mktemp("damaged") / "a.json", batch(spans)))
    assert sums(logs.requests)[1] >= 0
