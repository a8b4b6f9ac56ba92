"""Requests for `generateContent`, read. The model, and whether to stream, come from the URL.

Normal forms, which say the same: members in camelCase; the role of an instruction is left out;
results come first in their content; contents of the model that follow each other are one, and so
are plain texts where they meet; declarations that follow each other stand in one tool, hosted tools
in one each; `responseSchema` is said as `responseJsonSchema`; levels of thinking and modes of
calling are upper case.
"""

from typing import Any, cast

import msgspec

from reflexarc.wire.dialect import Head, Where
from reflexarc.wire.dialects.gemini.parts_in import read_part
from reflexarc.wire.dialects.gemini.schemas import to_json_schema
from reflexarc.wire.dialects.gemini.shapes import (
    flag_of,
    flat,
    listed,
    members,
    number_of,
    text_of,
    whole_of,
)
from reflexarc.wire.dialects.shapes import as_object, fault, texts
from reflexarc.wire.turns import (
    Call,
    Foreign,
    OutputFormat,
    Part,
    Reasoning,
    Result,
    Settings,
    Text,
    Thinking,
    ToolChoice,
    ToolOffer,
    Turn,
)

JSON_TYPE = "application/json"
_TIERS = {"standard": "default"}


def read_head(values: dict[str, Any], where: Where) -> Head:
    """Raises `RequestError`."""
    given = members(values, "the body")
    given.pop("contents", None)
    model = where.model or text_of(given.get("model", ""), "model")
    given.pop("model", None)
    instruction = given.pop("systemInstruction", None)
    turns = () if instruction is None else _instruction(instruction)
    tools = _tools(given.pop("tools", []))
    config = members(given.pop("generationConfig", {}), "generationConfig")
    calling = members(given.pop("toolConfig", {}), "toolConfig")
    choice = _choice(calling.pop("functionCallingConfig", None))
    tier = given.pop("serviceTier", None)
    if tier is not None:
        tier = text_of(tier, "serviceTier").lower()
        tier = _TIERS.get(tier, tier)
    store = given.pop("store", None)
    settings = Settings(
        model=model.removeprefix("models/"),
        stream=where.stream,
        include_usage=True,
        max_tokens=_whole(config, "maxOutputTokens"),
        temperature=_number(config, "temperature"),
        top_p=_number(config, "topP"),
        top_k=_whole(config, "topK"),
        stop=texts(config.pop("stopSequences", None), "generationConfig.stopSequences"),
        seed=_whole(config, "seed"),
        presence_penalty=_number(config, "presencePenalty"),
        frequency_penalty=_number(config, "frequencyPenalty"),
        count=_whole(config, "candidateCount"),
        choice=choice,
        output=_output(config),
        reasoning=_reasoning(config.pop("thinkingConfig", None)),
        service_tier=tier,
        store=None if store is None else flag_of(store, "store"),
        signatures=True,
        more={**flat(config, "generationConfig"), **flat(calling, "toolConfig"), **given},
    )
    return Head(settings, tools, turns)


def _instruction(value: Any) -> tuple[Turn, ...]:
    path = "systemInstruction"
    given = members(value, path)
    given.pop("role", None)
    parts = _parts(given.pop("parts", []), path)
    return (Turn("system", parts, more=given),) if parts or given else ()


def read_message(value: Any, path: str) -> tuple[Turn, ...]:
    """One content, or all of them in the shape of one. A content with results and more is a turn
    of results and a turn of the rest."""
    given = members(value, path)
    role = given.pop("role", "user")
    parts = _parts(given.pop("parts", []), path)
    if role == "model":
        for at, part in enumerate(parts):
            if isinstance(part, Result):
                raise fault(f"{path}.parts[{at}]", "must stand in a content of the user's")
        return (Turn("assistant", _going_on(parts), joins=True, more=given),)
    if role not in ("user", "function", "tool"):
        raise fault(f"{path}.role", "must be user or model", role)
    results = tuple(part for part in parts if isinstance(part, Result))
    rest = tuple(_said_by_user(part, path) for part in parts if not isinstance(part, Result))
    if not results:
        return (Turn("user", rest, more=given),)
    turns = [Turn("tool", results, more=given)]
    if rest:
        turns.append(Turn("user", rest, joins=True))
    return tuple(turns)


