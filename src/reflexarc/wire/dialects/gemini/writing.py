"""Requests for `generateContent`, written. The model and the streaming go into the URL."""

from typing import Any, cast

from reflexarc.wire.dialects.gemini.contents_out import contents_of
from reflexarc.wire.dialects.gemini.reading import JSON_TYPE
from reflexarc.wire.dialects.gemini.shapes import NAME, nested
from reflexarc.wire.dialects.gemini.signatures import is_before_gemini_3
from reflexarc.wire.ids import IdMap
from reflexarc.wire.losses import Losses
from reflexarc.wire.turns import Ask, OutputFormat, Reasoning, Settings, ToolChoice, ToolOffer

_TIERS = {"default": "standard", "flex": "flex", "priority": "priority"}
_MAX_SEED = 2**31
_MAX_STOPS = 5

_SAID: dict[str, dict[str, str]] = {
    "chat": {
        "parallel": "parallel_tool_calls",
        "effort": "reasoning_effort",
        "format": "response_format.json_schema",
        "count": "n",
        "cache_key": "prompt_cache_key",
    },
    "responses": {
        "parallel": "parallel_tool_calls",
        "effort": "reasoning.effort",
        "format": "text.format",
        "verbosity": "text.verbosity",
        "previous": "previous_response_id",
        "cache_key": "prompt_cache_key",
    },
    "messages": {
        "stop": "stop_sequences",
        "parallel": "tool_choice.disable_parallel_tool_use",
        "effort": "output_config.effort",
        "format": "output_config.format",
        "user": "metadata.user_id",
    },
}
"""What a setting is called in the dialect it came in, where that is another name."""


def write_ask(ask: Ask, losses: Losses, ids: IdMap) -> dict[str, Any]:
    own = ask.dialect == NAME
    settings = ask.settings
    body = contents_of(ask, losses, ids)
    tools = _tools(ask.tools, own, losses)
    if tools:
        body["tools"] = tools
    calling = _calling(ask, own, losses)
    if calling:
        body["toolConfig"] = calling
    config = _config(ask, own, losses)
    if config:
        body["generationConfig"] = config
    if settings.service_tier is not None:
        tier = _TIERS.get(settings.service_tier, settings.service_tier if own else None)
        if tier is not None:
            body["serviceTier"] = tier
        elif settings.service_tier != "auto":
            losses.lose("service_tier")
    if settings.store is False or (own and settings.store):
        body["store"] = settings.store
    _name_lost(settings, ask.dialect, losses)
    if own:
        body.update((k, v) for k, v in settings.more.items() if "." not in k)
    else:
        losses.lose_all(settings.more)
    return body


def _name_lost(settings: Settings, dialect: str, losses: Losses) -> None:
    said = _SAID.get(dialect, {})
    lost = {
        "parallel": settings.parallel is False,
        "verbosity": settings.verbosity is not None,
        "user": settings.user is not None,
        "metadata": settings.metadata is not None,
        "store": settings.store is True and dialect != NAME,
        "previous": settings.previous is not None,
        "cache_key": settings.cache_key is not None,
    }
    for name, is_lost in lost.items():
        if is_lost:
            losses.lose(said.get(name, name))


def _config(ask: Ask, own: bool, losses: Losses) -> dict[str, Any]:
    settings = ask.settings
    said = _SAID.get(ask.dialect, {})
    seed, count = settings.seed, settings.count
    if seed is not None and not -_MAX_SEED <= seed < _MAX_SEED:
        losses.lose("seed")
        seed = None
    if count is not None and not own:
        # One answer is read; others would be paid for and thrown away.
        if count > 1:
            losses.lose(said.get("count", "count"))
        count = None
    if len(settings.stop) > _MAX_STOPS and not own:
        losses.lose(f"{said.get('stop', 'stop')} (more than {_MAX_STOPS})")
    given = {
        "temperature": settings.temperature,
        "topP": settings.top_p,
        "topK": settings.top_k,
        "maxOutputTokens": settings.max_tokens,
        "stopSequences": list(settings.stop if own else settings.stop[:_MAX_STOPS]) or None,
        "candidateCount": count,
        "seed": seed,
        "presencePenalty": settings.presence_penalty,
        "frequencyPenalty": settings.frequency_penalty,
    }
    config: dict[str, Any] = {name: v for name, v in given.items() if v is not None}
    if settings.output is not None:
        _put_output(config, settings.output, said.get("format", "format"), losses)
    if settings.reasoning is not None:
        thinking = _thinking(ask, settings.reasoning, own, said.get("effort", "effort"), losses)
        if thinking:
            config["thinkingConfig"] = thinking
    if own:
        config.update(nested(settings.more, "generationConfig"))
    return config


