"""The OpenAI Agents SDK without a gateway: reads are System 1's, the rest is System 2's."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from agents import (
    Agent,
    ModelSettings,
    OpenAIProvider,
    RunConfig,
    Runner,
    WebSearchTool,
    function_tool,
)
from agents.exceptions import AgentsException, UserError
from openai import AsyncOpenAI
from openai.types.responses import ResponseFunctionToolCall
from pydantic import BaseModel

from reflexarc.beside.asking import Asked, System1
from reflexarc.beside.openai_agents import ReflexProvider
from reflexarc.reflex import Reflex
from tests.beside.conftest import DONE, PROMPT, TOOLS, Desk, ask_for, check_history, learned_through
from tests.gateway.upstream import MODEL


def agent(**more: Any) -> Agent[Any]:
    tools = [function_tool(tool) for tool in TOOLS]
    return Agent(**{"name": "desk", "instructions": PROMPT, "tools": tools, "model": MODEL, **more})


def plain(client: AsyncOpenAI) -> OpenAIProvider:
    return OpenAIProvider(openai_client=client, use_responses=False)


def config(provider: Any) -> RunConfig:
    return RunConfig(model_provider=provider, tracing_disabled=True)


async def run_plainly(url: str, prompt: str) -> str:
    async with AsyncOpenAI(base_url=url, api_key="key") as client:
        return (await Runner.run(agent(), prompt, run_config=config(plain(client)))).final_output


@pytest.fixture(scope="module")
def reflex() -> Reflex:
    return learned_through(run_plainly)


class Beside:
    """A provider beside a desk, and what System 1 said."""

    def __init__(self, client: AsyncOpenAI, reflex: Reflex) -> None:
        self.client = client
        self.reflex = reflex
        self.said: list[Asked] = []
        self.provider = ReflexProvider(plain(client), System1(reflex, heard=self.said.append))

    @property
    def reasons(self) -> list[str]:
        return [asked.reason for asked in self.said]

    async def run(self, task: int, **more: Any) -> Any:
        return await Runner.run(agent(**more), ask_for(task), run_config=config(self.provider))


@pytest.fixture
async def beside(desk: Desk, reflex: Reflex) -> AsyncIterator[Beside]:
    async with AsyncOpenAI(base_url=desk.url, api_key="key", max_retries=0) as client:
        yield Beside(client, reflex)


async def test_reads_are_answered_without_system_2(desk: Desk, beside: Beside) -> None:
    result = await beside.run(30077)
    assert result.final_output == DONE
    assert beside.reasons[:3] == ["certified", "certified", "side_effect"]
    assert len(desk.requests) == 2
    ids = check_history(desk.requests[-1])
    assert [identity.startswith("call_s1") for identity in ids] == [True, True, False]


async def test_an_answer_of_system_1_is_an_ordinary_response(beside: Beside) -> None:
    result = await beside.run(30078)
    [item] = result.raw_responses[0].output
    assert isinstance(item, ResponseFunctionToolCall)
    assert (item.name, item.status) == ("find_customer", "completed")
    assert item.arguments == '{"customer":"C-30078"}'
    assert result.raw_responses[0].usage.total_tokens == 0


async def test_a_second_turn_of_the_user_goes_on(desk: Desk, beside: Beside) -> None:
    first = await beside.run(30079)
    talk = [*first.to_input_list(), {"role": "user", "content": ask_for(30080)}]
    again = await Runner.run(agent(), talk, run_config=config(beside.provider))
    assert again.final_output == DONE
    check_history(desk.requests[-1])


async def test_streams_are_answered_too(desk: Desk, beside: Beside) -> None:
    streamed = Runner.run_streamed(agent(), ask_for(30081), run_config=config(beside.provider))
    kinds = [event.data.type async for event in streamed.stream_events()
             if event.type == "raw_response_event"]  # fmt: skip
    assert streamed.final_output == DONE
    assert [asked.acts for asked in beside.said] == [True, True, False, False]
    assert all(request["stream"] for request in desk.requests)
    assert len(check_history(desk.requests[-1])) == 3
    assert kinds[:6] == [
        "response.created",
        "response.output_item.added",
        "response.function_call_arguments.delta",
        "response.function_call_arguments.done",
        "response.output_item.done",
        "response.completed",
    ]


class Refund(BaseModel):
    order_id: str


async def test_structured_output_is_system_2s(beside: Beside) -> None:
    with pytest.raises(AgentsException):
        await beside.run(30083, output_type=Refund)
    assert set(beside.reasons) == {"field:response_format"}


async def test_settings_that_change_the_answer_escalate(beside: Beside) -> None:
    for settings, reason in (
        (ModelSettings(tool_choice="required"), "field:tool_choice"),
        (ModelSettings(extra_args={"n": 2}), "field:n"),
        (ModelSettings(extra_body={"top_k": 3}), "field:top_k"),
        (ModelSettings(max_tokens=5), "field:max_tokens"),
        (ModelSettings(top_logprobs=2), "field:top_logprobs"),
        (ModelSettings(verbosity="low"), "field:verbosity"),
    ):
        beside.said.clear()
        await beside.run(30084, model_settings=settings)
        assert beside.reasons[0] == reason
        assert not beside.said[0].acts
    beside.said.clear()
    calm = ModelSettings(temperature=0.0, max_tokens=2000, parallel_tool_calls=False)
    await beside.run(30084, model_settings=calm)
    assert beside.said[0].acts


async def test_hosted_tools_and_handoffs_escalate(beside: Beside) -> None:
    hosted = [*(function_tool(tool) for tool in TOOLS), WebSearchTool()]
    with pytest.raises(UserError, match="Hosted tools"):
        await beside.run(30085, tools=hosted)
    assert beside.reasons == ["tool_type:web_search"]
    beside.said.clear()
    await beside.run(30085, handoffs=[agent(name="other")])
    assert set(beside.reasons[:3]) == {"unseen_tools"}


async def test_another_model_or_prompt_escalates(beside: Beside) -> None:
    await beside.run(30086, model="another-model")
    assert set(beside.reasons[:3]) == {"model_changed"}
    beside.said.clear()
    await beside.run(30086, instructions="You are a pirate.")
    assert set(beside.reasons[:3]) == {"prompt_changed"}


async def test_a_provider_needs_the_name_of_a_model(beside: Beside) -> None:
    with pytest.raises(ValueError, match="name a model"):
        beside.provider.get_model(None)
    named = ReflexProvider(plain(beside.client), beside.reflex, name=MODEL)
    assert getattr(named.get_model(None), "name", None) == MODEL
