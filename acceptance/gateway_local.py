"""The embedded engine: `reflexarc serve --local` as it is started by hand, and the openai SDK.

    python -m acceptance.gateway_local

About a minute and a half of one core, niced. Nothing is timed.
"""

import json
import sys
import tempfile
from itertools import pairwise
from typing import Any

import jsonschema_rs
from openai import OpenAI

from acceptance.gateway_local_cases import CHOICES, DEFINITIONS, SCHEMAS
from acceptance.lines import Lines
from acceptance.processes import process

LEVEL = 0.01


def measure(lines: Lines) -> None:
    """Lines 5.1 to 5.5."""
    with (
        tempfile.TemporaryDirectory(prefix="reflexarc-local-") as state,
        process("serve", "--local", "--port", "0", "--state", state) as gateway,
    ):
        client: Any = OpenAI(base_url=f"{gateway.base}/v1", api_key="unused")
        _turns(lines, client)
        _schemas(lines, client)
        _choices(lines, client, "5.4", "required")
        _choices(lines, client, "5.5", "auto")


def _turns(lines: Lines, client: Any) -> None:
    """Turns of one conversation, whole and streamed alternately."""
    history: list[Any] = [
        {"role": "system", "content": "You are the assistant of a small shop for shoes."}
    ]
    cached: list[int] = []
    prompts: list[int] = []
    texts: list[str] = []
    for turn, words in enumerate(["Hello, who are you?", "What do you sell?", "Thank you."]):
        history.append({"role": "user", "content": words})
        text, usage = (_streamed if turn % 2 else _whole)(client, history)
        history.append({"role": "assistant", "content": text})
        texts.append(text)
        prompts.append(usage.prompt_tokens)
        cached.append(usage.prompt_tokens_details.cached_tokens)
    lines.add(
        "5.1",
        "the embedded engine answers the openai SDK, whole, streamed, whole",
        "text each time",
        ", ".join(f"{len(text)} characters" for text in texts),
        all(texts),
    )
    lines.add(
        "5.2",
        "cached_tokens from turn to turn",
        "growing; from the second on the whole prompt before",
        f"{cached} of prompts of {prompts} tokens",
        all(a < b for a, b in pairwise(cached))
        and all(now >= before - 1 for now, before in zip(cached[1:], prompts[:-1], strict=True)),
    )


def _whole(client: Any, history: list[Any]) -> tuple[str, Any]:
    answer = client.chat.completions.create(model="any", messages=history, max_tokens=16)
    return answer.choices[0].message.content or "", answer.usage


def _streamed(client: Any, history: list[Any]) -> tuple[str, Any]:
    text, usage = "", None
    chunks = client.chat.completions.create(
        model="any",
        messages=history,
        max_tokens=16,
        stream=True,
        stream_options={"include_usage": True},
    )
    for chunk in chunks:
        text += "".join(choice.delta.content or "" for choice in chunk.choices)
        usage = chunk.usage or usage
    return text, usage


def _schemas(lines: Lines, client: Any) -> None:
    faults: list[str] = []
    for name, value in SCHEMAS:
        parameters = {
            "type": "object",
            "properties": {"value": value},
            "required": ["value"],
            "$defs": DEFINITIONS,
        }
        function = {"name": "record", "description": f"Record {name}", "parameters": parameters}
        answer = client.chat.completions.create(
            model="any",
            messages=[{"role": "user", "content": f"Record {name} for me, please."}],
            tools=[{"type": "function", "function": function}],
            tool_choice="required",
        )
        calls: list[Any] = answer.choices[0].message.tool_calls or []
        if len(calls) != 1 or not _fits(calls[0].function.arguments, parameters):
            faults.append(name)
    lines.add(
        "5.3",
        "calls of a tool whose argument is of one kind each fit its schema",
        f"{len(SCHEMAS)} of {len(SCHEMAS)}",
        f"{len(SCHEMAS) - len(faults)}{': not ' + ', '.join(faults) if faults else ''}",
        not faults,
    )


def _choices(lines: Lines, client: Any, identity: str, choice: str) -> None:
    right, valid, wrong = 0, 0, list[str]()
    chances: list[float] = []
    for tools, words, name in CHOICES:
        answer = client.chat.completions.create(
            model="any",
            messages=[{"role": "user", "content": words}],
            tools=tools,
            tool_choice=choice,
        )
        calls: list[Any] = answer.choices[0].message.tool_calls or []
        chosen: str = calls[0].function.name if calls else "words"
        chances.append(1 / len(tools) if choice == "required" else 1 / (len(tools) + 1))
        right += chosen == name
        wrong += [] if chosen == name else [f"{name} ({chosen})"]
        schemas = {t["function"]["name"]: t["function"]["parameters"] for t in tools}
        valid += not calls or _fits(calls[0].function.arguments, schemas[chosen])
    count = len(CHOICES)
    expected = sum(chances)
    p = at_least(right, chances)
    lines.add(
        identity,
        f"tool_choice {choice}: the right tool of 3 to 6, on requests not tuned on",
        f"above chance ({expected / count:.0%}), p < {LEVEL}; every call fits its schema",
        f"{right} of {count} right ({right / count:.0%}; chance gives {expected:.1f}), "
        f"p = {p:.1g}; {valid} of {count} fit; not {', '.join(wrong)}",
        p < LEVEL and valid == count,
    )


def at_least(hits: int, chances: list[float]) -> float:
    """Probability of so many hits or more in independent trials with these chances, exactly (the
    Poisson binomial distribution)."""
    by_hits = [1.0]
    for chance in chances:
        by_hits = [
            (by_hits[k] * (1 - chance) if k < len(by_hits) else 0.0)
            + (by_hits[k - 1] * chance if k else 0.0)
            for k in range(len(by_hits) + 1)
        ]
    return sum(by_hits[hits:])


def _fits(text: str, schema: dict[str, Any]) -> bool:
    try:
        value = json.loads(text)
    except ValueError:
        return False
    return jsonschema_rs.is_valid(schema, value)


def main() -> None:
    lines = Lines("gateway_local", cores=2)
    lines.part("5", "The embedded engine", lambda: measure(lines))
    sys.exit(lines.finish(write=False))


if __name__ == "__main__":
    main()
