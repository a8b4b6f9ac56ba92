"""pydantic-ai without a gateway: reads are System 1's, the write and the words are System 2's."""

from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, ModelSettings
from pydantic_ai.messages import ModelResponse, ToolCallPart
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from reflexarc.beside.asking import Asked, System1
from reflexarc.beside.pydantic_ai import ReflexModel
from reflexarc.reflex import Reflex
from tests.beside.conftest import DONE, PROMPT, TOOLS, Desk, ask_for, check_history, learned_through
from tests.gateway.upstream import MODEL


def plain(url: str, name: str = MODEL) -> OpenAIChatModel:
    return OpenAIChatModel(name, provider=OpenAIProvider(base_url=url, api_key="key"))


def agent(model: Any, **more: Any) -> Agent[None, Any]:
    return Agent(model, instructions=PROMPT, tools=TOOLS, **more)


async def run_plainly(url: str, prompt: str) -> str:
    return (await agent(plain(url)).run(prompt)).output


@pytest.fixture(scope="module")
def reflex() -> Reflex:
    return learned_through(run_plainly)


class Beside:
    """A model beside a desk, and what System 1 said."""

    def __init__(self, desk: Desk, reflex: Reflex, name: str = MODEL, **options: Any) -> None:
        self.said: list[Asked] = []
        self.system1 = System1(reflex, heard=self.said.append, **options)
        self.model = ReflexModel(plain(desk.url, name), self.system1)

    @property
    def reasons(self) -> list[str]:
        return [asked.reason for asked in self.said]


async def test_reads_are_answered_without_system_2(desk: Desk, reflex: Reflex) -> None:
    beside = Beside(desk, reflex)
    result = await agent(beside.model).run(ask_for(20077))
    assert result.output == DONE
    assert beside.reasons[:3] == ["certified", "certified", "side_effect"]
    assert [asked.acts for asked in beside.said] == [True, True, False, False]
    assert len(desk.requests) == 2
    ids = check_history(desk.requests[-1])
    assert [identity.startswith("call_s1") for identity in ids] == [True, True, False]
    assert max(map(len, ids)) <= 40


async def test_an_answer_of_system_1_is_an_ordinary_response(desk: Desk, reflex: Reflex) -> None:
    result = await agent(Beside(desk, reflex).model).run(ask_for(20078))
    first = next(one for one in result.all_messages() if isinstance(one, ModelResponse))
    [part] = first.parts
    assert isinstance(part, ToolCallPart)
    assert part.tool_name == "find_customer"
    assert part.args_as_dict() == {"customer": "C-20078"}
    assert (first.model_name, first.usage.output_tokens) == (MODEL, 0)
    assert first.provider_details is not None
    assert first.provider_details["reflexarc"]["max_error"] == 0.05


async def test_a_second_turn_of_the_user_goes_on(desk: Desk, reflex: Reflex) -> None:
    beside = Beside(desk, reflex)
    first = await agent(beside.model).run(ask_for(20079))
    again = await agent(beside.model).run(ask_for(20080), message_history=first.all_messages())
    assert again.output == DONE
    check_history(desk.requests[-1])


async def test_streams_are_answered_too(desk: Desk, reflex: Reflex) -> None:
    beside = Beside(desk, reflex)
    async with agent(beside.model).run_stream(ask_for(20081)) as result:
        assert await result.get_output() == DONE
    assert [asked.acts for asked in beside.said] == [True, True, False, False]
    assert all(request["stream"] for request in desk.requests)
    assert len(check_history(desk.requests[-1])) == 3


async def test_the_same_conversation_gets_the_same_calls_and_ids(
    desk: Desk, reflex: Reflex
) -> None:
    once, twice = Beside(desk, reflex), Beside(desk, reflex)
    for beside in (once, twice):
        await agent(beside.model).run(ask_for(20082))
    assert [a.call_id for a in once.said] == [a.call_id for a in twice.said]
    assert once.said[0].call_id != ""


class Refund(BaseModel):
    order_id: str


async def test_structured_output_is_system_2s(desk: Desk, reflex: Reflex) -> None:
    beside = Beside(desk, reflex)
    with pytest.raises(Exception, match="retries"):
        await agent(beside.model, output_type=Refund).run(ask_for(20083))
    assert set(beside.reasons) == {"field:tool_choice"}


async def test_settings_that_change_the_answer_escalate(desk: Desk, reflex: Reflex) -> None:
    for settings, reason in (
        (ModelSettings(stop_sequences=["."]), "field:stop"),
        (ModelSettings(extra_body={"top_k": 3}), "field:extra_body"),
        (ModelSettings(max_tokens=5), "field:max_tokens"),
        (ModelSettings(logit_bias={"7": 5}), "field:logit_bias"),
    ):
        beside = Beside(desk, reflex)
        await agent(beside.model).run(ask_for(20084), model_settings=settings)
        assert beside.reasons[0] == reason
        assert not beside.said[0].acts
    beside = Beside(desk, reflex)
    calm = ModelSettings(temperature=0.0, max_tokens=2000, timeout=30.0, seed=7)
    await agent(beside.model).run(ask_for(20084), model_settings=calm)
    assert beside.said[0].acts


async def test_another_model_or_prompt_escalates(desk: Desk, reflex: Reflex) -> None:
    other = Beside(desk, reflex, name="another-model")
    await agent(other.model).run(ask_for(20085))
    assert set(other.reasons[:3]) == {"model_changed"}
    told = Beside(desk, reflex)
    changed = Agent(told.model, instructions="You are a pirate.", tools=TOOLS)
    await changed.run(ask_for(20085))
    assert set(told.reasons[:3]) == {"prompt_changed"}
    assert len(desk.requests) == 8


async def test_it_stops_at_the_cap_and_when_switched_off(desk: Desk, reflex: Reflex) -> None:
    capped = Beside(desk, reflex, max_consecutive_acts=1)
    await agent(capped.model).run(ask_for(20086))
    assert capped.reasons[:2] == ["certified", "act_cap"]
    off = Beside(desk, reflex, acting=False)
    assert (await agent(off.model).run(ask_for(20086))).output == DONE
    assert off.reasons[:2] == ["off:beside", "off:beside"]
