"""A pydantic-ai agent whose model asks a reflex first."""

import argparse

from desk_tools import PROMPT, find_customer, get_order, refund_order
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from reflexarc.beside.asking import Asked, System1
from reflexarc.beside.pydantic_ai import ReflexModel


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reflex", required=True)
    parser.add_argument("--url", required=True, help="System 2's base URL, with /v1")
    parser.add_argument("--model", required=True)
    parser.add_argument("prompt")
    given = parser.parse_args()

    said: list[Asked] = []
    system2 = OpenAIChatModel(
        given.model, provider=OpenAIProvider(base_url=given.url, api_key="not-needed")
    )
    model = ReflexModel(system2, System1(given.reflex, heard=said.append))
    agent = Agent(model, instructions=PROMPT, tools=[find_customer, get_order, refund_order])

    print(agent.run_sync(given.prompt).output)
    print(f"{sum(asked.acts for asked in said)} of {len(said)} turns were System 1's")


if __name__ == "__main__":
    main()
