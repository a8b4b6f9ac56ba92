"""An answer made of what a provider refused to pass on: calls that its own parser did not read."""

from reflexarc.gateway.attempting import Content, Refused
from reflexarc.gateway.planning import Plan
from reflexarc.gateway.preparing import Asking, Preparing
from reflexarc.steps import ToolSpec
from reflexarc.steps.errors import InputError
from reflexarc.upstream.repairs import repaired
from reflexarc.wire.assembling import events_of
from reflexarc.wire.dialects import dialect
from reflexarc.wire.ids import made_id
from reflexarc.wire.json import encode_json
from reflexarc.wire.losses import Losses
from reflexarc.wire.replies import Reply
from reflexarc.wire.turns import Call

_JSON = b"application/json"
_SSE = b"text/event-stream; charset=utf-8"


async def repaired_content(
    preparing: Preparing, plan: Plan, asking: Asking, refused: Refused
) -> Content | None:
    """None where nothing certain can be read of it."""
    if refused.verdict != "again" or not refused.body:
        return None
    try:
        ask = await preparing.ask(plan, asking)
    except InputError:
        return None
    choice = ask.settings.choice
    only = choice.names if choice is not None and choice.names else None
    tools = [
        ToolSpec(offer.name, offer.description or "", offer.parameters or {}, offer.strict)
        for offer in ask.tools
        if offer.kind == "function" and (only is None or offer.name in only)
    ]
    if choice is not None and choice.mode == "none":
        tools = []
    calls = repaired(refused.body, tools)
    if calls is None or not calls or (ask.settings.parallel is False and len(calls) > 1):
        return None
    # The same call of another turn is another call.
    parts = tuple(
        Call(made_id(f"{len(ask.turns)} {at}", call.name, call.raw), call.name, call.raw)
        for at, call in enumerate(calls)
    )
    identity = made_id(plan.session, str(len(ask.turns)), parts[0].arguments).removeprefix("call_")
    reply = Reply(f"chatcmpl-{identity}", plan.model, parts, "calls")
    losses = Losses(asking.client)
    if not plan.stream:
        value = dialect(asking.client).write_reply(reply, ask, losses)
        return Content(200, _JSON, encode_json(value))
    writer = dialect(asking.client).stream_writer(ask, losses)
    return Content(200, _SSE, b"".join(writer.write(event) for event in events_of(reply)))
