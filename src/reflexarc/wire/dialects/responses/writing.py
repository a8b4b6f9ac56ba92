"""Requests, written.

A request that came in another dialect is sent without anything kept at the provider: `store` is
false, and reasoning comes back with what it takes to send it again.
"""

import hashlib
from typing import Any, cast

from reflexarc.wire.dialects.openai_shared import FAMILY, SAME_SETTINGS, custom_to_flat
from reflexarc.wire.dialects.responses.items_in import NAME
from reflexarc.wire.dialects.responses.items_out import ItemsWriter
from reflexarc.wire.dialects.responses.reading import ENCRYPTED
from reflexarc.wire.ids import IdMap
from reflexarc.wire.losses import Losses
from reflexarc.wire.turns import Ask, OutputFormat, Reasoning, Settings, ToolChoice, ToolOffer

LEAST_OUTPUT_TOKENS = 16
"""The API refuses a smaller `max_output_tokens`."""

MAX_USER_CHARS = 64
"""The API refuses a longer `user`."""

_TIERS = frozenset({"auto", "default", "flex", "scale", "priority", "fast", "ultrafast"})

# What cannot be said here, in the words of the dialects that say it.
_WORDS: dict[str, dict[str, str]] = {
    "chat": {"count": "n", "max_tokens": "max_tokens", "budget": "reasoning.max_tokens"},
    "messages": {
        "stop": "stop_sequences",
        "user": "metadata.user_id",
        "budget": "thinking.budget_tokens",
    },
    "gemini": {
        "stop": "generationConfig.stopSequences",
        "top_k": "generationConfig.topK",
        "seed": "generationConfig.seed",
        "presence_penalty": "generationConfig.presencePenalty",
        "frequency_penalty": "generationConfig.frequencyPenalty",
        "count": "generationConfig.candidateCount",
        "max_tokens": "generationConfig.maxOutputTokens",
        "budget": "generationConfig.thinkingConfig.thinkingBudget",
        "tool_choice": "toolConfig.functionCallingConfig",
        "metadata": "labels",
    },
}
# The least budgets of thinking, in tokens, that an effort is written for: there is no exact word.
_EFFORTS = ((16_384, "high"), (4_096, "medium"), (1, "low"))


def write_ask(ask: Ask, losses: Losses, ids: IdMap) -> dict[str, Any]:
    settings = ask.settings
    own = ask.dialect == NAME
    instructions, items = ItemsWriter(ask.dialect, losses, ids).write(ask.turns)
    body: dict[str, Any] = {"model": settings.model}
    if instructions is not None:
        body["instructions"] = instructions
    body["input"] = items
    body.update(write_tools(ask, losses))
    body.update(write_sampling(ask, losses))
    if settings.stream:
        body["stream"] = True
    include = _include(ask)
    if include:
        body["include"] = include
    if not own:
        body["store"] = False
        if ask.settings.store:
            losses.lose("store")
    elif settings.previous is not None:
        body["previous_response_id"] = settings.previous
    body.update(
        (name, value)
        for name, value in _more(ask, losses).items()
        if name not in body and name != "include"
    )
    return body


def write_tools(ask: Ask, losses: Losses) -> dict[str, Any]:
    """The members on tools. Those of other dialects' hosted tools are named."""
    own = ask.dialect == NAME
    tools: list[dict[str, Any]] = []
    for tool in ask.tools:
        if tool.cache is not None:
            losses.lose("cache_control")
        if tool.kind == "function":
            tools.append(_function(tool, own, losses))
        elif own and tool.value is not None:
            tools.append(tool.value)
        elif tool.kind == "custom" and ask.dialect == "chat" and tool.value is not None:
            tools.append(custom_to_flat(tool.value))
        else:
            losses.lose(f"tools.{tool.name}")
    written: dict[str, Any] = {"tools": tools} if tools else {}
    settings = ask.settings
    # Without tools there is nothing to choose; some servers refuse the word.
    choice = settings.choice if tools or own else None
    said = None if choice is None else _choice(choice, ask, losses)
    if said is not None:
        written["tool_choice"] = said
    if settings.parallel is not None and (tools or own):
        written["parallel_tool_calls"] = settings.parallel
    return written


def write_sampling(ask: Ask, losses: Losses) -> dict[str, Any]:
    """The members on how to answer."""
    settings = ask.settings
    own = ask.dialect == NAME
    written: dict[str, Any] = {}
    tokens = settings.max_tokens
    if tokens is not None and not own and tokens < LEAST_OUTPUT_TOKENS:
        losses.lose(_word("max_tokens", ask.dialect))
        tokens = LEAST_OUTPUT_TOKENS
    written["max_output_tokens"] = tokens
    written["temperature"] = settings.temperature
    written["top_p"] = settings.top_p
    written["reasoning"] = _reasoning(settings.reasoning, ask.dialect, losses)
    written["text"] = _text(settings, own)
    written["user"] = _user(settings.user, ask.dialect, losses)
    written["metadata"] = _metadata(settings.metadata, ask.dialect, losses)
    written["service_tier"] = _tier(settings.service_tier, own, losses)
    if own:
        written["store"] = settings.store
    written["prompt_cache_key"] = settings.cache_key
    _lose_unsayable(settings, ask.dialect, losses)
    return {name: value for name, value in written.items() if value is not None}


def _include(ask: Ask) -> list[Any]:
    kept: Any = ask.settings.more.get("include") if ask.dialect == NAME else None
    include = list(cast("list[Any]", kept)) if isinstance(kept, list) else []
    if ask.dialect != NAME or ask.settings.signatures:
        include.append(ENCRYPTED)
    return include


