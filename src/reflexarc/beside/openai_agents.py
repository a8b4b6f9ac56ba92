"""System 1 for the OpenAI Agents SDK: a model that asks the reflex first, then its wrapped one.

    provider = ReflexProvider(OpenAIProvider(use_responses=False), "agent.reflex")
    await Runner.run(agent, "...", run_config=RunConfig(model_provider=provider))

Needs openai-agents. The reflex must have been learned from this agent's sessions in chat form (its
prompt, tools and model are compared).
"""

import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

from agents import (
    AgentOutputSchemaBase,
    FunctionTool,
    Handoff,
    Model,
    ModelProvider,
    ModelResponse,
    ModelSettings,
    ModelTracing,
    Tool,
    TResponseInputItem,
    Usage,
)
from agents.exceptions import UserError
from agents.items import TResponseStreamEvent
from agents.models.chatcmpl_converter import Converter
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseCreatedEvent,
    ResponseFunctionCallArgumentsDeltaEvent,
    ResponseFunctionCallArgumentsDoneEvent,
    ResponseFunctionToolCall,
    ResponseOutputItemAddedEvent,
    ResponseOutputItemDoneEvent,
)
from openai.types.responses.response_prompt_param import ResponsePromptParam

from reflexarc.beside.asking import Asked, MadeCall, System1
from reflexarc.reflex import Reflex

# Of the settings, what only says how System 2 is reached or how its answer is kept.
_BESIDE_THE_REQUEST = frozenset(
    ("extra_headers", "extra_query", "retry", "timeout", "include_usage", "preserve_raw_usage")
)


class ReflexModel(Model):
    """Answers with a function call where System 1 may act; all else is the wrapped model's.

    `name` is what System 2 is called in the sessions the reflex was learned from. The answer is an
    ordinary response; System 1's turns are told by their call ids, which begin with `call_s1`.
    """

    def __init__(
        self, wrapped: Model, system1: System1 | Reflex | str | Path, *, name: str
    ) -> None:
        self.wrapped = wrapped
        self.system1 = system1 if isinstance(system1, System1) else System1(system1)
        self.name = name

    async def get_response(
        self,
        system_instructions: str | None,
        input: str | list[TResponseInputItem],
        model_settings: ModelSettings,
        tools: list[Tool],
        output_schema: AgentOutputSchemaBase | None,
        handoffs: list[Handoff[Any, Any]],
        tracing: ModelTracing,
        *,
        previous_response_id: str | None,
        conversation_id: str | None,
        prompt: ResponsePromptParam | None,
    ) -> ModelResponse:
        held = {"previous_response_id": previous_response_id, "conversation": conversation_id}
        asked = self._ask(
            system_instructions, input, model_settings, tools, output_schema, handoffs,
            {**held, "prompt": prompt},
        )  # fmt: skip
        if asked.acts:
            return ModelResponse(
                output=[_item(call) for call in asked.calls], usage=Usage(), response_id=None
            )
        return await self.wrapped.get_response(
            system_instructions, input, model_settings, tools, output_schema, handoffs, tracing,
            previous_response_id=previous_response_id, conversation_id=conversation_id,
            prompt=prompt,
        )  # fmt: skip

    async def stream_response(
        self,
        system_instructions: str | None,
        input: str | list[TResponseInputItem],
        model_settings: ModelSettings,
        tools: list[Tool],
        output_schema: AgentOutputSchemaBase | None,
        handoffs: list[Handoff[Any, Any]],
        tracing: ModelTracing,
        *,
        previous_response_id: str | None,
        conversation_id: str | None,
        prompt: ResponsePromptParam | None,
    ) -> AsyncIterator[TResponseStreamEvent]:
        held = {"previous_response_id": previous_response_id, "conversation": conversation_id}
        asked = self._ask(
            system_instructions, input, model_settings, tools, output_schema, handoffs,
            {**held, "prompt": prompt},
        )  # fmt: skip
        if asked.acts:
            for event in self._events(asked):
                yield event
            return
        async for event in self.wrapped.stream_response(
            system_instructions, input, model_settings, tools, output_schema, handoffs, tracing,
            previous_response_id=previous_response_id, conversation_id=conversation_id,
            prompt=prompt,
        ):  # fmt: skip
            yield event

    async def close(self) -> None:
        await self.wrapped.close()

    def _ask(
        self,
        instructions: str | None,
        given: str | list[TResponseInputItem],
        settings: ModelSettings,
        tools: list[Tool],
        output_schema: AgentOutputSchemaBase | None,
        handoffs: list[Handoff[Any, Any]],
        held: dict[str, Any],
    ) -> Asked:
        try:
            messages = cast("list[Any]", Converter.items_to_messages(given))
        except UserError:  # what has no chat form, System 1 has not learned
            return Asked("escalate", "field:messages")
        if instructions:
            messages.insert(0, {"role": "system", "content": instructions})
        offered: list[Any] = [
            Converter.tool_to_openai(tool)
            if isinstance(tool, FunctionTool)
            else {"type": tool.name}
            for tool in tools
        ]
        offered += [Converter.convert_handoff_tool(handoff) for handoff in handoffs]
        request: dict[str, Any] = {"model": self.name, "messages": messages}
        if offered:
            request["tools"] = offered
        if output_schema is not None and not output_schema.is_plain_text():
            request["response_format"] = {"type": "json_schema"}
        request |= {name: value for name, value in held.items() if value is not None}
        return self.system1.ask(request | _fields(settings))

    def _events(self, asked: Asked) -> list[TResponseStreamEvent]:
        items = [_item(call) for call in asked.calls]
        empty = Response(
            id=f"resp_{asked.call_id}", created_at=time.time(), model=self.name, object="response",
            output=[], tool_choice="auto", tools=[], parallel_tool_calls=len(items) > 1,
            status="in_progress",
        )  # fmt: skip
        whole = empty.model_copy(update={"output": items, "status": "completed"})
        events: list[TResponseStreamEvent] = [
            ResponseCreatedEvent(response=empty, sequence_number=0, type="response.created")
        ]
        for at, item in enumerate(items):
            identity, number = item.call_id, len(events)
            started = item.model_copy(update={"arguments": "", "status": "in_progress"})
            events += [
                ResponseOutputItemAddedEvent(
                    item=started, output_index=at, sequence_number=number,
                    type="response.output_item.added",
                ),
                ResponseFunctionCallArgumentsDeltaEvent(
                    delta=item.arguments, item_id=identity, output_index=at,
                    sequence_number=number + 1, type="response.function_call_arguments.delta",
                ),
                ResponseFunctionCallArgumentsDoneEvent(
                    arguments=item.arguments, item_id=identity, output_index=at,
                    sequence_number=number + 2, type="response.function_call_arguments.done",
                ),
                ResponseOutputItemDoneEvent(
                    item=item, output_index=at, sequence_number=number + 3,
                    type="response.output_item.done",
                ),
            ]  # fmt: skip
        events.append(
            ResponseCompletedEvent(
                response=whole, sequence_number=len(events), type="response.completed"
            )
        )
        return events