def _going_on(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """Clients keep each chunk of a stream as a content. Signed text stays as it is."""
    first = parts[0] if parts else None
    if not isinstance(first, Text) or first.more:
        return parts
    second = parts[1] if len(parts) > 1 else None
    if isinstance(second, Thinking) and second.more.get("signs") == "part":
        return parts
    return (msgspec.structs.replace(first, joins=True), *parts[1:])


def _said_by_user(part: Part, path: str) -> Part:
    if isinstance(part, Call):
        raise fault(path, "must have the role model where it holds a functionCall")
    if isinstance(part, Thinking):
        # A user neither thinks nor signs; only an upstream of this dialect can make sense of it.
        value: dict[str, Any] = {"text": part.text}
        if not part.redacted:
            value["thought"] = True
        if part.signature is not None:
            value["thoughtSignature"] = part.signature
        return Foreign("thought", value)
    return part


def _parts(value: Any, path: str) -> tuple[Part, ...]:
    parts: list[Part] = []
    for at, one in enumerate(listed(value, f"{path}.parts")):
        parts.extend(read_part(one, f"{path}.parts[{at}]"))
    return tuple(parts)


def _tools(value: Any) -> tuple[ToolOffer, ...]:
    offers: list[ToolOffer] = []
    for at, one in enumerate(listed(value, "tools")):
        for name, held in members(one, f"tools[{at}]").items():
            if name != "functionDeclarations":
                offers.append(ToolOffer(name, kind="hosted", value={name: held}))
                continue
            path = f"tools[{at}].functionDeclarations"
            offers.extend(
                _declared(given, f"{path}[{i}]") for i, given in enumerate(listed(held, path))
            )
    return tuple(offers)


def _declared(value: Any, path: str) -> ToolOffer:
    given = members(value, path)
    name = text_of(given.pop("name", None), f"{path}.name")
    description = given.pop("description", None)
    plain = given.pop("parameters", None)
    schema = given.pop("parametersJsonSchema", None)
    if plain is not None and schema is not None:
        raise fault(f"{path}.parameters", "stands beside parametersJsonSchema: give one of them")
    original: dict[str, Any] | None = None
    if plain is not None:
        original = {"parameters": as_object(plain, f"{path}.parameters")}
        schema = to_json_schema(original["parameters"])
    elif schema is not None:
        schema = as_object(schema, f"{path}.parametersJsonSchema")
    return ToolOffer(
        name,
        None if description is None else text_of(description, f"{path}.description"),
        schema,
        more=given,
        value=original,
    )


_MODES = {"AUTO": "auto", "ANY": "required", "NONE": "none", "VALIDATED": "other"}


def _choice(value: Any) -> ToolChoice | None:
    """`value` is the whole of it, for this dialect's writer."""
    if value is None:
        return None
    path = "toolConfig.functionCallingConfig"
    given = members(value, path)
    mode = text_of(given.get("mode", "MODE_UNSPECIFIED"), f"{path}.mode").upper()
    if mode == "MODE_UNSPECIFIED":
        mode = "AUTO"
    if mode not in _MODES:
        raise fault(f"{path}.mode", f"must be one of {', '.join(_MODES)}", mode)
    names = texts(given.get("allowedFunctionNames"), f"{path}.allowedFunctionNames")
    whole = {**given, "mode": mode}
    if names and mode != "NONE":
        required = mode == "ANY"
        if required and len(names) == 1:
            return ToolChoice("tool", names, required=True, value=whole)
        return ToolChoice("allowed", names, required=required, value=whole)
    if mode == "ANY":
        return ToolChoice("required", value=whole)
    if mode == "NONE":
        return ToolChoice("none", value=whole)
    return ToolChoice("auto" if mode == "AUTO" else "other", value=whole)


def _output(config: dict[str, Any]) -> OutputFormat | None:
    """Takes what it says off the config."""
    if config.get("responseMimeType") != JSON_TYPE:
        return None
    plain = config.get("responseSchema")
    schema = config.get("responseJsonSchema")
    if schema is not None and not isinstance(schema, dict):
        return None
    del config["responseMimeType"]
    config.pop("responseJsonSchema", None)
    if schema is None and plain is not None:
        del config["responseSchema"]
        schema = to_json_schema(as_object(plain, "generationConfig.responseSchema"))
    if schema is None:
        return OutputFormat("json_object")
    return OutputFormat("json_schema", cast("dict[str, Any]", schema))


def _reasoning(value: Any) -> Reasoning | None:
    """A budget of -1 leaves it to the model how much to think."""
    if value is None:
        return None
    path = "thinkingConfig"
    given = members(value, path)
    shown = given.pop("includeThoughts", None)
    budget = given.pop("thinkingBudget", None)
    level = given.pop("thinkingLevel", None)
    enabled: bool | None = None
    if budget is not None:
        budget = whole_of(budget, f"{path}.thinkingBudget")
        enabled = budget != 0
        budget = budget if budget > 0 else None
    return Reasoning(
        enabled=enabled,
        effort=None if level is None else text_of(level, f"{path}.thinkingLevel").lower(),
        budget=budget,
        shown=None if shown is None else flag_of(shown, f"{path}.includeThoughts"),
        more=given,
    )


def _number(config: dict[str, Any], name: str) -> float | None:
    value = config.pop(name, None)
    return None if value is None else number_of(value, f"generationConfig.{name}")


def _whole(config: dict[str, Any], name: str) -> int | None:
    value = config.pop(name, None)
    return None if value is None else whole_of(value, f"generationConfig.{name}")
