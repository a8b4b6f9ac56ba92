"""Requests of OpenAI's chat completions, read. Members nobody here knows stay in `more`."""

from typing import Any

from reflexarc.wire.dialect import Head, Where
from reflexarc.wire.dialects.chat.messages_in import read_message as read_message
from reflexarc.wire.dialects.shapes import Members, as_object, fault, texts
from reflexarc.wire.turns import OutputFormat, Reasoning, Settings, ToolChoice, ToolOffer


def read_head(values: dict[str, Any], where: Where) -> Head:
    """All but the messages. `where` may name a model the body does not."""
    body = Members(values, "")
    tools = tuple(_tool(tool, f"tools[{at}]") for at, tool in enumerate(body.list("tools") or ()))
    options = body.members("stream_options")
    include_usage = bool(options.flag("include_usage")) if options is not None else False
    more: dict[str, Any] = {}
    if options is not None and options.rest:
        more["stream_options"] = options.rest
    limit = body.whole("max_completion_tokens")
    older = body.whole("max_tokens")
    if older is not None and limit is not None:
        more["max_tokens"] = older
    effort = body.text("reasoning_effort")
    settings = Settings(
        model=body.text("model") or where.model,
        stream=bool(body.flag("stream")),
        include_usage=include_usage,
        max_tokens=limit if limit is not None else older,
        older_limit=limit is None and older is not None,
        temperature=body.number("temperature"),
        top_p=body.number("top_p"),
        top_k=body.whole("top_k"),
        stop=texts(body.take("stop"), "stop"),
        seed=body.whole("seed"),
        presence_penalty=body.number("presence_penalty"),
        frequency_penalty=body.number("frequency_penalty"),
        count=body.whole("n"),
        choice=_choice(body.take("tool_choice")),
        parallel=body.flag("parallel_tool_calls"),
        output=_output(body, more),
        reasoning=None if effort is None else Reasoning(enabled=effort != "none", effort=effort),
        verbosity=body.text("verbosity"),
        user=body.text("user"),
        metadata=body.object("metadata"),
        service_tier=body.text("service_tier"),
        store=body.flag("store"),
        cache_key=body.text("prompt_cache_key"),
        more={**more, **body.rest},
    )
    return Head(settings, tools)


def _tool(value: Any, path: str) -> ToolOffer:
    whole = as_object(value, path)
    tool = Members(whole, path)
    kind = tool.text("type") or "function"
    if kind == "custom":
        custom = tool.members("custom")
        if custom is None:
            raise fault(f"{path}.custom", "is missing")
        name, description = custom.needed_text("name"), custom.text("description")
        return ToolOffer(name, description, kind="custom", value=whole)
    if kind != "function":
        return ToolOffer(kind, kind="hosted", value=whole)
    function = tool.members("function")
    if function is None:
        raise fault(f"{path}.function", "is missing")
    offer = ToolOffer(
        name=function.needed_text("name"),
        description=function.text("description"),
        parameters=function.object("parameters"),
        strict=function.flag("strict"),
        cache=tool.object("cache_control") or function.object("cache_control"),
        more={},
    )
    rest = {**tool.rest, **({"function": function.rest} if function.rest else {})}
    return offer if not rest else _with_more(offer, rest)


def _with_more(offer: ToolOffer, more: dict[str, Any]) -> ToolOffer:
    return ToolOffer(
        offer.name, offer.description, offer.parameters, offer.strict, cache=offer.cache, more=more
    )


def _choice(value: Any) -> ToolChoice | None:
    if value is None:
        return None
    if isinstance(value, str):
        if value in ("auto", "none", "required"):
            return ToolChoice(value)
        raise fault("tool_choice", "must be auto, none, required or an object", value)
    choice = Members(value, "tool_choice")
    kind = choice.text("type")
    if kind == "function" and (function := choice.members("function")) is not None:
        return ToolChoice("tool", (function.needed_text("name"),))
    if kind == "custom" and (custom := choice.members("custom")) is not None:
        return ToolChoice("tool", (custom.needed_text("name"),), value=value)
    if kind == "allowed_tools" and (allowed := choice.members("allowed_tools")) is not None:
        names: list[str] = []
        for at, tool in enumerate(allowed.list("tools") or ()):
            entry = Members(tool, f"tool_choice.allowed_tools.tools[{at}]")
            inner = entry.members("function") or entry.members("custom")
            if inner is None:
                return ToolChoice("other", value=value)
            names.append(inner.needed_text("name"))
        return ToolChoice("allowed", tuple(names), allowed.text("mode") == "required", value)
    return ToolChoice("other", value=value)


def _output(body: Members, more: dict[str, Any]) -> OutputFormat | None:
    given = body.object("response_format")
    if given is None:
        return None
    form = Members(given, "response_format")
    kind = form.text("type")
    if kind == "text":
        return None
    if kind == "json_object":
        return OutputFormat("json_object")
    schema = form.members("json_schema") if kind == "json_schema" else None
    if schema is None:
        more["response_format"] = given
        return None
    return OutputFormat(
        "json_schema",
        schema=schema.object("schema"),
        name=schema.text("name"),
        description=schema.text("description"),
        strict=schema.flag("strict"),
    )
