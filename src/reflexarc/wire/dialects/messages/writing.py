"""Requests of the hub in the messages dialect: settings, tools, choice, thinking."""

from typing import Any

from reflexarc.wire.dialects.messages.arranging import arranged
from reflexarc.wire.dialects.messages.blocks_out import lose_rest
from reflexarc.wire.dialects.messages.words import EFFORTS, NAME, TIERS, theirs
from reflexarc.wire.dialects.strictness import is_closed
from reflexarc.wire.ids import IdMap
from reflexarc.wire.losses import Losses
from reflexarc.wire.turns import Ask, Reasoning, Settings, ToolChoice, ToolOffer

DEFAULT_MAX_TOKENS = 32_000
"""The dialect demands a limit. Where the client set none, this one: as much as the models take
that clients of other dialects are sent to, and more than an agent's turn has been seen to need."""

_LEAST_BUDGET_TOKENS = 1_024
_LEAST_TOP_P_THINKING = 0.95
_TIER_WORDS = {word: name for name, word in TIERS.items()}
_FORCED = ("required", "tool")


def write_ask(ask: Ask, losses: Losses, ids: IdMap) -> dict[str, Any]:
    return _Request(ask, losses, ids).body()


class _Request:
    def __init__(self, ask: Ask, losses: Losses, ids: IdMap) -> None:
        self._ask = ask
        self._settings = ask.settings
        self._own = ask.dialect == NAME
        self._losses = losses
        self._ids = ids

    def body(self) -> dict[str, Any]:
        settings = self._settings
        told = arranged(self._ask, self._losses, self._ids)
        body: dict[str, Any] = {"model": settings.model, "max_tokens": settings.max_tokens}
        if told.system:
            body["system"] = told.system
        body["messages"] = told.messages
        self._put_tools(body)
        self._put_thinking(body)
        self._put_sampling(body)
        if settings.user is not None:
            body["metadata"] = {"user_id": settings.user}
        self._put_tier(body)
        if settings.stream:
            body["stream"] = True
        self._put_rest(body)
        if body["max_tokens"] is None:
            del body["max_tokens"]
            if not self._own:
                body["max_tokens"] = _limit(body)
        return body

    def _lose(self, member: str) -> None:
        self._losses.lose(theirs(self._ask.dialect, member))

    def _put_tools(self, body: dict[str, Any]) -> None:
        choice, parallel = self._settings.choice, self._settings.parallel
        offered = self._ask.tools
        if choice is not None and choice.mode == "allowed":
            # There is no word for it here; offering no others says the same.
            offered = tuple(tool for tool in offered if tool.name in choice.names)
        written_tools = [self._tool(tool) for tool in offered]
        tools = [tool for tool in written_tools if tool is not None]
        if tools:
            body["tools"] = tools
        written = self._choice(
            choice, {name for tool in tools if isinstance(name := tool.get("name"), str)}
        )
        if written is None and parallel is False and tools:
            written = {"type": "auto"}
        if written is None:
            return
        # Not to be said where no call may be made.
        if parallel is not None and written.get("type") != "none":
            written = {**written, "disable_parallel_tool_use": not parallel}
        body["tool_choice"] = written

    def _tool(self, tool: ToolOffer) -> dict[str, Any] | None:
        if tool.kind != "function":
            if self._own and tool.value is not None:
                return tool.value
            kind = (tool.value or {}).get("type")
            self._losses.lose(f"tools.{kind if isinstance(kind, str) else tool.name}")
            return None
        body: dict[str, Any] = {"name": tool.name}
        if tool.description is not None:
            body["description"] = tool.description
        schema = tool.parameters
        empty = schema is None or not (schema or self._own)
        body["input_schema"] = {"type": "object", "properties": {}} if empty else schema
        if self._own and tool.strict is not None:
            body["strict"] = tool.strict
        elif tool.strict and is_closed(schema, complete=False):
            body["strict"] = True
        elif tool.strict:
            self._losses.lose("tools.strict")
        if tool.cache is not None:
            body["cache_control"] = tool.cache
        if self._own:
            body.update(tool.more)
        else:
            lose_rest(self._losses, tool.more, "tools")
        return body

    def _choice(self, choice: ToolChoice | None, names: set[Any]) -> dict[str, Any] | None:
        if choice is None:
            return None
        if choice.mode == "other":
            if self._own:
                return choice.value
            self._lose("choice")
            return None
        missing = not names or (choice.mode == "tool" and choice.names[0] not in names)
        if missing and not self._own:
            # A choice without its tools is refused. What others allow there says nothing either,
            # but for a call that must be made.
            if choice.mode in _FORCED or choice.required:
                self._lose("choice")
            return None
        if choice.mode == "tool":
            return {"type": "tool", "name": choice.names[0]}
        if choice.mode == "allowed":
            return {"type": "any" if choice.required else "auto"}
        return {"type": "any" if choice.mode == "required" else choice.mode}

    def _put_thinking(self, body: dict[str, Any]) -> None:
        settings = self._settings
        config: dict[str, Any] = {}
        if settings.reasoning is not None:
            self._put_reasoning(settings.reasoning, body, config)
        output = settings.output
        if output is not None:
            if output.schema is None:
                self._lose("output")
            else:
                config["format"] = {"type": "json_schema", "schema": output.schema}
                if output.description is not None:
                    self._losses.lose(f"{theirs(self._ask.dialect, 'output')}.description")
        if config:
            body["output_config"] = config

    def _put_reasoning(
        self, given: Reasoning, body: dict[str, Any], config: dict[str, Any]
    ) -> None:
        effort = given.effort
        if self._own:
            thinking = _thinking(given)
            thinking = given.more.get("thinking", thinking)
        else:
            lose_rest(self._losses, given.more, theirs(self._ask.dialect, "reasoning"))
            thinking = self._foreign_thinking(given)
            effort = None if effort in (None, "none") else EFFORTS.get(effort.lower())
            if effort is None and given.effort not in (None, "none"):
                self._lose("reasoning")
        if thinking is not None:
            body["thinking"] = thinking
        if effort is not None:
            config["effort"] = effort

    def _foreign_thinking(self, given: Reasoning) -> dict[str, Any] | None:
        if given.effort == "none" or given.enabled is False:
            return {"type": "disabled"}
        # An effort says enough, and models that know no other way of thinking take it.
        said = given.enabled is True and given.effort is None
        if given.budget is None and not said and given.shown is not True:
            return None
        choice = self._settings.choice
        if choice is not None and (choice.mode in _FORCED or choice.required):
            # A call that must be made and thinking exclude each other here.
            self._lose("reasoning")
            return None
        if given.budget is None:
            return _thinking(Reasoning(enabled=True, shown=given.shown))
        budget, limit = given.budget, self._settings.max_tokens
        if limit is not None and budget >= limit:
            budget = limit - 1
        budget = max(budget, _LEAST_BUDGET_TOKENS)
        if budget != given.budget:
            self._lose("reasoning")
        if limit is not None and budget >= limit:
            return None
        return _thinking(Reasoning(enabled=True, budget=budget, shown=given.shown))

    def _put_sampling(self, body: dict[str, Any]) -> None:
        settings = self._settings
        heat, top_p, top_k = settings.temperature, settings.top_p, settings.top_k
        if not self._own:
            heat, top_p = self._foreign_sampling(heat, top_p)
            if body.get("thinking", {}).get("type") in ("enabled", "adaptive"):
                heat, top_p, top_k = self._beside_thinking(heat, top_p, top_k)
        if heat is not None:
            body["temperature"] = heat
        if top_p is not None:
            body["top_p"] = top_p
        if top_k is not None:
            body["top_k"] = top_k
        stop = settings.stop
        if not self._own and any(not text.strip() for text in stop):
            # Blank ones are refused.
            stop = tuple(text for text in stop if text.strip())
            self._lose("stop")
        if stop:
            body["stop_sequences"] = list(stop)

    def _foreign_sampling(
        self, heat: float | None, top_p: float | None
    ) -> tuple[float | None, float | None]:
        """Temperatures end at 1 here; and models refuse it together with `top_p`, where at most
        one of the two says anything: 1 is what each is unsaid."""
        if heat is not None and heat > 1:
            self._lose("temperature")
            heat = 1
        if heat is None or top_p is None:
            return heat, top_p
        if top_p == 1:
            return heat, None
        if heat == 1:
            return None, top_p
        self._lose("top_p")
        return heat, None

    def _beside_thinking(
        self, heat: float | None, top_p: float | None, top_k: int | None
    ) -> tuple[float | None, float | None, int | None]:
        """Thinking wants the usual temperature, no `top_k`, and a `top_p` near 1."""
        if heat is not None and heat != 1:
            self._lose("temperature")
        if top_k is not None:
            self._lose("top_k")
        if top_p is not None and top_p < _LEAST_TOP_P_THINKING:
            self._lose("top_p")
            top_p = None
        return None, top_p, None

    def _put_tier(self, body: dict[str, Any]) -> None:
        tier = self._settings.service_tier
        if tier is None:
            return
        if tier in _TIER_WORDS or self._own:
            body["service_tier"] = _TIER_WORDS.get(tier, tier)
        else:
            self._lose("service_tier")

    def _put_rest(self, body: dict[str, Any]) -> None:
        settings = self._settings
        if self._own:
            for name, value in settings.more.items():
                held = body.get(name)
                body[name] = {**held, **value} if isinstance(held, dict) else value
            return
        for name, value in settings.more.items():
            # The older name of a limit that is written.
            if name != "max_tokens" or value != settings.max_tokens:
                lose_rest(self._losses, {name: value}, "")
        for member, lost in _unsaid(settings).items():
            if lost:
                self._lose(member)


