"""A small agent over an HTTP API: one tool, and every call nested and composed of parts.

One task is one borrower with a loan of an instrument. The agent gets a token (the response's body
is JSON within a string), reads the loan, then its instrument, and renews the loan where it may.
"""

import json
import random
from typing import Any

from reflexarc.steps import Message, Session, ToolCall, ToolSpec

HOST = "https://lending.example"
TOOL = ToolSpec(
    "http_request",
    "Send a request.",
    {
        "type": "object",
        "properties": {
            "method": {"type": "string"},
            "url": {"type": "string"},
            "headers": {"type": "object"},
            "body": {"type": "object"},
        },
        "required": ["method", "url"],
    },
    effect="read",
)


class Desk:
    """Collects the messages of one conversation."""

    def __init__(self, asked: str) -> None:
        self.messages = [
            Message("system", f"You serve the lending desk at {HOST}."),
            Message("user", asked),
        ]

    def asks(self, method: str, path: str, answer: Any, **more: Any) -> None:
        arguments = {"method": method, "url": f"{HOST}{path}", **more}
        call = ToolCall(f"c{len(self.messages)}", "http_request", arguments, json.dumps(arguments))
        self.messages.append(Message("assistant", "", (call,)))
        said = json.dumps(
            {
                "ref": f"exchange:x-{len(self.messages)}/answer:{path}",
                "status": 200,
                "body": json.dumps(answer),
            }
        )
        self.messages.append(Message("tool", said, (), call.id))

    def says(self, text: str) -> None:
        self.messages.append(Message("assistant", text))


def session(task: int) -> Session:
    """One run of one task: ids and the token are of this task alone."""
    random_source = random.Random(task)

    def drawn() -> str:
        return "".join(random_source.choice("bcdfghjkmnpqrstvwxz23456789") for _ in range(6))

    loan, instrument, secret = f"ln-{drawn()}7", f"ins-{drawn()}4", f"tk_{drawn()}9"
    renewable = task % 3 != 0
    desk = Desk(f"Please look after loan {loan}.")
    desk.asks(
        "POST",
        "/v2/token",
        {"access": secret, "kind": "Bearer"},
        headers={"Content-Type": "application/json"},
        body={"grant": "client"},
    )
    bearer = {"Authorization": f"Bearer {secret}"}
    desk.asks(
        "GET",
        f"/v2/loans/{loan}",
        {"loan": loan, "instrument": instrument, "renewable": renewable},
        headers=bearer,
    )
    desk.asks("GET", f"/v2/instruments?id={instrument}", {"name": "viola"}, headers=bearer)
    if renewable:
        desk.asks(
            "POST",
            f"/v2/loans/{loan}/renew",
            {"renewed": True},
            headers={**bearer, "Content-Type": "application/json"},
            body={"confirm": True, "item": {"instrument": instrument, "count": 1}},
        )
    desk.says("Done.")
    return Session(f"loans-{task}", f"loan-{task}", (TOOL,), tuple(desk.messages), model="m")


def sessions(first: int, count: int) -> list[Session]:
    return [session(first + at) for at in range(count)]
