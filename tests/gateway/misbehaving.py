"""Reflexes that do what no good artifact can: they are loaded into the worker by name."""

import os
import time
from collections.abc import Sequence
from typing import Any

from reflexarc.reflex.decision import Decision, Guarantee, ProposedCall
from reflexarc.steps import Message


class _Context:
    def __init__(self) -> None:
        self.messages: list[Message] = []

    def extend(self, messages: Sequence[Message]) -> None:
        self.messages.extend(messages)


class _Reflex:
    """Always certain of the same call, unless the last message says otherwise."""

    def __init__(self, name: str = "get_order", arguments: dict[str, Any] | None = None) -> None:
        self._call = ProposedCall(name, arguments or {"order_id": "W1"}, 0.99)

    def context(self) -> _Context:
        return _Context()

    def decide(self, context: _Context, tools: Any, **options: Any) -> Decision:
        del tools, options
        last = context.messages[-1].content
        if "hang" in last:
            while True:
                time.sleep(0.01)
        if "raise" in last:
            raise RuntimeError("a secret of the conversation")
        if "die" in last:
            os._exit(3)
        if "slow" in last:
            time.sleep(0.3)
        return Decision(
            "act",
            "certified",
            self._call,
            0.99,
            Guarantee(0.05, 0.9, "reads", 99, 0, "model-based"),
        )


def moody(_: str) -> _Reflex:
    return _Reflex()


def wrong_type(_: str) -> _Reflex:
    return _Reflex(arguments={"order_id": 7})


def stranger(_: str) -> _Reflex:
    return _Reflex(name="launch_rocket")


def writer(_: str) -> _Reflex:
    return _Reflex(name="refund_order")