def _unsaid(settings: Settings) -> dict[str, bool]:
    """What this dialect has no word for, and whether the request says it. What it says as every
    request does unsaid is no loss."""
    return {
        "seed": settings.seed is not None,
        "presence_penalty": bool(settings.presence_penalty),
        "frequency_penalty": bool(settings.frequency_penalty),
        "count": settings.count not in (None, 1),
        "verbosity": settings.verbosity is not None,
        "metadata": bool(settings.metadata),
        "store": bool(settings.store),
        "previous": settings.previous is not None,
        "cache_key": settings.cache_key is not None,
    }


def _thinking(given: Reasoning) -> dict[str, Any] | None:
    if given.enabled is None:
        return None
    if not given.enabled:
        return {"type": "disabled"}
    thinking: dict[str, Any] = {"type": "adaptive"}
    if given.budget is not None:
        thinking = {"type": "enabled", "budget_tokens": given.budget}
    if given.shown is not None:
        thinking["display"] = "summarized" if given.shown else "omitted"
    return thinking


def _limit(body: dict[str, Any]) -> int:
    """The limit holds the thinking too, and must be above its budget."""
    budget = body.get("thinking", {}).get("budget_tokens", 0)
    return DEFAULT_MAX_TOKENS if budget < DEFAULT_MAX_TOKENS else budget + DEFAULT_MAX_TOKENS
