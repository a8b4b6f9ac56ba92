"""Values made of a user's words, choices of schemas: learned patterns, and nothing of one task."""

import random
from typing import Any

import msgspec

from reflexarc.reflex.context import Context
from reflexarc.reflex.fit import fit_predictor
from reflexarc.reflex.made_values import KIND, made_entries
from reflexarc.reflex.predictor import Predictor
from reflexarc.reflex.private import Private
from reflexarc.reflex.replay import replay
from reflexarc.reflex.schema_choices import schema_choices
from reflexarc.steps import Message, Session, ToolCall, ToolSpec, call_key

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"room": {"type": "string"}, "size": {
    "type": "string", "enum": ["small", "medium", "grand"],
}}}  # fmt: skip
TOOLS = (ToolSpec("open_room", "Opens a room.", SCHEMA),)


def session(number: int, planted: str = "") -> Session:
    drawn = random.Random(number)
    name = "".join(drawn.choices("abcdefghij", k=6))
    first, second = name[:3].title() + "k", name[3:].title() + "m"
    size = ("small", "medium")[number % 2]
    said = f"Open a {size} room for {first} {second} now."
    room = f"room-{first}.{second}".lower().replace("room-", "room/") + f"@hall{planted}"
    call = ToolCall("c", "open_room", {"room": room, "size": size}, "{}")
    messages = (
        Message("user", said), Message("assistant", tool_calls=(call,)),
        Message("tool", "ok", tool_call_id="c"), Message("assistant", "Done."),
    )  # fmt: skip
    return Session(f"s{number}", f"t{number}", TOOLS, messages)


def learned(sessions: list[Session]) -> Predictor:
    return fit_predictor(sessions, set(), Private(sessions))


def slots(predictor: Predictor) -> list[str]:
    return [
        slot.name
        for argument in predictor.sources.by_name["open_room"].arguments
        for slot in argument.slots
    ]


def test_a_value_is_made_of_words_never_seen() -> None:
    predictor = learned([session(number) for number in range(40)])
    assert f"{KIND}small.:room/{{}}@hall" in slots(predictor)
    right = 0
    for number in range(100, 120):
        context, item = next(replay(session(number)))
        assert item.recorded is not None
        best = predictor.rank(context, ["open_room"]).calls[0]
        right += best.key == call_key("open_room", item.recorded.arguments)
    assert right >= 19


def test_a_pattern_of_one_task_is_not_kept() -> None:
    runs = [session(number) for number in range(30)]
    runs += [
        Session(f"r{at}", "one", TOOLS, session(77, planted="-secret77").messages)
        for at in range(6)
    ]  # fmt: skip
    predictor = learned(runs)
    assert not any("secret77" in slot for slot in slots(predictor))


def test_a_choice_never_taken_is_still_a_candidate() -> None:
    predictor = learned([session(number) for number in range(40)])
    [size] = [one for one in predictor.sources.tools[0].arguments if one.name == "size"]
    assert {one.value: one.share > 0 for one in size.constants} == {
        "small": True, "medium": True, "grand": False,
    }  # fmt: skip
    assert [one.value for one in predictor.sources.constants(size, without="t1")][-1] == "grand"


def test_choices_of_one_task_are_its_own() -> None:
    """Some schemas list what one user has: that is kept of no task, nor of two."""
    schema = {"type": "object", "properties": {**SCHEMA["properties"], "size": {
        "type": "string", "enum": ["small", "medium", "grand", "the quibbled nook"],
    }}}  # fmt: skip
    tools = (ToolSpec("open_room", "Opens a room.", schema),)
    runs = [session(number) for number in range(40)]
    runs += [
        msgspec.structs.replace(session(77 + at % 2), id=f"r{at}", tools=tools) for at in range(6)
    ]
    [size] = [one for one in learned(runs).sources.tools[0].arguments if one.name == "size"]
    assert sorted(one.value for one in size.constants) == ["grand", "medium", "small"]
    runs += [msgspec.structs.replace(session(79), id="third", tools=tools)]
    [size] = [one for one in learned(runs).sources.tools[0].arguments if one.name == "size"]
    assert "the quibbled nook" in [one.value for one in size.constants]


def test_a_pattern_longer_than_any_that_is_learned_makes_nothing() -> None:
    context = Context()
    context.extend([Message("user", "Kofi")])
    assert [one.value for one in made_entries(context, f"{KIND}small:{{}}@hall")] == ["kofi@hall"]
    assert made_entries(context, f"{KIND}small:{{}}@{'h' * 200}") == []


def test_choices_are_read_from_descriptions() -> None:
    text = (
        "Paints.\n\nParameters\n----------\ncolour : str\n    The colour to paint in. Available"
        ' values are: "red", "blue"\nplace : str\n    Where, e.g. "wall" or "door".\n\nReturns\n'
        '-------\ndone : str\n    One of "yes", "no"\n'
    )
    schema = {
        "type": "object",
        "properties": {
            "colour": {"type": "string"}, "place": {"type": "string"},
            "coat": {"type": "string", "description": "Must be 'first' or 'second'."},
        },
    }  # fmt: skip
    assert schema_choices(ToolSpec("paint", text, schema)) == {
        "colour": ["red", "blue"], "coat": ["first", "second"],
    }  # fmt: skip
    assert schema_choices(ToolSpec("paint", text, {})) == {}
