"""A small agent for tests that calls several tools at once: a greenhouse desk.

One task is one grower who asks about some beds. The agent finds the beds by the grower's name, then
reads all of them and the weather in one turn, waters all of them in one turn unless it rains, and
says so. `splits`: the share of
its turns in which it makes only the first of the calls, and the others in the turn after.
"""

import json
import random
from collections.abc import Sequence
from typing import Any

from reflexarc.steps import Message, Session, ToolCall
from tests.reflex.parcels import tool

PROMPT = "You run the greenhouse desk. Be brief."


TOOLS = (
    tool("find_beds", "Find the beds of a grower.", "grower_id", reads=True),
    tool("read_bed", "Read the soil of a bed.", "bed_id", reads=True),
    tool("weather", "Read the weather of a place.", "place", reads=True),
    tool("water_bed", "Water a bed.", "bed_id"),
)


class Desk:
    """Collects messages; `splits` of the turns of several calls are made as two."""

    def __init__(self, moods: random.Random, splits: float) -> None:
        self.messages = [Message("system", PROMPT)]
        self._moods = moods
        self._splits = splits

    def turn(self, calls: Sequence[tuple[str, dict[str, Any], Any]]) -> None:
        """Name, arguments and result of each call of one turn."""
        if len(calls) > 1 and self._moods.random() < self._splits:
            self.turn(calls[:1])
            self.turn(calls[1:])
            return
        made = tuple(
            ToolCall(f"call_{len(self.messages)}_{at}", name, arguments, json.dumps(arguments))
            for at, (name, arguments, _) in enumerate(calls)
        )
        self.messages.append(Message("assistant", "", made))
        for call, (_, _, result) in zip(made, calls, strict=True):
            self.messages.append(Message("tool", json.dumps(result), (), call.id))


def session(task: int, trial: int = 0, splits: float = 0.0) -> Session:
    """One run of one task."""
    facts = random.Random(task)
    desk = Desk(random.Random(task * 1000 + trial), splits)
    grower = f"GR-{facts.randrange(10**5, 10**6)}"
    beds = [f"BD-{facts.randrange(10**5, 10**6)}" for _ in range(facts.choice([1, 2, 3]))]
    place = f"PL-{facts.randrange(10**5, 10**6)}"
    rain = facts.random() < 0.4
    desk.messages.append(Message("user", f"Hello, I am {grower}. How are my beds?"))
    found = {"beds": [{"bed_id": bed} for bed in beds], "place": place}
    desk.turn([("find_beds", {"grower_id": grower}, found)])
    soil = [("read_bed", {"bed_id": bed}, {"bed_id": bed, "soil": "dry"}) for bed in beds]
    desk.turn([*soil, ("weather", {"place": place}, {"rain": rain})])
    if not rain:
        desk.turn([("water_bed", {"bed_id": bed}, {"done": True}) for bed in beds])
    desk.messages.append(Message("assistant", "All beds are well now."))
    return Session(
        id=f"greenhouse-{task}-{trial}",
        task=f"greenhouse-{task}",
        tools=TOOLS,
        messages=tuple(desk.messages),
        model="greenhouse-model",
        trial=trial,
    )


def sessions(first: int, last: int, trials: int = 1, splits: float = 0.0) -> list[Session]:
    """Every trial of the tasks first..last-1."""
    return [session(task, trial, splits) for task in range(first, last) for trial in range(trials)]
