"""A plain agent on the returns desk with the unmodified OpenAI SDK: `agent.py --base-url URL`.

Shows that nothing about an agent changes: its base URL is the simulated System 2, a real one, or
the gateway in front of either. Needs `pip install openai`.
"""

import tempfile
from pathlib import Path
from typing import Any, cast

import click
import openai

from reflexarc.bench.desk import TOOLS, Desk, build_database, make_task, verify
from reflexarc.bench.desk.record import HANDBOOK
from reflexarc.bench.desk.world import MODEL

MAX_STEPS = 60


@click.command()
@click.option("--base-url", default="http://127.0.0.1:9100/v1", show_default=True)
@click.option("--model", default=MODEL, show_default=True)
@click.option("--task", "seed", default="example", show_default=True, help="Names the task.")
@click.option("--api-key", default="none", envvar="OPENAI_API_KEY", show_envvar=True)
def main(base_url: str, model: str, seed: str, api_key: str) -> None:
    """Work through one queue of return requests, step by step, and verify the database."""
    client = openai.OpenAI(base_url=base_url, api_key=api_key)
    task = make_task(seed)
    messages: list[Any] = [
        {"role": "system", "content": HANDBOOK},
        {"role": "user", "content": task.opening},
    ]
    click.echo(task.opening)
    with tempfile.TemporaryDirectory() as folder:
        database = build_database(task, Path(folder) / "desk.sqlite")
        desk = Desk(database)
        for _ in range(MAX_STEPS):
            answer = client.chat.completions.with_raw_response.create(
                model=model, messages=messages, tools=cast("Any", TOOLS)
            )
            message = answer.parse().choices[0].message
            messages.append(message.model_dump(exclude_none=True))
            decision = answer.headers.get("x-reflexarc-decision", "")
            for call in message.tool_calls or []:
                if call.type != "function":
                    raise click.ClickException(f"{model} made a call of type {call.type}")
                click.echo(f"{call.function.name} {call.function.arguments}   [{decision}]")
                result = desk.call(call.function.name, call.function.arguments)
                messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
            if not message.tool_calls:
                click.echo(message.content)
                break
        faults = verify(task, database)
        database.close()
    click.echo("\n".join(faults) or "verified: the database ended as the handbook wants it")
    raise SystemExit(1 if faults else 0)


if __name__ == "__main__":
    main()
