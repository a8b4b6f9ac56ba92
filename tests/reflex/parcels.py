"""A small agent for tests: a parcel desk whose System 2 is consistent but for a share of steps.

One task is one customer with one or two orders. The agent looks up each order, then its parcel,
then either refunds it (a write) or tells the customer where it is.
"""

import json
import random
from typing import Any

from reflexarc.steps import Message, Session, ToolCall, ToolSpec

PROMPT = "You are the parcel desk. Be brief.\nToday is 2024-05-15."


def tool(name: str, description: str, *arguments: str, reads: bool = False) -> ToolSpec:
    """A tool whose arguments are texts, all of them required; `reads`: it is declared to read."""
    return ToolSpec(
        name,
        description,
        {
            "type": "object",
            "properties": {argument: {"type": "string"} for argument in arguments},
            "required": list(arguments),
        },
        effect="read" if reads else None,
    )


TOOLS = (
    tool("get_order", "Look up an order.", "order_id", reads=True),
    tool("track_parcel", "Look up where a parcel is.", "parcel_id", "carrier", reads=True),
    tool("refund_order", "Refund an order.", "order_id", "reason"),
    tool("think", "Write down a thought.", "thought"),
)


class Conversation:
    """Collects messages; the agent's calls get ids."""

    def __init__(self) -> None:
        self.messages = [Message("system", PROMPT)]

    def user(self, text: str) -> None:
        self.messages.append(Message("user", text))

    def says(self, text: str) -> None:
        self.messages.append(Message("assistant", text))

    def calls(self, name: str, output: Any, **arguments: Any) -> None:
        call = ToolCall(f"call_{len(self.messages)}", name, arguments, json.dumps(arguments))
        self.messages.append(Message("assistant", "", (call,)))
        text = output if isinstance(output, str) else json.dumps(output)
        self.messages.append(Message("tool", text, (), call.id))


def session(task: int, trial: int = 0, noise: float = 0.0) -> Session:
    """One run of one task; the same task has the same customer, the trial its own deviations."""
    facts = random.Random(task)
    moods = random.Random(task * 1000 + trial)
    talk = Conversation()
    orders = [
        {
            "order_id": f"#W{facts.randrange(10**6, 10**7)}",
            "parcel": {"id": f"PX-{facts.randrange(10**5, 10**6)}", "carrier": carrier},
            "status": facts.choice(["shipped", "lost"]),
        }
        for carrier in facts.sample(["swift", "bluepost"], facts.choice([1, 2]))
    ]
    named = " and ".join(order["order_id"] for order in orders)
    talk.user(f"Hello, where is my order {named}?")
    for order in orders:
        if moods.random() < noise:
            talk.calls("think", "", thought="Which order first?")
        talk.calls("get_order", order, order_id=order["order_id"])
        if moods.random() < noise:
            continue
        place = {"parcel_id": order["parcel"]["id"], "status": order["status"]}
        talk.calls(
            "track_parcel",
            place,
            parcel_id=order["parcel"]["id"],
            carrier=order["parcel"]["carrier"],
        )
        if order["status"] == "lost":
            talk.calls("refund_order", {"ok": True}, order_id=order["order_id"], reason="lost")
    talk.says("That is all: every parcel is accounted for.")
    talk.user("Thank you!")
    talk.says("You are welcome.")
    return Session(
        id=f"parcels-{task}-{trial}",
        task=f"parcels-{task}",
        tools=TOOLS,
        messages=tuple(talk.messages),
        model="parcel-model",
        trial=trial,
    )


def sessions(first: int, last: int, trials: int = 1, noise: float = 0.0) -> list[Session]:
    """Every trial of the tasks first..last-1."""
    return [session(task, trial, noise) for task in range(first, last) for trial in range(trials)]
