"""What the members of a Langfuse observation say, in the forms that its versions and exports have:
its tokens, cost, session and prompt."""

import re

from reflexarc.steps.prompt import Prompt
from reflexarc.traces.formats.answered import answered_in
from reflexarc.traces.formats.asked import Sharing, asked_in, unpacked
from reflexarc.traces.formats.fields import first_amount, first_text, is_list
from reflexarc.traces.formats.token_names import Tokens, tokens_of
from reflexarc.traces.loose import Table, amount, table, text

_SNAKE = re.compile(r"_([a-z])")
_USAGE = ("usageDetails", "providedUsageDetails", "usage")
_SESSION = (
    "session.id", "langfuse.session.id", "gen_ai.conversation.id", "langfuse_session_id",
    "thread_id", "session_id", "conversation_id",
)  # fmt: skip
_RAW_USAGE = ("gen_ai.usage.", "llm.token_count.")
_ASKED = ("model", "instructions", "tools", "tool_choice", "system")


def camel(fields: Table) -> Table:
    """A row of either case in camel case, cells that are JSON as their values; its members'
    members as they are. Columns such as `usageDetails.input` are put together."""
    found: Table = {}
    for key, value in fields.items():
        name, _, inner = key.partition(".")
        name = _SNAKE.sub(lambda match: match[1].upper(), name)
        if inner:
            held = found.setdefault(name, {})
            if isinstance(held, dict):
                held[inner] = value
            continue
        is_packed = name in (*_USAGE, "costDetails", "metadata", "modelParameters", "trace")
        found[name] = unpacked(value) if is_packed else value
    return found


def attributes_of(fields: Table) -> Table:
    """What OpenTelemetry's span told, where the observation came of one."""
    metadata = table(unpacked(fields.get("metadata")))
    return table(unpacked(metadata.get("attributes")))


def tokens_in(fields: Table) -> Tokens:
    """Of the details of its usage; where those hold cached tokens, what the span or the answer told
    first has the word: stored rows count them twice in some versions, and their total too."""
    stored = _stored(fields)
    cached = (stored.counts.cache_read.value or 0) + (stored.counts.cache_write.value or 0)
    if stored.known and not cached:
        return stored
    for found in (_told_by_span(fields), answered_in(fields.get("output")).tokens):
        if found.counts.prompt.value is not None:
            return found
    return stored


def _stored(fields: Table) -> Tokens:
    for name in _USAGE:
        found = tokens_of(fields.get(name), None, reasoning_inside=False)
        if found.known:
            return found
    names = ("promptTokens", "completionTokens", "totalTokens")
    return tokens_of({name: fields.get(name) for name in names}, "inclusive")


def _told_by_span(fields: Table) -> Tokens:
    raw: Table = {}
    for name, value in attributes_of(fields).items():
        for start in _RAW_USAGE:
            if name.startswith(start):
                raw[name.removeprefix(start)] = value
    return tokens_of(raw, "inclusive")


def cost_of(fields: Table) -> float | None:
    """USD. A zero without details is the server's word for not known."""
    details = table(fields.get("costDetails"))
    told = first_amount(details, "total")
    if told is None and details:
        parts = [found for one in details.values() if (found := amount(one)) is not None]
        told = sum(parts) if parts else None
    return told or first_amount(fields, "totalCost", "calculatedTotalCost") or None


def session_of(fields: Table, outer: Table) -> str:
    """The session's name, of the observation or of its trace."""
    trace = table(outer.get("trace"))
    for holder in (fields, trace, outer):
        found = first_text(holder, "sessionId", "session_id")
        if found:
            return found
    for holder in (attributes_of(fields), fields, trace):
        metadata = holder if holder is not fields and holder is not trace else (
            table(unpacked(holder.get("metadata")))
        )  # fmt: skip
        found = first_text(metadata, *_SESSION)
        if found:
            return found
    return ""


def prompt_of(fields: Table, sharing: Sharing) -> Prompt | None:
    """Of the input; instructions and tools stand beside it in some integrations."""
    given = unpacked(fields.get("input"))
    attributes = attributes_of(fields)
    settings = table(fields.get("modelParameters"))
    if is_list(given) and (settings.get("instructions") or settings.get("tools")):
        body = {name: settings[name] for name in _ASKED if settings.get(name) is not None}
        model = text(fields.get("model"))
        return asked_in({"model": model, **body, "input": given}, sharing).prompt
    tools = attributes.get("gen_ai.tool.definitions", settings.get("tools"))
    return asked_in(given, sharing, tools=tools).prompt
