"""What the engine wrote, as chat completions: whole, and in pieces for a stream. Pure."""

from typing import Annotated, Any

import msgspec

from reflexarc.steps import ToolSpec
from reflexarc.wire.chat_answer import FINGERPRINT
from reflexarc.wire.counting import CHAT_COUNT_PATH
from reflexarc.wire.sse import data_event

MODEL = "smollm2-135m-plumbing"
ENGINE_HEADER = "x-reflexarc-engine"
COUNT_PATH = CHAT_COUNT_PATH
"""Under the base URL, where llama.cpp's own server counts a request's tokens too."""
ENGINE_LABEL = "embedded; plumbing-grade"


class Usage(msgspec.Struct, frozen=True):
    """Tokens of the prompt, of these those found in the engine's cache, and tokens written; of
    the latter, drafted ones that were right, and beside them those that were not."""

    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    accepted_tokens: int = 0
    rejected_tokens: int = 0

    def as_chat(self) -> dict[str, Any]:
        told: dict[str, Any] = {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "total_tokens": self.prompt_tokens + self.completion_tokens,
            "prompt_tokens_details": {"cached_tokens": self.cached_tokens},
        }
        if self.accepted_tokens or self.rejected_tokens:
            told["completion_tokens_details"] = {
                "accepted_prediction_tokens": self.accepted_tokens,
                "rejected_prediction_tokens": self.rejected_tokens,
            }
        return told


class Written(msgspec.Struct, frozen=True):
    """One answer. With a `tool`, `text` is its arguments; `cut`: the limit of tokens ended it."""

    text: str
    tool: ToolSpec | None
    cut: bool
    usage: Usage

    @property
    def finish_reason(self) -> str:
        if self.cut:
            return "length"
        return "stop" if self.tool is None else "tool_calls"


class Naming(msgspec.Struct, frozen=True):
    """Ids and time of one completion; `seed` makes the ids."""

    seed: str
    created_s: int

    @property
    def completion_id(self) -> str:
        return f"chatcmpl-{self.seed}"

    @property
    def call_id(self) -> str:
        return f"call_{self.seed}"


def completion(written: Written, naming: Naming) -> bytes:
    """A whole `chat.completion`."""
    message: dict[str, Any] = {"role": "assistant", "content": written.text, "refusal": None}
    if written.tool is not None:
        function = {"name": written.tool.name, "arguments": written.text}
        call = {"id": naming.call_id, "type": "function", "function": function}
        message |= {"content": None, "tool_calls": [call]}
    choice = {
        "index": 0,
        "message": message,
        "logprobs": None,
        "finish_reason": written.finish_reason,
    }
    return msgspec.json.encode(
        {
            "id": naming.completion_id,
            "object": "chat.completion",
            "created": naming.created_s,
            "model": MODEL,
            "system_fingerprint": FINGERPRINT,
            "choices": [choice],
            "usage": written.usage.as_chat(),
        }
    )


class Chunks:
    """The events of one streamed completion, in the order: `opening`, `piece`*, `ending`."""

    def __init__(self, naming: Naming, tool: ToolSpec | None, *, include_usage: bool) -> None:
        self._naming = naming
        self._tool = tool
        self._include_usage = include_usage

    def opening(self) -> bytes:
        delta: dict[str, Any] = {"role": "assistant", "content": ""}
        if self._tool is not None:
            function = {"name": self._tool.name, "arguments": ""}
            call = {
                "index": 0,
                "id": self._naming.call_id,
                "type": "function",
                "function": function,
            }
            delta |= {"content": None, "tool_calls": [call]}
        return self._event(delta)

    def piece(self, text: str) -> bytes:
        if self._tool is None:
            return self._event({"content": text})
        return self._event({"tool_calls": [{"index": 0, "function": {"arguments": text}}]})

    def ending(self, written: Written) -> bytes:
        """With the usage where it was asked for, and the end of the stream."""
        end = self._event({}, finish=written.finish_reason)
        if self._include_usage:
            end += self._event(None, usage=written.usage.as_chat())
        return end + b"data: [DONE]\n\n"

    def _event(
        self,
        delta: dict[str, Any] | None,
        finish: str | None = None,
        usage: dict[str, Any] | None = None,
    ) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        event: dict[str, Any] = {
            "id": self._naming.completion_id,
            "object": "chat.completion.chunk",
            "created": self._naming.created_s,
            "model": MODEL,
            "system_fingerprint": FINGERPRINT,
            "choices": [] if delta is None else [choice],
        }
        if self._include_usage:
            event["usage"] = usage
        return data_event(msgspec.json.encode(event))


def counted(tokens: int) -> bytes:
    """The body of a count of a request's tokens."""
    return msgspec.json.encode({"object": "response.input_tokens", "input_tokens": tokens})


def read_count(body: bytes) -> int | None:
    """The tokens that such a body tells; None for any other body."""
    try:
        return msgspec.json.decode(body, type=_Counted).input_tokens
    except msgspec.DecodeError:
        return None


class _Counted(msgspec.Struct, frozen=True):
    input_tokens: Annotated[int, msgspec.Meta(ge=0)]


def models(created_s: int) -> bytes:
    """The body of `GET /v1/models`; `created_s` is Unix time."""
    return msgspec.json.encode({"object": "list", "data": [_model(created_s)]})


def model(created_s: int) -> bytes:
    """The body of `GET /v1/models/ID`."""
    return msgspec.json.encode(_model(created_s))


def _model(created_s: int) -> dict[str, Any]:
    return {"id": MODEL, "object": "model", "created": created_s, "owned_by": "reflexarc-local"}
