"""Requests, read: everything but the items of `input`.

Normal forms, which mean the same: members that are null, or say what is so without them
(`truncation: disabled`, `background: false`, `text.format: text`), are left out.
"""

from typing import Any, cast

from reflexarc.wire.dialect import Head, Where
from reflexarc.wire.dialects.shapes import Members, as_object, fault
from reflexarc.wire.turns import (
    OutputFormat,
    Reasoning,
    Settings,
    Text,
    ToolChoice,
    ToolOffer,
    Turn,
)

INSTRUCTIONS = "instructions"
"""A null of this name in a turn's `more`: it came as the member of this name."""

ENCRYPTED = "reasoning.encrypted_content"

_USUAL: dict[str, Any] = {
    "truncation": "disabled",
    "background": False,
    "top_logprobs": 0,
    "stream_options": {},
    "include": [],
    "text": {},
}


def read_head(values: dict[str, Any], where: Where) -> Head:
    """Raises `RequestError`."""
    body = Members(values, "")
    tools = tuple(
        _read_tool(tool, f"tools[{at}]") for at, tool in enumerate(body.list("tools") or [])
    )
    instructions = body.text("instructions")
    settings = _read_settings(body, where)
    turns = (
        (Turn("system", (Text(instructions),), more={INSTRUCTIONS: None}),)
        if instructions is not None
        else ()
    )
    return Head(settings, tools, turns)


def _read_settings(body: Members, where: Where) -> Settings:
    # A prompt kept at the provider may name the model.
    model = body.text("model") or where.model
    output, verbosity, text = _read_text(body.members("text"))
    include = body.list("include") or []
    kept = [name for name in include if name != ENCRYPTED]
    settings = Settings(
        model=model,
        stream=body.flag("stream") or False,
        max_tokens=body.whole("max_output_tokens"),
        temperature=body.number("temperature"),
        top_p=body.number("top_p"),
        choice=_read_choice(body.take("tool_choice"), "tool_choice"),
        parallel=body.flag("parallel_tool_calls"),
        output=output,
        reasoning=_read_reasoning(body.members("reasoning")),
        verbosity=verbosity,
        user=body.text("user"),
        metadata=body.object("metadata"),
        service_tier=body.text("service_tier"),
        store=body.flag("store"),
        previous=body.text("previous_response_id"),
        cache_key=body.text("prompt_cache_key"),
        signatures=len(kept) != len(include),
        more=body.rest,
    )
    more = settings.more
    if kept:
        more["include"] = kept
    if text:
        more["text"] = text
    for name, usual in _USUAL.items():
        if name in more and more[name] == usual:
            del more[name]
    return settings


def _read_text(
    text: Members | None,
) -> tuple[OutputFormat | None, str | None, dict[str, Any]]:
    if text is None:
        return None, None, {}
    verbosity = text.text("verbosity")
    given = text.object("format")
    output = None
    if given is not None:
        kind = given.get("type")
        if kind == "json_object":
            output = OutputFormat("json_object")
        elif kind == "json_schema":
            form = Members(given, text.at("format"))
            output = OutputFormat(
                "json_schema",
                schema=form.object("schema"),
                name=form.text("name"),
                description=form.text("description"),
                strict=form.flag("strict"),
            )
        elif kind != "text":
            return None, verbosity, {**text.rest, "format": given}
    return output, verbosity, text.rest


def _read_reasoning(given: Members | None) -> Reasoning | None:
    if given is None:
        return None
    effort, summary = given.text("effort"), given.text("summary")
    more = given.rest
    if summary not in (None, "auto"):
        more["summary"] = summary
    return Reasoning(
        enabled=False if effort == "none" else None,
        effort=effort,
        shown=True if summary is not None else None,
        more=more,
    )


def _read_tool(value: Any, path: str) -> ToolOffer:
    tool = Members(value, path)
    kind = tool.needed_text("type")
    if kind == "function":
        return _read_function(tool)
    whole = as_object(value, path)
    if kind == "custom":
        return ToolOffer(
            tool.needed_text("name"), tool.text("description"), kind="custom", value=whole
        )
    named = whole.get("name") or whole.get("server_label")
    return ToolOffer(named if isinstance(named, str) else kind, kind="hosted", value=whole)


def _read_function(tool: Members) -> ToolOffer:
    name = tool.needed_text("name")
    description, parameters = tool.text("description"), tool.object("parameters")
    strict = tool.flag("strict")
    more = tool.rest
    if strict is None and parameters is not None and fits_strict(parameters):
        # Here a tool is strict unless it says otherwise or cannot be; elsewhere it must say so.
        strict, more["strict"] = True, None
    return ToolOffer(name, description, parameters, strict, more=more)


_NOT_STRICT = (
    "allOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "dependentRequired",
    "patternProperties",
)


def fits_strict(schema: Any, depth: int = 0) -> bool:
    """Whether a schema is one that providers take as strict as it stands: every object lists all
    its members as required and allows no others."""
    if depth > 64 or not isinstance(schema, dict):
        return False
    members = cast("dict[str, Any]", schema)
    if any(name in members for name in _NOT_STRICT):
        return False
    properties: Any = members.get("properties")
    kind: Any = members.get("type")
    is_object = kind == "object" or (isinstance(kind, list) and "object" in kind)
    if is_object or properties is not None:
        given = cast("dict[str, Any]", properties) if isinstance(properties, dict) else {}
        required: Any = members.get("required", [])
        if members.get("additionalProperties") is not False:
            return False
        if not isinstance(required, list) or len(cast("list[Any]", required)) != len(given):
            return False
        if any(name not in required for name in given):
            return False
    elif depth == 0:
        return False
    inner: list[Any] = []
    for name in ("properties", "$defs", "definitions"):
        held: Any = members.get(name)
        if isinstance(held, dict):
            inner.extend(cast("dict[str, Any]", held).values())
    if "items" in members:
        inner.append(members["items"])
    either: Any = members.get("anyOf")
    if isinstance(either, list):
        inner.extend(cast("list[Any]", either))
    return all(fits_strict(below, depth + 1) for below in inner)


def _read_choice(value: Any, path: str) -> ToolChoice | None:
    if value is None:
        return None
    if isinstance(value, str):
        if value in ("auto", "none", "required"):
            return ToolChoice(value)
        raise fault(path, "must be auto, none, required or an object", value)
    whole = as_object(value, path)
    choice = Members(whole, path)
    kind = choice.needed_text("type")
    if kind in ("function", "custom"):
        return ToolChoice("tool", (choice.needed_text("name"),), required=True, value=whole)
    if kind == "allowed_tools":
        required = choice.text("mode") == "required"
        tools = [
            Members(t, f"{path}.tools[{at}]") for at, t in enumerate(choice.list("tools") or [])
        ]
        known = [(tool.text("type") in ("function", "custom"), tool.text("name")) for tool in tools]
        names = tuple(name for is_own, name in known if is_own and name is not None)
        return ToolChoice("allowed", names, required, value=whole)
    return ToolChoice("other", value=whole)
