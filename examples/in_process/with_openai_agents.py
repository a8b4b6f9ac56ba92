"""An agent of the OpenAI Agents SDK whose models ask a reflex first."""

import argparse
import asyncio

from agents import Agent, OpenAIProvider, RunConfig, Runner, function_tool
from desk_tools import PROMPT, find_customer, get_order, refund_order
from openai import AsyncOpenAI

from reflexarc.beside.asking import Asked, System1
from reflexarc.beside.openai_agents import ReflexProvider


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reflex", required=True)
    parser.add_argument("--url", required=True, help="System 2's base URL, with /v1")
    parser.add_argument("--model", required=True)
    parser.add_argument("prompt")
    given = parser.parse_args()

    said: list[Asked] = []
    tools = [function_tool(tool) for tool in (find_customer, get_order, refund_order)]
    agent = Agent(name="desk", instructions=PROMPT, tools=[*tools], model=given.model)
    async with AsyncOpenAI(base_url=given.url, api_key="not-needed") as client:
        system2 = OpenAIProvider(openai_client=client, use_responses=False)
        provider = ReflexProvider(system2, System1(given.reflex, heard=said.append))
        config = RunConfig(model_provider=provider, tracing_disabled=True)
        print((await Runner.run(agent, given.prompt, run_config=config)).final_output)
    print(f"{sum(asked.acts for asked in said)} of {len(said)} turns were System 1's")


if __name__ == "__main__":
    asyncio.run(main())