def _more(ask: Ask, losses: Losses) -> dict[str, Any]:
    more = {k: v for k, v in ask.settings.more.items() if v is not None}
    if ask.dialect == NAME:
        return more
    same: dict[str, Any] = {}
    if ask.dialect in FAMILY:
        same = {k: v for k, v in more.items() if k in SAME_SETTINGS}
    losses.lose_all({k: v for k, v in more.items() if k not in same})
    return same


def _function(tool: ToolOffer, own: bool, losses: Losses) -> dict[str, Any]:
    written: dict[str, Any] = {"type": "function", "name": tool.name}
    if tool.description is not None:
        written["description"] = tool.description
    parameters = tool.parameters
    # An empty schema is refused.
    empty = parameters is None or not (parameters or own)
    written["parameters"] = {"type": "object", "properties": {}} if empty else parameters
    if not own:
        # Strict is what goes without saying here, and nowhere else.
        written["strict"] = tool.strict or False
        losses.lose_all(tool.more, "tools.")
        return written
    if tool.strict is not None and "strict" not in tool.more:
        written["strict"] = tool.strict
    written.update((k, v) for k, v in tool.more.items() if v is not None)
    return written


def _choice(choice: ToolChoice, ask: Ask, losses: Losses) -> Any:
    if ask.dialect == NAME and choice.value is not None:
        return choice.value
    if choice.mode in ("auto", "none", "required"):
        return choice.mode
    customs = {tool.name for tool in ask.tools if tool.kind == "custom"}
    named = [
        {"type": "custom" if name in customs else "function", "name": name} for name in choice.names
    ]
    if choice.mode == "tool" and named:
        return named[0]
    if choice.mode == "allowed":
        mode = "required" if choice.required else "auto"
        return {"type": "allowed_tools", "mode": mode, "tools": named}
    losses.lose(_word("tool_choice", ask.dialect))
    return None


def _reasoning(reasoning: Reasoning | None, dialect: str, losses: Losses) -> dict[str, Any] | None:
    if reasoning is None:
        return None
    written: dict[str, Any] = {}
    if reasoning.effort is not None:
        written["effort"] = reasoning.effort
    elif reasoning.enabled is False or reasoning.budget == 0:
        written["effort"] = "none"
    elif reasoning.budget is not None and reasoning.budget > 0:
        written["effort"] = next(word for least, word in _EFFORTS if reasoning.budget >= least)
        losses.lose(_word("budget", dialect))
    if dialect == NAME:
        if reasoning.shown:
            written["summary"] = "auto"
        written.update((k, v) for k, v in reasoning.more.items() if v is not None)
        return written
    losses.lose_all(reasoning.more, "reasoning.")
    # Thinking that was asked for in a dialect that shows it is asked for as a summary. Chat shows
    # none of itself, and some accounts are refused for asking.
    shows = dialect != "chat" and reasoning.enabled
    asked = reasoning.shown or (reasoning.shown is None and shows)
    if asked and written.get("effort") != "none":
        written["summary"] = "auto"
    return written or None


def _text(settings: Settings, own: bool) -> dict[str, Any] | None:
    text: dict[str, Any] = {}
    if settings.output is not None:
        text["format"] = _format(settings.output, own)
    if settings.verbosity is not None:
        text["verbosity"] = settings.verbosity
    more = settings.more.get("text") if own else None
    if isinstance(more, dict):
        text.update(cast("dict[str, Any]", more))
    return text or None


def _format(output: OutputFormat, own: bool) -> dict[str, Any]:
    if output.kind == "json_object":
        return {"type": "json_object"}
    written: dict[str, Any] = {"type": "json_schema"}
    if output.name is not None or not own:
        written["name"] = output.name or "answer"
    if output.description is not None:
        written["description"] = output.description
    if output.schema is not None or not own:
        written["schema"] = {} if output.schema is None else output.schema
    if output.strict is not None:
        written["strict"] = output.strict
    return written


def _user(user: str | None, dialect: str, losses: Losses) -> str | None:
    if user is None or dialect in FAMILY or len(user) <= MAX_USER_CHARS:
        return user
    # What tells one user from another is kept; the name itself does not fit.
    losses.lose(f"{_word('user', dialect)} (shortened)")
    return hashlib.blake2b(user.encode("utf-8", "surrogatepass"), digest_size=32).hexdigest()


def _metadata(
    metadata: dict[str, Any] | None, dialect: str, losses: Losses
) -> dict[str, Any] | None:
    if metadata is None or dialect == NAME:
        return metadata
    if all(isinstance(value, str) for value in metadata.values()):
        return metadata
    losses.lose(_word("metadata", dialect))
    return None


def _tier(tier: str | None, own: bool, losses: Losses) -> str | None:
    if tier is None or own or tier in _TIERS:
        return tier
    if tier == "standard_only":
        return "default"
    losses.lose("service_tier")
    return None


def _lose_unsayable(settings: Settings, dialect: str, losses: Losses) -> None:
    unsayable: dict[str, Any] = {
        "stop": settings.stop or None,
        "top_k": settings.top_k,
        "seed": settings.seed,
        "presence_penalty": settings.presence_penalty,
        "frequency_penalty": settings.frequency_penalty,
        "count": settings.count if settings.count != 1 else None,
    }
    for name, value in unsayable.items():
        if value is not None:
            losses.lose(_word(name, dialect))


def _word(name: str, dialect: str) -> str:
    return _WORDS.get(dialect, {}).get(name, name)