def _put_output(config: dict[str, Any], form: OutputFormat, said: str, losses: Losses) -> None:
    """A format's name is a label, and `strict` is how this API always works."""
    config["responseMimeType"] = JSON_TYPE
    if form.kind == "json_schema" and form.schema is not None:
        config["responseJsonSchema"] = form.schema
    if form.description is not None:
        losses.lose(f"{said}.description")


_LEVELS = {
    "minimal": "MINIMAL",
    "low": "LOW",
    "medium": "MEDIUM",
    "high": "HIGH",
    "xhigh": "XHIGH",
}
_BUDGETS = {"minimal": 1_024, "low": 1_024, "medium": 8_192, "high": 24_576}
"""Tokens that Google's own reading of an effort gives models without levels
(https://ai.google.dev/gemini-api/docs/openai)."""


def _thinking(
    ask: Ask, reasoning: Reasoning, own: bool, said: str, losses: Losses
) -> dict[str, Any]:
    made: dict[str, Any] = {}
    effort = reasoning.effort
    by_budget = not own and is_before_gemini_3(ask.settings.model)
    if reasoning.enabled is False or (effort == "none" and not own):
        made["thinkingBudget"] = 0
        effort = None
    elif reasoning.budget is not None:
        # One of both; the finer one counts, but for a request that gave both.
        made["thinkingBudget"] = reasoning.budget
        if effort is not None and not own:
            losses.lose(said)
            effort = None
    elif reasoning.enabled and (own or (by_budget and effort is None)):
        made["thinkingBudget"] = -1
    if effort is not None and own:
        made["thinkingLevel"] = effort.upper()
    elif effort is not None and by_budget:
        if effort not in _BUDGETS:
            losses.lose(said)
        made["thinkingBudget"] = _BUDGETS.get(effort, _BUDGETS["high"])
    elif effort is not None:
        if effort not in _LEVELS:
            losses.lose(said)
        made["thinkingLevel"] = _LEVELS.get(effort, "XHIGH" if effort == "max" else "HIGH")
    if reasoning.shown is not None:
        made["includeThoughts"] = reasoning.shown
    elif ask.dialect == "messages" and made.get("thinkingBudget") != 0 and reasoning.enabled:
        # Who asks for thinking there sees it.
        made["includeThoughts"] = True
    if own:
        made.update(reasoning.more)
    else:
        losses.lose_all(reasoning.more, "reasoning.")
    return made


def _tools(offers: tuple[ToolOffer, ...], own: bool, losses: Losses) -> list[dict[str, Any]]:
    tools: list[dict[str, Any]] = []
    declared: list[dict[str, Any]] | None = None
    for offer in offers:
        if offer.kind == "function":
            if declared is None:
                declared = []
                tools.append({"functionDeclarations": declared})
            declared.append(_declaration(offer, own, losses))
        elif own and offer.value is not None:
            declared = None
            tools.append(offer.value)
        else:
            kind = (offer.value or {}).get("type")
            losses.lose(f"tools.{kind if isinstance(kind, str) else offer.name}")
    return tools


def _declaration(offer: ToolOffer, own: bool, losses: Losses) -> dict[str, Any]:
    made: dict[str, Any] = {"name": offer.name}
    if offer.description is not None:
        made["description"] = offer.description
    if own and offer.value is not None:
        made.update(offer.value)
    elif offer.parameters or (own and offer.parameters is not None):
        made["parametersJsonSchema"] = offer.parameters
    if offer.strict:
        losses.lose("tools.strict")
    if offer.cache is not None:
        losses.lose("cache_control")
    if own:
        made.update(offer.more)
    else:
        losses.lose_all(offer.more, "tools.")
    return made


def _calling(ask: Ask, own: bool, losses: Losses) -> dict[str, Any]:
    made: dict[str, Any] = {}
    choice = ask.settings.choice
    if choice is not None:
        config = _choice(choice, own)
        declared = any(offer.kind == "function" for offer in ask.tools)
        if config is None or (not own and not declared and choice.mode not in ("auto", "none")):
            losses.lose("tool_choice")
        elif own or declared:
            made["functionCallingConfig"] = config
    if own:
        made.update(nested(ask.settings.more, "toolConfig"))
    return made


def _choice(choice: ToolChoice, own: bool) -> dict[str, Any] | None:
    if own and choice.value is not None:
        return cast("dict[str, Any]", choice.value)
    modes = {"auto": "AUTO", "none": "NONE", "required": "ANY"}
    if choice.mode in modes:
        return {"mode": modes[choice.mode]}
    if choice.mode == "tool" or (choice.mode == "allowed" and choice.required):
        return {"mode": "ANY", "allowedFunctionNames": list(choice.names)}
    if choice.mode == "allowed":
        # AUTO takes no names.
        return {"mode": "VALIDATED", "allowedFunctionNames": list(choice.names)}
    return None
