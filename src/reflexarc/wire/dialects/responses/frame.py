"""The response object around an answer: its id, its status, and what it repeats of the request."""

import hashlib
import re
from typing import Any

import msgspec

from reflexarc.wire.dialects.openai_faults import status_of as fault_status
from reflexarc.wire.dialects.responses.items_in import NAME, is_marked
from reflexarc.wire.dialects.responses.reading import INSTRUCTIONS
from reflexarc.wire.dialects.responses.writing import write_sampling, write_tools
from reflexarc.wire.faults import Fault
from reflexarc.wire.losses import Losses
from reflexarc.wire.replies import ReplyPart, Stop
from reflexarc.wire.turns import Ask, Refusal, Text
from reflexarc.wire.usage import Usage, usage_to_responses

_PREFIX = "resp_"
_MAX_STEM_CHARS = 48
_other = re.compile(r"[^A-Za-z0-9_-]+")
_CODES = {
    "rate_limit": "rate_limit_exceeded",
    "invalid_request": "invalid_prompt",
    "overloaded": "server_is_overloaded",
    "billing": "insufficient_quota",
}
_TIERS = {"standard": "default", "standard_only": "default"}


class Frame:
    """Of one answer to `ask`. `id` as its provider gave it, or empty."""

    def __init__(self, ask: Ask, id: str, model: str, created_s: int, origin: str) -> None:
        given = _other.sub("-", id)[: _MAX_STEM_CHARS + len(_PREFIX)]
        self.stem = given.removeprefix(_PREFIX) or _made_up(ask)
        self.id = _PREFIX + self.stem
        self.own = origin == NAME
        self._created_s = created_s
        self._model = model or ask.settings.model
        self._echo = _echo(ask)

    def response(
        self,
        status: str,
        output: list[dict[str, Any]],
        *,
        reason: str | None = None,
        error: dict[str, Any] | None = None,
        usage: Usage | None = None,
        service_tier: str | None = None,
    ) -> dict[str, Any]:
        echo = self._echo
        said = _TIERS.get(service_tier, service_tier) if service_tier else echo["service_tier"]
        return {
            "id": self.id,
            "object": "response",
            "created_at": self._created_s,
            "status": status,
            "error": error,
            "incomplete_details": None if reason is None else {"reason": reason},
            "model": self._model,
            "output": output,
            **echo,
            "service_tier": said,
            "usage": None if usage is None else usage_to_responses(usage),
        }

    def item_id(self, kind: str, index: int) -> str:
        """Of an item whose own id is not known: the same one in a stream and in the whole."""
        return f"{kind}_{self.stem}_{index}"


def status_of(
    stop: Stop, parts: "tuple[ReplyPart, ...] | list[ReplyPart]", losses: Losses
) -> tuple[str, str | None]:
    """Status, and the reason why it is incomplete."""
    if stop == "pause":
        losses.lose("stop_reason.pause_turn")
    if stop in ("length", "truncated", "pause"):
        return "incomplete", "max_output_tokens"
    if stop == "filter":
        return "incomplete", "content_filter"
    if stop == "refusal" and not any(isinstance(part, Refusal) for part in parts):
        return "incomplete", "content_filter"
    return "completed", None


def error_of(fault: Fault) -> dict[str, Any]:
    """Clients know what to do by the code: it is needed here."""
    code = fault.code or _CODES.get(fault.kind)
    if code is None:
        code = "server_error" if fault_status(fault) >= 500 else "invalid_prompt"
    return {"code": code, "message": fault.message}


def _echo(ask: Ask) -> dict[str, Any]:
    # What a request cannot say is named where it is sent on; repeating it loses nothing more.
    unnamed = Losses(NAME)
    settings = ask.settings
    own = ask.dialect == NAME
    more = settings.more if own else {}
    tools = write_tools(ask, unnamed)
    said = write_sampling(ask, unnamed)
    text: dict[str, Any] = {"format": {"type": "text"}}
    text.update(said.get("text", {}))
    reasoning: dict[str, Any] = {"effort": None, "summary": None}
    reasoning.update(said.get("reasoning", {}))
    store = settings.store if own else False
    return {
        "background": more.get("background", False),
        "instructions": _instructions(ask),
        "max_output_tokens": settings.max_tokens,
        "max_tool_calls": more.get("max_tool_calls"),
        "parallel_tool_calls": tools.get("parallel_tool_calls", True),
        "previous_response_id": settings.previous,
        "prompt_cache_key": settings.cache_key,
        "reasoning": reasoning,
        "safety_identifier": more.get("safety_identifier"),
        "service_tier": settings.service_tier or "auto",
        "store": True if store is None else store,
        "temperature": settings.temperature,
        "text": text,
        "tool_choice": tools.get("tool_choice", "auto"),
        "tools": tools.get("tools", []),
        "top_logprobs": more.get("top_logprobs", 0),
        "top_p": settings.top_p,
        "truncation": more.get("truncation", "disabled"),
        "user": settings.user,
        "metadata": settings.metadata or {},
    }


def _instructions(ask: Ask) -> str | None:
    first = ask.turns[0] if ask.turns else None
    if first is None or not is_marked(first.more, INSTRUCTIONS) or not first.parts:
        return None
    part = first.parts[0]
    return part.text if isinstance(part, Text) else None


def _made_up(ask: Ask) -> str:
    return hashlib.blake2b(msgspec.msgpack.encode(ask), digest_size=16).hexdigest()
