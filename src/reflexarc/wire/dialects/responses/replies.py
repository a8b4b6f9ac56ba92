"""Whole answers, read and written.

Normal forms: several summaries of one item of reasoning become one, with a blank line between;
what a response repeats of its request is that of the request itself.
"""

from typing import Any, cast

from reflexarc.steps.errors import MalformedError, RequestError
from reflexarc.wire.assembling import BrokenOffError
from reflexarc.wire.dialects.openai_faults import fault_of
from reflexarc.wire.dialects.responses.frame import Frame, status_of
from reflexarc.wire.dialects.responses.items_in import NAME, read_output_item, reply_part
from reflexarc.wire.dialects.responses.items_made import ItemMaker
from reflexarc.wire.faults import Fault
from reflexarc.wire.losses import Losses
from reflexarc.wire.replies import Reply, ReplyPart, Stop
from reflexarc.wire.turns import Ask, Call, Refusal
from reflexarc.wire.usage import usage_from_responses

# What a response says of itself, or repeats of its request: nothing of this is the answer's.
_FRAME = frozenset(
    {
        "id",
        "object",
        "created_at",
        "completed_at",
        "status",
        "error",
        "incomplete_details",
        "model",
        "output",
        "output_text",
        "usage",
        "service_tier",
        "background",
        "instructions",
        "max_output_tokens",
        "max_tool_calls",
        "parallel_tool_calls",
        "previous_response_id",
        "prompt_cache_key",
        "prompt_cache_options",
        "prompt_cache_retention",
        "reasoning",
        "safety_identifier",
        "store",
        "temperature",
        "text",
        "tool_choice",
        "tools",
        "top_logprobs",
        "top_p",
        "truncation",
        "user",
        "metadata",
        "prompt",
        "conversation",
        "image",
        "context_management",
        "presence_penalty",
        "frequency_penalty",
        "billing",
    }
)


def read_reply(value: dict[str, Any]) -> Reply:
    """Raises `MalformedError`, and `BrokenOffError` where the answer is an error."""
    fault = fault_in(value)
    if fault is not None:
        raise BrokenOffError(fault)
    output: Any = value.get("output")
    if not isinstance(output, list):
        raise MalformedError("the answer has no list `output`")
    parts = [
        part
        for at, item in enumerate(cast("list[Any]", output))
        for part in read_item_parts(item, f"output[{at}]")
    ]
    created: Any = value.get("created_at")
    tier: Any = value.get("service_tier")
    return Reply(
        id=_text(value.get("id")),
        model=_text(value.get("model")),
        parts=tuple(parts),
        stop=stop_from(
            value,
            calls=any(isinstance(part, Call) for part in parts),
            refused=any(isinstance(part, Refusal) for part in parts),
        ),
        usage=usage_from_responses(value.get("usage")),
        created_s=created_s(created),
        service_tier=tier if isinstance(tier, str) else None,
        more={k: v for k, v in value.items() if v is not None and k not in _FRAME},
        origin=NAME,
    )


def read_item_parts(item: Any, path: str) -> list[ReplyPart]:
    """Raises `MalformedError`."""
    if not isinstance(item, dict):
        raise MalformedError(f"{path} of the answer is no object")
    try:
        parts = read_output_item(cast("dict[str, Any]", item), path)
    except RequestError as error:
        raise MalformedError(f"the answer's {error}") from error
    return [reply_part(part) for part in parts]


def fault_in(value: dict[str, Any]) -> Fault | None:
    """The error that a response, or a body in its place, tells."""
    if value.get("error"):
        return fault_of({"error": value["error"]})
    if value.get("status") == "failed":
        return Fault("api", "the upstream failed and did not say why", 500)
    if value.get("status") == "cancelled":
        return Fault("api", "the answer was cancelled", 500, code="cancelled")
    return None


def stop_from(response: dict[str, Any], *, calls: bool, refused: bool) -> Stop:
    """`calls`, `refused`: whether the answer holds any, is a refusal."""
    status: Any = response.get("status")
    if status == "completed":
        if calls:
            return "calls"
        return "refusal" if refused else "end"
    details: Any = response.get("incomplete_details")
    if status == "incomplete" and isinstance(details, dict):
        reason: Any = cast("dict[str, Any]", details).get("reason")
        if reason == "content_filter":
            return "filter"
        if reason == "max_output_tokens":
            return "length"
    return "truncated"


def created_s(value: Any) -> int:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return int(value) if is_number and 0 <= value < 2**53 else 0


def write_reply(reply: Reply, ask: Ask, losses: Losses) -> dict[str, Any]:
    frame = Frame(ask, reply.id, reply.model, reply.created_s, reply.origin)
    status, reason = status_of(reply.stop, reply.parts, losses)
    output = ItemMaker(frame, losses).whole(reply.parts, cut=status == "incomplete")
    response = frame.response(
        status, output, reason=reason, usage=reply.usage, service_tier=reply.service_tier
    )
    if frame.own:
        response.update((k, v) for k, v in reply.more.items() if k not in response)
    else:
        losses.lose_all(reply.more)
    return response


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
