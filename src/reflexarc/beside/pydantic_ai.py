"""System 1 for pydantic-ai: a model that asks the reflex first and its wrapped model otherwise.

    agent = Agent(ReflexModel(OpenAIChatModel("gpt-5"), "agent.reflex"), tools=[...])

Needs pydantic-ai (`pip install pydantic-ai-slim`). The reflex must have been learned from this
agent's sessions in chat form, as System 2 sees them (its prompt, tools and model are compared).
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

from pydantic_ai import RunContext
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextContent,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import (
    CompletedStreamedResponse,
    KnownModelName,
    Model,
    ModelRequestParameters,
    StreamedResponse,
    infer_model,
)
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.usage import RequestUsage

from reflexarc.beside.asking import Asked, System1
from reflexarc.reflex import Reflex

# How a chat request names what this framework's settings name otherwise. What only says how System
# 2 is reached or watched has no name there.
_RENAMED = {"stop_sequences": "stop", "openai_user": "user", "openai_store": "store"}
_BESIDE_THE_REQUEST = frozenset(
    ("timeout", "request_timeout", "first_event_timeout", "max_retries", "extra_headers")
)


class ReflexModel(WrapperModel):
    """Answers with a tool call where System 1 may act; all else is the wrapped model's.

    `system1` is a `System1`, a reflex or the path of one. An answer of System 1 is an ordinary
    response with one `ToolCallPart`, `model_name` being the wrapped model's; its
    `provider_details["reflexarc"]` says that it was System 1's.
    """

    def __init__(
        self, wrapped: Model | KnownModelName | str, system1: System1 | Reflex | str | Path
    ) -> None:
        super().__init__(infer_model(wrapped) if isinstance(wrapped, str) else wrapped)
        self.system1 = system1 if isinstance(system1, System1) else System1(system1)

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        asked = self._ask(messages, model_settings, model_request_parameters)
        if asked.acts:
            return self._response(asked)
        return await super().request(messages, model_settings, model_request_parameters)

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,
    ) -> AsyncGenerator[StreamedResponse]:
        asked = self._ask(messages, model_settings, model_request_parameters)
        if asked.acts:
            yield CompletedStreamedResponse(
                self._response(asked),
                model_request_parameters=model_request_parameters,
                replay_events=True,
            )
            return
        async with super().request_stream(
            messages, model_settings, model_request_parameters, run_context
        ) as streamed:
            yield streamed

    def _ask(
        self,
        messages: list[ModelMessage],
        settings: ModelSettings | None,
        parameters: ModelRequestParameters,
    ) -> Asked:
        settings, parameters = self.wrapped.prepare_request(settings, parameters)
        return self.system1.ask(
            {
                "model": self.wrapped.model_name,
                "messages": chat_messages(messages),
                **_tools(parameters),
                **_fields(settings or {}, parameters),
            }
        )

    def _response(self, asked: Asked) -> ModelResponse:
        return ModelResponse(
            parts=[
                ToolCallPart(call.tool, call.text, tool_call_id=call.call_id)
                for call in asked.calls
            ],
            usage=RequestUsage(),
            model_name=self.wrapped.model_name,
            provider_name=self.wrapped.system,
            finish_reason="tool_call",
            provider_details={
                "reflexarc": {"confidence": asked.confidence, "max_error": asked.max_error}
            },
        )


def chat_messages(messages: Sequence[ModelMessage]) -> list[dict[str, Any]]:
    """The conversation as a chat model sees it. What has no text form is an image part: System 1
    does not read those, and escalates."""
    shown: list[dict[str, Any]] = []
    instructions: str | None = None
    for message in messages:
        if isinstance(message, ModelRequest):
            instructions = message.instructions or instructions
            for part in message.parts:
                shown.extend(_request_part(part))
        else:
            shown.append(_assistant(message))
    if instructions:
        place = next((i for i, m in enumerate(shown) if m["role"] != "system"), len(shown))
        shown.insert(place, {"role": "system", "content": instructions})
    return shown


def _request_part(part: Any) -> list[dict[str, Any]]:
    if isinstance(part, SystemPromptPart):
        return [{"role": "system", "content": part.content}]
    if isinstance(part, UserPromptPart):
        return [{"role": "user", "content": _content(part.content)}]
    if isinstance(part, ToolReturnPart):
        text, files = part.model_response_str_and_user_content()
        content: Any = [{"type": "text", "text": text}, _UNREAD] if files else text
        return [{"role": "tool", "tool_call_id": part.tool_call_id, "content": content}]
    return [{"role": "user", "content": [_UNREAD]}]


_UNREAD = {"type": "unread_by_reflexarc"}


def _content(content: Any) -> Any:
    if isinstance(content, str):
        return content
    parts: list[Any] = []
    for item in cast("Sequence[Any]", content):
        text = item.content if isinstance(item, TextContent) else item
        parts.append({"type": "text", "text": text} if isinstance(text, str) else _UNREAD)
    return parts


def _assistant(message: ModelResponse) -> dict[str, Any]:
    texts: list[str] = []
    calls: list[dict[str, Any]] = []
    unread = False
    for part in message.parts:
        if isinstance(part, TextPart):
            texts.append(part.content)
        elif isinstance(part, ToolCallPart):
            function = {"name": part.tool_name, "arguments": part.args_as_json_str()}
            calls.append({"id": part.tool_call_id, "type": "function", "function": function})
        else:
            unread = True
    text = "\n\n".join(texts) or None
    content: Any = [{"type": "text", "text": text or ""}, _UNREAD] if unread else text
    return {"role": "assistant", "content": content, **({"tool_calls": calls} if calls else {})}


def _tools(parameters: ModelRequestParameters) -> dict[str, Any]:
    tools = [_tool(tool) for tool in parameters.declared_tool_defs.values()]
    tools += [{"type": native.kind} for native in parameters.native_tools]
    return {"tools": tools} if tools else {}


def _tool(tool: ToolDefinition) -> dict[str, Any]:
    function = {
        "name": tool.name,
        "description": tool.description or "",
        "parameters": tool.parameters_json_schema,
    }
    return {"type": "function", "function": function}


def _fields(settings: Mapping[str, Any], parameters: ModelRequestParameters) -> dict[str, Any]:
    """What the request sets beside its messages and tools, by a chat request's names; a name such
    a request does not have escalates, as it should."""
    fields = {
        _RENAMED.get(name, name): value
        for name, value in settings.items()
        if name not in _BESIDE_THE_REQUEST and value is not None
    }
    if parameters.thinking is not None:
        fields["reasoning_effort"] = parameters.thinking or "none"
    if parameters.output_object is not None or parameters.output_mode not in ("text", "tool"):
        fields["response_format"] = {"type": parameters.output_mode}
    if parameters.output_tools or not parameters.allow_text_output:
        fields["tool_choice"] = "required"
    if parameters.allow_image_output:
        fields["modalities"] = ["text", "image"]
    return fields
