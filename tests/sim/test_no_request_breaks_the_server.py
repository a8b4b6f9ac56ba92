"""Whatever is sent, the simulator answers 200, 400 or 404: never a 5xx, never nothing."""

import asyncio
import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from reflexarc.bench.desk import ReturnsDeskSystem2
from reflexarc.bench.desk.record import SPECS
from reflexarc.bench.desk.world import MODEL
from reflexarc.sim import SimulatedSystem2, load_profiles

APP = SimulatedSystem2(ReturnsDeskSystem2(), load_profiles()["gpu"], time_scale=0)

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.floats(allow_nan=False)
    | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["request", "open_requests", "request_id", "order_id", "sku", "reason", "lines"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)
desk_names = st.sampled_from([spec.name for spec in SPECS])
requests = st.fixed_dictionaries(
    {"open_requests": st.integers(0, 3)},
    optional={
        "request": st.fixed_dictionaries(
            {"request_id": st.just("RR-1")},
            optional=dict.fromkeys(("order_id", "sku", "reason", "comment", "quantity"), values),
        )
    },
)


@st.composite
def conversations(draw: st.DrawFn) -> list[dict[str, Any]]:
    """An opening, then calls of the desk's tools with results that may be anything."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Take queue Q-0001A."}]
    for number in range(draw(st.integers(0, 5))):
        name = draw(desk_names)
        arguments = json.dumps(draw(values))
        function = {"name": name, "arguments": arguments}
        call = {"id": f"c{number}", "type": "function", "function": function}
        result = draw(requests if name == "next_request" else values)
        messages += [
            {"role": "assistant", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{number}", "content": json.dumps(result)},
        ]
    return messages


def status_of(body: bytes) -> int:
    """The status for one body, straight through ASGI."""
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(event: Any) -> None:
        sent.append(event)

    scope: dict[str, Any] = {"type": "http", "method": "POST", "path": "/v1/chat/completions"}
    asyncio.run(APP(scope, receive, send))
    assert not sent[-1].get("more_body")
    return sent[0]["status"]


@settings(max_examples=150, deadline=None)
@given(conversations(), st.booleans())
def test_any_results_of_the_desks_tools(messages: list[dict[str, Any]], stream: bool) -> None:
    body = {"model": MODEL, "messages": messages, "stream": stream}
    assert status_of(json.dumps(body).encode()) in (200, 400, 404)


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(st.sampled_from(["model", "messages", "tools", "stream", "n"]), values))
def test_any_fields(fields: dict[str, Any]) -> None:
    assert status_of(json.dumps(fields).encode()) in (400, 404)


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes(body: bytes) -> None:
    assert status_of(body) == 400
