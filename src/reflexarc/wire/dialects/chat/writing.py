"""Requests of OpenAI's chat completions, written. What chat cannot say is named."""

from typing import Any, cast

from reflexarc.wire.dialects.chat.messages_out import write_turns
from reflexarc.wire.dialects.openai_shared import FAMILY, SAME_SETTINGS, custom_to_nested
from reflexarc.wire.dialects.strictness import is_closed
from reflexarc.wire.ids import IdMap
from reflexarc.wire.losses import Losses
from reflexarc.wire.turns import Ask, OutputFormat, Settings, ToolChoice, ToolOffer

NAME = "chat"
_EFFORTS = (("minimal", 1024), ("low", 4096), ("medium", 16384), ("high", 65536))
"""Effort for a budget of tokens up to so many."""


def write_ask(ask: Ask, losses: Losses, ids: IdMap) -> dict[str, Any]:
    settings = ask.settings
    own, family = ask.dialect == NAME, ask.dialect in FAMILY
    more = dict(settings.more) if own else {}
    if not own:
        for name, value in settings.more.items():
            if family and name in SAME_SETTINGS:
                more[name] = value
            else:
                losses.lose(name)
    body: dict[str, Any] = {"model": settings.model}
    body["messages"] = write_turns(ask, losses, ids)
    tools = [tool for offer in ask.tools if (tool := _tool(offer, own, family, losses)) is not None]
    if tools:
        body["tools"] = tools
    choice = _choice(settings.choice, bool(tools), losses)
    if choice is not None:
        body["tool_choice"] = choice
    if settings.parallel is not None and (tools or own):
        body["parallel_tool_calls"] = settings.parallel
    _stream(settings, more, own, body)
    if settings.max_tokens is not None:
        name = "max_tokens" if own and settings.older_limit else "max_completion_tokens"
        body[name] = settings.max_tokens
    _sampling(settings, own, body, losses)
    _rest(ask, own, body, losses)
    output = _output(settings.output)
    if output is not None:
        body["response_format"] = output
    body.update(more)
    return body


def _stream(settings: Settings, more: dict[str, Any], own: bool, body: dict[str, Any]) -> None:
    options: dict[str, Any] = more.pop("stream_options", {})
    if settings.stream:
        body["stream"] = True
        # Other dialects' streams tell their usage unasked.
        if settings.include_usage or not own:
            options = {**options, "include_usage": True}
    if options:
        body["stream_options"] = options


def _sampling(settings: Settings, own: bool, body: dict[str, Any], losses: Losses) -> None:
    for name in ("temperature", "top_p", "seed", "presence_penalty", "frequency_penalty"):
        value = getattr(settings, name)
        if value is not None:
            body[name] = value
    if settings.stop:
        first, *others = settings.stop
        body["stop"] = [first, *others] if others else first
        if not own and len(settings.stop) > 4:
            body["stop"] = list(settings.stop[:4])
            losses.lose("stop_sequences (more than 4)")
    if settings.top_k is not None:
        if own:
            body["top_k"] = settings.top_k
        else:
            losses.lose("top_k")
    if settings.count is not None:
        if own:
            body["n"] = settings.count
        elif settings.count != 1:
            losses.lose("candidateCount")


def _rest(ask: Ask, own: bool, body: dict[str, Any], losses: Losses) -> None:
    settings = ask.settings
    reasoning = settings.reasoning
    if reasoning is not None:
        effort = reasoning.effort
        budget = reasoning.budget
        if effort is None and (reasoning.enabled is False or budget == 0):
            effort = "none"
        elif effort is None and budget is not None and budget > 0:
            found = (word for word, most in _EFFORTS if budget <= most)
            effort = next(found, "high")
        if effort is not None:
            body["reasoning_effort"] = effort
        if not own:
            losses.lose_all(reasoning.more, "reasoning.")
    said = {
        "verbosity": settings.verbosity,
        "user": settings.user,
        "metadata": settings.metadata,
        "service_tier": settings.service_tier,
        "prompt_cache_key": settings.cache_key,
    }
    body.update({name: value for name, value in said.items() if value is not None})
    if settings.store is not None and own:
        # Of others it is the gateway that keeps what is to be stored.
        body["store"] = settings.store
    elif settings.store and ask.dialect not in FAMILY:
        losses.lose("store")
    if not own and settings.previous is not None:
        losses.lose("previous_response_id")
    if not own and settings.service_tier not in (None, "auto", "default", "flex", "priority"):
        del body["service_tier"]
        losses.lose("service_tier")
    if not own and settings.metadata is not None:
        # Refused where nothing is stored.
        del body["metadata"]
        losses.lose("metadata")


def _tool(offer: ToolOffer, own: bool, family: bool, losses: Losses) -> dict[str, Any] | None:
    if offer.value is not None and own:
        return offer.value
    if offer.cache is not None and not own:
        losses.lose("cache_control")
    if offer.kind == "hosted":
        losses.lose(f"tools.{offer.name}")
        return None
    if offer.kind == "custom":
        if family:
            return custom_to_nested(offer.value or {})
        losses.lose("tools.custom")
        return None
    function: dict[str, Any] = {"name": offer.name}
    if offer.description is not None:
        function["description"] = offer.description
    if offer.parameters is not None:
        function["parameters"] = offer.parameters
    if offer.strict is not None:
        if own or not offer.strict or is_closed(offer.parameters, complete=True):
            function["strict"] = offer.strict
        else:
            losses.lose("tools.strict")
    tool: dict[str, Any] = {"type": "function", "function": function}
    if own:
        rest = dict(offer.more)
        function.update(rest.pop("function", {}))
        tool.update(rest)
        if offer.cache is not None:
            tool["cache_control"] = offer.cache
    else:
        losses.lose_all(offer.more, "tools.")
    return tool


def _choice(choice: ToolChoice | None, has_tools: bool, losses: Losses) -> Any:
    if choice is None:
        return None
    if choice.mode in ("auto", "none", "required"):
        return choice.mode if has_tools else None  # refused without tools
    if _is_chat_choice(choice.value):
        return choice.value
    if choice.mode == "tool":
        return {"type": "function", "function": {"name": choice.names[0]}}
    if choice.mode == "allowed":
        listed = [{"type": "function", "function": {"name": name}} for name in choice.names]
        mode = "required" if choice.required else "auto"
        return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": listed}}
    losses.lose("tool_choice")
    return None


def _is_chat_choice(value: Any) -> bool:
    """Whether a choice kept whole is one of chat's own forms."""
    fields = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    kind = fields.get("type")
    return isinstance(kind, str) and isinstance(fields.get(kind), dict)


def _output(output: OutputFormat | None) -> dict[str, Any] | None:
    if output is None:
        return None
    if output.kind == "json_object":
        return {"type": "json_object"}
    schema: dict[str, Any] = {"name": output.name or "answer"}
    if output.description is not None:
        schema["description"] = output.description
    if output.schema is not None:
        schema["schema"] = output.schema
    if output.strict is not None:
        schema["strict"] = output.strict
    return {"type": "json_schema", "json_schema": schema}
