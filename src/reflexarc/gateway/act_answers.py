"""System 1's turn written in the dialect of the request it answers, whole or as a stream."""

from reflexarc.wire.assembling import events_of
from reflexarc.wire.chat_answer import ActedTurn, call_id, completion, completion_stream
from reflexarc.wire.dialects import dialect
from reflexarc.wire.dialects.gemini.signatures import SKIP_SIGNATURE
from reflexarc.wire.json import encode_json
from reflexarc.wire.losses import Losses
from reflexarc.wire.replies import Reply
from reflexarc.wire.turns import Ask, Call
from reflexarc.wire.usage import Usage

_ID_PREFIXES = {"chat": "chatcmpl-", "responses": "resp_s1", "messages": "msg_s1", "gemini": "s1"}


def act_reply(turn: ActedTurn, name: str) -> Reply:
    """Ids of calls are the same in every dialect: by them a later request shows whose turn it
    was."""
    # Gemini's models refuse a call without a signature, but for this word in its place.
    signature = SKIP_SIGNATURE if name == "gemini" else None
    return Reply(
        id=f"{_ID_PREFIXES[name]}{turn.key[:24]}",
        model=turn.model,
        parts=tuple(
            Call(
                call_id(turn.key, at),
                called,
                encode_json(arguments).decode(),
                signature=signature,
                origin=name if signature is not None else "",
            )
            for at, (called, arguments) in enumerate(turn.calls)
        ),
        stop="calls",
        usage=Usage(turn.prompt_tokens, 0),
        created_s=turn.created_s,
        origin=name,
    )


def act_answer(turn: ActedTurn, ask: Ask | None, *, stream: bool, include_usage: bool) -> bytes:
    """The answer's bytes. `ask` is the request, None for chat."""
    if ask is None:
        return completion_stream(turn, include_usage) if stream else completion(turn)
    spoken = dialect(ask.dialect)
    reply = act_reply(turn, ask.dialect)
    losses = Losses(ask.dialect)
    if not stream:
        return encode_json(spoken.write_reply(reply, ask, losses))
    writer = spoken.stream_writer(ask, losses)
    return b"".join(writer.write(event) for event in events_of(reply))