class ReflexProvider(ModelProvider):
    """Gives the models of another provider, each asked after System 1. `name` is the model's where
    the agent names none."""

    def __init__(
        self,
        wrapped: ModelProvider,
        system1: System1 | Reflex | str | Path,
        *,
        name: str | None = None,
    ) -> None:
        self.wrapped = wrapped
        self.system1 = system1 if isinstance(system1, System1) else System1(system1)
        self._name = name

    def get_model(self, model_name: str | None) -> Model:
        """Raises ValueError where nobody names a model: a reflex is learned for one."""
        name = model_name or self._name
        if name is None:
            raise ValueError("name a model, at the agent or as ReflexProvider(..., name=...)")
        return ReflexModel(self.wrapped.get_model(name), self.system1, name=name)

    async def aclose(self) -> None:
        await self.wrapped.aclose()


def _item(call: MadeCall) -> ResponseFunctionToolCall:
    return ResponseFunctionToolCall(
        id=call.call_id,
        call_id=call.call_id,
        name=call.tool,
        arguments=call.text,
        type="function_call",
        status="completed",
    )


def _fields(settings: ModelSettings) -> dict[str, Any]:
    """What the settings set, by a chat request's names; a name such a request does not have
    escalates, as it should."""
    fields: dict[str, Any] = {
        name: value
        for name, value in vars(settings).items()
        if value is not None and name not in _BESIDE_THE_REQUEST
    }
    for more in ("extra_args", "extra_body"):
        given = fields.pop(more, None)
        if isinstance(given, dict):
            fields |= cast("dict[str, Any]", given)
        elif given is not None:
            fields[more] = str(given)
    reasoning = fields.pop("reasoning", None)
    if reasoning is not None:
        fields["reasoning_effort"] = reasoning.effort or "set"
    return fields
