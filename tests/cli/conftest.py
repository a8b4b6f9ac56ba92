"""A small agent whose sessions can be learned in a second or two, and the commands run on them."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from reflexarc.cli import main

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run() -> Run:
    """Runs a command; gives exit status, stdout, stderr."""

    def invoke(*arguments: str | Path) -> tuple[int, str, str]:
        result = CliRunner().invoke(main, [str(a) for a in arguments])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result.exit_code, result.stdout, result.stderr

    return invoke


def _tool(name: str, description: str, *arguments: str) -> dict[str, Any]:
    properties = {argument: {"type": "string"} for argument in arguments}
    parameters = {"type": "object", "properties": properties, "required": list(arguments)}
    return {
        "type": "function",
        "function": {"name": name, "description": description, "parameters": parameters},
    }


TOOLS = [
    _tool("get_order", "Looks up an order.", "order_id"),
    _tool("get_customer", "Looks up a customer.", "customer_id"),
    _tool("refund_order", "Refunds an order.", "order_id", "reason"),
]


def shop_session(number: int, run_number: int = 0, *, reward: float = 1.0) -> dict[str, Any]:
    """Order, customer, refund, message; the ids of a task are its own."""
    draw = random.Random(number)
    order, customer = f"OR-{draw.randrange(10**6):06d}", f"cu_{draw.randrange(10**6):06d}"
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "You are the refunds agent of a shop."},
        {"role": "user", "content": f"Please look after the return of order {order}."},
    ]
    steps = (
        ("get_order", {"order_id": order}, {"order_id": order, "customer": {"id": customer}}),
        ("get_customer", {"customer_id": customer}, {"id": customer, "name": "A. Person"}),
        ("refund_order", {"order_id": order, "reason": "returned"}, {"status": "refunded"}),
    )
    for at, (name, arguments, result) in enumerate(steps):
        identity = f"call_{number}_{run_number}_{at}"
        call = {"name": name, "arguments": json.dumps(arguments)}
        messages += [
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": identity, "type": "function", "function": call}],
            },
            {"role": "tool", "tool_call_id": identity, "content": json.dumps(result)},
        ]
    messages.append({"role": "assistant", "content": f"Order {order} is refunded."})
    return {
        "id": f"s{number}-{run_number}",
        "task": f"t{number}",
        "model": "system-2",
        "reward": reward,
        "tools": TOOLS,
        "messages": messages,
    }


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """90 tasks of a consistent agent."""
    path = tmp_path / "shop.jsonl"
    path.write_text("".join(json.dumps(shop_session(n)) + "\n" for n in range(90)))
    return path
