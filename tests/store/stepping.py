"""Steps as a gateway hands them over, made from conversations."""

import itertools
import json
from pathlib import Path
from typing import Any

from reflexarc.store.recording import Recording
from reflexarc.store.records import DecidedBy, Policy, StepEnded

BEGAN_S = 1_800_000_000.0
_numbers = itertools.count(1)


def chat(messages: list[dict[str, Any]], **more: Any) -> bytes:
    return json.dumps({"model": "gpt-test", "messages": messages, **more}).encode()


def completion(message: dict[str, Any], usage: dict[str, Any] | None = None) -> bytes:
    body: dict[str, Any] = {
        "object": "chat.completion",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
    }
    if usage is not None:
        body["usage"] = usage
    return json.dumps(body).encode()


def says(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def calls(name: str, arguments: dict[str, Any], call_id: str = "call_1") -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    one = {"id": call_id, "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [one]}


def result(text: str, call_id: str = "call_1") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def step(
    request: bytes,
    *,
    record: Policy = "full",
    tenant: str = "t1",
    route: str = "/",
    session: str | None = None,
    task: str | None = None,
    decided_by: DecidedBy = "system2",
    status: int = 200,
    content_type: str = "application/json",
    complete: bool = True,
    began_s: float = BEGAN_S,
    number: int | None = None,
) -> StepEnded:
    return StepEnded(
        number=next(_numbers) if number is None else number,
        gateway="g1",
        request_id="r",
        route=route,
        mode="shadow",
        record=record,
        tenant=tenant,
        session=session,
        task=task,
        began_unix_s=began_s,
        decided_by=decided_by,
        status=status,
        content_type=content_type,
        content_encoding="",
        complete=complete,
        request_bytes=len(request),
        timings_ms={"total": 120.0, "upstream_head": 100.0},
    )


def record(
    recording: Recording,
    messages: list[dict[str, Any]],
    answer: dict[str, Any] | None,
    *,
    more: dict[str, Any] | None = None,
    usage: dict[str, Any] | None = None,
    **of_step: Any,
) -> StepEnded:
    """One step: its request and, unless it failed, its answer."""
    request = chat(messages, **(more or {}))
    if answer is None:
        one = step(request, **{"status": 502, **of_step})
        recording.step(one, request, b"")
    else:
        one = step(request, **of_step)
        recording.step(one, request, completion(answer, usage))
    return one


def at(directory: Path, **options: Any) -> Recording:
    return Recording(directory / "reflexarc.db", lambda: BEGAN_S, **options)
