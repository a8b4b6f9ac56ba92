"""Requests of the messages dialect to the hub: head and messages."""

from typing import Any, cast

from reflexarc.wire.dialect import Head
from reflexarc.wire.dialects.messages.blocks_in import parts_of, with_signed_calls
from reflexarc.wire.dialects.messages.words import TIERS
from reflexarc.wire.dialects.shapes import Members, as_object, fault, texts
from reflexarc.wire.turns import (
    Call,
    OutputFormat,
    Part,
    Reasoning,
    Result,
    Settings,
    Thinking,
    ToolChoice,
    ToolOffer,
    Turn,
)

_SHOWN = {"summarized": True, "omitted": False}


def read_head(values: dict[str, Any]) -> Head:
    """Raises `RequestError`. `max_tokens` may be missing: counting asks without it."""
    members = Members(values, "")
    system = parts_of(members.take("system"), "system")
    tools = tuple(
        _tool(tool, f"tools[{at}]") for at, tool in enumerate(members.list("tools") or [])
    )
    choice, parallel = _choice(members.take("tool_choice"))
    thinking = members.object("thinking")
    config = members.members("output_config")
    effort = None if config is None else config.text("effort")
    output = _taken_output(members, config)
    metadata = members.members("metadata")
    tier = members.text("service_tier")
    stream = members.flag("stream") or False
    settings = Settings(
        model=members.needed_text("model"),
        stream=stream,
        include_usage=stream,
        max_tokens=members.whole("max_tokens"),
        temperature=members.number("temperature"),
        top_p=members.number("top_p"),
        top_k=members.whole("top_k"),
        stop=texts(members.take("stop_sequences"), "stop_sequences"),
        choice=choice,
        parallel=parallel,
        output=output,
        reasoning=_reasoning(thinking, effort),
        user=None if metadata is None else metadata.text("user_id"),
        service_tier=None if tier is None else TIERS.get(tier, tier),
        more=members.rest,
    )
    for name, inner in (("metadata", metadata), ("output_config", config)):
        if inner is not None and inner.rest:
            settings.more[name] = inner.rest
    turns = (Turn("system", tuple(system)),) if system else ()
    return Head(settings, tools, turns)


def read_message(value: Any, path: str) -> tuple[Turn, ...]:
    """A user's message with results is two turns: the results, then what else it says. Raises
    `RequestError`."""
    members = Members(value, path)
    role = members.needed_text("role")
    parts = parts_of(members.take("content"), f"{path}.content")
    if role != "assistant":
        for part in parts:
            if isinstance(part, Call | Thinking):
                what = "tool_use" if isinstance(part, Call) else "thinking"
                raise fault(
                    f"{path}.content", f"may hold {what} blocks in an assistant's message only"
                )
    if role == "user":
        return _user_turns(parts, members.rest)
    if any(isinstance(part, Result) for part in parts):
        raise fault(f"{path}.content", "may hold tool_result blocks in a user's message only")
    if role == "assistant":
        return (Turn("assistant", tuple(with_signed_calls(parts)), more=members.rest),)
    if role == "system":
        return (Turn("system", tuple(parts), more=members.rest),)
    raise fault(f"{path}.role", "must be user, assistant or system", role)


def _user_turns(parts: list[Part], more: dict[str, Any]) -> tuple[Turn, ...]:
    results = tuple(part for part in parts if isinstance(part, Result))
    said = tuple(part for part in parts if not isinstance(part, Result))
    if not results:
        return (Turn("user", said, more=more),)
    whole = Turn("tool", results, more=more)
    return (whole, Turn("user", said)) if said else (whole,)


def _tool(value: Any, path: str) -> ToolOffer:
    """A tool without a type, or of the type `custom`, is what others call a function."""
    given = as_object(value, path)
    kind = given.get("type")
    if kind is not None and kind != "custom":
        name = given.get("name")
        shown = name if isinstance(name, str) else str(kind)
        return ToolOffer(shown, kind="hosted", value=given)
    members = Members(given, path)
    members.take("type")
    return ToolOffer(
        members.needed_text("name"),
        members.text("description"),
        members.object("input_schema"),
        members.flag("strict"),
        cache=members.object("cache_control"),
        more=members.rest,
    )


def _choice(value: Any) -> tuple[ToolChoice | None, bool | None]:
    if value is None:
        return None, None
    members = Members(value, "tool_choice")
    kind = members.needed_text("type")
    alone = members.flag("disable_parallel_tool_use")
    parallel = None if alone is None else not alone
    name = members.text("name")
    if members.rest or (name is not None) != (kind == "tool"):
        return ToolChoice("other", value=value), None
    if kind == "tool" and name is not None:
        return ToolChoice("tool", (name,)), parallel
    if kind == "auto":
        return ToolChoice("auto"), parallel
    if kind == "any":
        return ToolChoice("required"), parallel
    if kind == "none" and parallel is None:
        return ToolChoice("none"), None
    return ToolChoice("other", value=value), None


def _reasoning(thinking: dict[str, Any] | None, effort: str | None) -> Reasoning | None:
    if thinking is None:
        return None if effort is None else Reasoning(effort=effort)
    members = Members(thinking, "thinking")
    kind = members.needed_text("type")
    budget = members.whole("budget_tokens")
    display = members.text("display")
    shown = None if display is None else _SHOWN.get(display)
    known = not members.rest and (display is None or shown is not None)
    if known and kind == "enabled" and budget is not None:
        return Reasoning(enabled=True, effort=effort, budget=budget, shown=shown)
    if known and kind == "adaptive" and budget is None:
        return Reasoning(enabled=True, effort=effort, shown=shown)
    if known and kind == "disabled" and budget is None and shown is None:
        return Reasoning(enabled=False, effort=effort)
    return Reasoning(effort=effort, more={"thinking": thinking})


def _taken_output(members: Members, config: Members | None) -> OutputFormat | None:
    """`output_format` is the older place for it."""
    for holder, name in ((config, "format"), (members, "output_format")):
        value = None if holder is None else holder.rest.get(name)
        output = None if value is None else _output(value)
        if holder is not None and output is not None:
            holder.take(name)
            return output
    return None


def _output(value: Any) -> OutputFormat | None:
    """None for a form that has more to it than a schema: it stays where it was."""
    members = Members(value, "output_config.format")
    kind, schema = members.take("type"), members.take("schema")
    if kind != "json_schema" or not isinstance(schema, dict) or members.rest:
        return None
    return OutputFormat("json_schema", cast("dict[str, Any]", schema))
