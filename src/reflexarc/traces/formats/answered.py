"""The answer in a logged response: a body in any API's form, as JSON or text of it, a stream kept
as text, a message alone, or plain text. Nothing is checked, nothing raises."""

import msgspec

from reflexarc.traces.formats.asked import unpacked
from reflexarc.traces.formats.fields import is_list
from reflexarc.traces.formats.said import Said, said_by
from reflexarc.traces.formats.streamed import events_in, is_stream, looks_streamed, put_together
from reflexarc.traces.formats.token_names import Tokens, tokens_of
from reflexarc.traces.loose import Table, amount, listed, moment, table, tables, text

_WRAPPERS = (
    "body",
    "body_raw",
    "bodyRaw",
    "raw_body",
    "json",
    "payload",
    "data",
    "content",
    "text",
    "message",
    "response",
)
_BODY = frozenset(
    {"choices", "output", "candidates", "generations", "usage", "completion", "role", "messages"}
    | {"tool_calls", "usageMetadata", "eval_count"}
)
_COUNTED = ("prompt_eval_count", "eval_count")
_SAYS = frozenset({"role", "type", "parts", "message", "lc"})


class Answered(msgspec.Struct, frozen=True):
    """`body` is the response as a table, empty where a log holds none. `tells`: it says something
    at all. `failed`: it is an error."""

    said: Said = Said()
    tokens: Tokens = Tokens()
    body: Table = {}
    tells: bool = False
    failed: bool = False

    @property
    def id(self) -> str:
        return text(self.body.get("id")) or text(self.body.get("responseId"))

    @property
    def model(self) -> str:
        return text(self.body.get("model")) or text(self.body.get("modelVersion"))

    @property
    def tier(self) -> str:
        usage = table(self.body.get("usage"))
        if usage.get("speed") == "fast":  # one maker's name for a tier beside the tier
            return "fast"
        return text(self.body.get("service_tier")) or text(usage.get("service_tier"))

    @property
    def created_s(self) -> float | None:
        found = self.body.get("created", self.body.get("created_at"))
        return moment(found)


def answered_in(value: object) -> Answered:
    found = _taken_out(value)
    # what a model wrote may itself be JSON, which is no body for that
    value = found if not isinstance(value, str) or _is_answer(found) else value
    if isinstance(value, str):
        return Answered(Said(value), tells=bool(value))
    if is_list(value):
        return Answered(said_by(listed(value)), tells=bool(value))
    body = table(value)
    if not body:
        return Answered()
    failed = bool(body.get("error")) or body.get("type") == "error"
    failed = failed or text(body.get("status")) in ("failed", "cancelled", "error")
    generated = _generation(body)
    usage = table(body.get("usage")) or table(body.get("usageMetadata"))
    return Answered(
        said_by(_message(body) if generated is None else generated),
        _tokens(usage, body, generated),
        body,
        tells=True,
        failed=failed,
    )


def _is_answer(value: object) -> bool:
    if is_list(value):
        return any(one.keys() & _SAYS for one in tables(value))
    fields = table(value)
    return bool(fields.keys() & _BODY) or "error" in fields or fields.get("object") == "response"


def _taken_out(value: object) -> object:
    """Without the envelopes, and whole where it is a stream."""
    value = unpacked(value)
    for _ in range(4):
        if isinstance(value, str) and is_stream(value):
            events = events_in(value)
            return put_together(events) if events else value
        if is_list(value):
            events = [table(unpacked(one)) for one in listed(value)]
            return put_together(events) if looks_streamed(events) else value
        fields = table(value)
        if not fields or fields.keys() & _BODY or fields.get("object") == "response":
            return value
        inner = next((key for key in _WRAPPERS if fields.get(key)), "")
        if not inner or "error" in fields:
            return value
        if inner == "content" and fields.get("type") == "message":
            return value
        value = unpacked(fields[inner])
    return value


def _message(body: Table) -> object:
    """What the model said, in the body of any API."""
    choices = tables(body.get("choices"))
    if choices:
        # of several answers to one request, the first is the one gone on with
        return choices[0].get("message") or choices[0].get("text") or choices[0]
    if isinstance(body.get("output"), list | dict):
        return body["output"]
    candidates = tables(body.get("candidates"))
    if candidates:
        return candidates[0].get("content")
    if is_list(body.get("messages")):
        return listed(body["messages"])[-1:]
    for key in ("completion", "output", "output_text"):
        if isinstance(body.get(key), str):
            return body[key]
    return body


def _generation(body: Table) -> Table | None:
    """A framework's `generations`, lists of lists of messages; None where it has none."""
    found: object = body.get("generations")
    while is_list(found) and found:
        found = listed(found)[0]
    fields = table(found)
    if not fields:
        return None
    return table(fields.get("message")) or fields


def _tokens(usage: Table, body: Table, generated: Table | None) -> Tokens:
    # some servers of one's own count at the top of the body
    found = tokens_of(usage or {name: body[name] for name in _COUNTED if name in body})
    if found.known:
        return found
    message = table(table(generated).get("kwargs")) or table(generated) or body
    # a framework's own form of usage holds cached tokens inside input
    found = tokens_of(message.get("usage_metadata") or body.get("usage_metadata"), None)
    if found.known:
        return found
    for outer in (body.get("llm_output"), message.get("response_metadata")):
        told = table(outer)
        found = tokens_of(told.get("token_usage") or told.get("usage"))
        if found.known:
            return found
    return Tokens()


def cost_in(body: Table) -> float | None:
    """What a response itself says it cost, in USD (OpenRouter and LiteLLM put it there)."""
    usage = table(body.get("usage"))
    found = amount(usage.get("cost"))
    return (
        amount(table(body.get("_hidden_params")).get("response_cost")) if found is None else found
    )
