"""What recurs is answered from memory: the same request, the same calls so far, agreeing runs."""

import json
import random
from typing import Any

import pytest

from reflexarc.reflex import Reflex, learn
from reflexarc.reflex.artifact import unpack
from reflexarc.reflex.recall import Recall
from reflexarc.steps import Message, Session, ToolCall, ToolSpec

LAMPS = ("Blue Lamp", "Hall Lamp", "Desk Lamp", "Porch Lamp", "Attic Lamp", "Bed Lamp")
VERBS = ("look at", "check", "tell me about", "what of", "how is")
TOOLS = (
    ToolSpec(
        "get_state",
        "Look at a device.",
        {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
        effect="read",
    ),
)
PROMPT = "You mind the house. Devices: " + ", ".join(f'"{lamp}"' for lamp in LAMPS) + "."


def run(task: int, trial: int, *, lamp: str | None = None) -> Session:
    """One run of a request that names no device: only who saw it before knows which is meant."""
    asked = lamp or random.Random(task).choice(LAMPS)
    request = f"Please {VERBS[task % 5]} the one near spot {task}"
    call = ToolCall("c1", "get_state", {"name": asked})
    messages = (
        Message("system", PROMPT),
        Message("user", request),
        Message("assistant", "", tool_calls=(call,)),
        Message("tool", json.dumps({"state": "on"}), tool_call_id="c1"),
        Message("assistant", "It is on."),
    )
    return Session(f"{task}-{trial}", f"task-{task}", TOOLS, messages)


@pytest.fixture(scope="module")
def house() -> Reflex:
    return learn([run(task, trial) for task in range(40) for trial in range(4)], max_error=0.05)


def asked(task: int) -> list[Message]:
    return list(run(task, 9).messages[:2])


def test_a_request_seen_before_is_answered_as_before(house: Reflex) -> None:
    for task in range(40):
        decision = house.decide(asked(task), TOOLS)
        assert decision.acts
        assert decision.arguments == run(task, 9).messages[2].tool_calls[0].arguments
        assert decision.scope == "recalled reads"


def test_a_new_request_is_no_matter_of_memory(house: Reflex) -> None:
    decision = house.decide(asked(4000), TOOLS)
    assert decision.scope == "reads"
    assert not decision.acts


def test_case_and_space_do_not_matter_but_what_was_called_does(house: Reflex) -> None:
    messages = asked(3)
    loud = [messages[0], Message("user", f"  {messages[1].content.upper()} ")]
    assert house.decide(loud, TOOLS).acts
    further = [*messages, *run(3, 9).messages[2:4]]
    assert not house.decide(further, TOOLS).acts, "every run wrote a message here"


def test_a_value_that_is_gone_from_the_context_is_not_made_up(house: Reflex) -> None:
    wanted = run(3, 9).messages[2].tool_calls[0].arguments["name"]
    messages = asked(3)
    messages[0] = Message("system", PROMPT.replace(wanted, "Other Lamp"))
    decision = house.decide(messages, TOOLS)
    assert decision.arguments.get("name") != wanted


def test_runs_that_disagree_do_not_act() -> None:
    """Half of the requests mean another lamp each time: memory may not act on those."""
    source = random.Random(1)
    sessions = [
        run(task, trial, lamp=source.choice(LAMPS) if task % 2 else None)
        for task in range(60)
        for trial in range(4)
    ]
    reflex = learn(sessions, max_error=0.1)
    wrong = acted = 0
    for task in range(60):
        decision = reflex.decide(asked(task), TOOLS)
        if decision.acts:
            acted += 1
            wrong += task % 2 == 1
    assert acted >= 25
    assert wrong <= 0.1 * acted


def test_no_value_and_no_request_is_kept_in_clear(house: Reflex) -> None:
    header, _ = unpack(house.to_bytes())
    text = json.dumps(header)
    assert "near spot" not in text
    assert len(house.recall) == 80
    names = json.dumps([header["recalled_tools"], header["recalled_arguments"]])
    assert not any(lamp in names for lamp in LAMPS)


def test_a_memory_is_the_same_after_loading(house: Reflex) -> None:
    tools, names, arrays = house.recall.arrays()
    again = Recall.from_arrays(tools, names, arrays).arrays()
    assert again[:2] == (tools, names)
    assert all((again[2][name] == array).all() for name, array in arrays.items())
    assert Reflex.from_bytes(house.to_bytes()).to_bytes() == house.to_bytes()


def test_one_conversation_has_one_member(house: Reflex) -> None:
    session = run(7, 1)
    context = house.context()
    context.extend(session.messages[:2])
    member = house.member(context)
    context.extend(session.messages[2:])
    assert house.member(context) is member
    drawn = set()
    for task in range(40):
        other = house.context()
        other.extend(asked(task))
        drawn.add(id(house.member(other)))
    assert len(drawn) == len(house.members)


def test_a_single_run_is_remembered_and_judged_like_the_others() -> None:
    """Requests of one earlier run: it comes first, and acts where that was certified."""
    sessions = [run(task, trial) for task in range(60) for trial in range(2 if task < 45 else 1)]
    reflex = learn(sessions, max_error=0.1)
    for task in range(45, 60):
        decision = reflex.decide(asked(task), TOOLS)
        assert decision.scope == "recalled reads"
        assert decision.arguments == run(task, 9).messages[2].tool_calls[0].arguments
        assert decision.acts


def test_single_runs_that_are_not_repeated_rank_and_do_not_act() -> None:
    source = random.Random(3)
    sessions = [
        run(task, trial, lamp=source.choice(LAMPS)) for task in range(60) for trial in range(2)
    ]
    reflex = learn(sessions, max_error=0.1)
    assert not any(reflex.decide(asked(task), TOOLS).acts for task in range(60))


def test_values_of_no_slot_are_found_in_what_the_conversation_holds() -> None:
    """A list of one word of the user's, a switch, a number, words of the prompt."""
    tool = ToolSpec("set_fan", "Sets.", {"type": "object", "properties": {}}, effect="read")

    def session(task: int, trial: int) -> Session:
        arguments: dict[str, Any] = {
            "kind": [f"fan{task}"], "on": task % 2 == 0, "level": task % 50, "room": f"Room {task}",
        }  # fmt: skip
        call = ToolCall("c1", "set_fan", arguments, json.dumps(arguments))
        messages = (
            Message("system", f"You mind the house.\nUpstairs: Room {task} and Room X."),
            Message("user", f"Please see to fan{task} as before"),
            Message("assistant", "", tool_calls=(call,)),
            Message("tool", "ok", tool_call_id="c1"),
            Message("assistant", "It is done."),
        )
        return Session(f"{task}-{trial}", f"task-{task}", (tool,), messages)

    reflex = learn([session(task, trial) for task in range(40) for trial in range(3)])
    for task in range(40):
        wanted = session(task, 9).messages
        decision = reflex.decide(list(wanted[:2]), (tool,))
        assert decision.arguments == wanted[2].tool_calls[0].arguments
