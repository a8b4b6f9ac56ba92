"""An argument that was seen seldom takes over from its kin; of too many values some are tried."""

import json
import random

from reflexarc.provenance import Entry, Origin, Record
from reflexarc.reflex.borrowing import MAX_BORROWED, choices_of_kin
from reflexarc.reflex.candidates import enumerate_candidates
from reflexarc.reflex.closed_sets import MAX_VALUES, ClosedSets
from reflexarc.reflex.context import Context
from reflexarc.reflex.fit import fit_predictor
from reflexarc.reflex.keyed import key_of, keyed_entries
from reflexarc.reflex.predictor import Predictor
from reflexarc.reflex.private import Private
from reflexarc.reflex.schema_choices import example_values
from reflexarc.reflex.shortlist import NEWEST, rooms, tried
from reflexarc.reflex.sources import Argument
from reflexarc.steps import Message, Session, ToolCall, ToolSpec

STATES = ("Open", "In Review", "Closed")


def spec(name: str, *arguments: str, description: str = "") -> ToolSpec:
    properties = {argument: {"type": "string"} for argument in arguments}
    return ToolSpec(name, description, {"type": "object", "properties": properties})


TOOLS = (
    spec("board.find_cards", "owner"),
    spec("board.show_card", "card_id", "state"),
    spec("board.drop_card", "card_id", "state"),
)


def session(number: int, tool: str) -> Session:
    drawn = random.Random(number)
    cards = [
        {"card_id": f"K{drawn.randrange(10**6):06d}", "state": STATES[(number + at) % 3]}
        for at in range(3)
    ]
    find = ToolCall("a", "board.find_cards", {"owner": f"owner{number}"}, "{}")
    then = ToolCall("b", tool, {"card_id": cards[0]["card_id"]}, "{}")
    messages = (
        Message("user", f"See to the first card of owner{number}"),
        Message("assistant", tool_calls=(find,)),
        Message("tool", json.dumps(cards), tool_call_id="a"),
        Message("assistant", tool_calls=(then,)),
        Message("tool", "ok", tool_call_id="b"),
        Message("assistant", "Done."),
    )
    return Session(f"s{number}", f"t{number}", TOOLS, messages)


def learned(rare: int) -> Predictor:
    """One tool called in forty tasks, its sister in a few: in these the value stands elsewhere."""
    often = [session(number, "board.show_card") for number in range(40)]
    seldom: list[Session] = []
    for number in range(100, 100 + rare):
        call = ToolCall("b", "board.drop_card", {"card_id": f"X{number}", "state": "Open"}, "{}")
        messages = (
            Message("user", "Drop the one I told you of"),
            Message("assistant", tool_calls=(call,)),
            Message("tool", "ok", tool_call_id="b"),
            Message("assistant", "Done."),
        )
        seldom.append(Session(f"s{number}", f"t{number}", TOOLS, messages))
    sessions = [*often, *seldom]
    return fit_predictor(sessions, set(), Private(sessions))


def argument(predictor: Predictor, tool: str, name: str) -> Argument:
    return next(one for one in predictor.sources.by_name[tool].arguments if one.name == name)


def test_a_rare_tool_finds_its_argument_where_its_sister_does() -> None:
    card = argument(learned(4), "board.drop_card", "card_id")
    slots = [slot.name for slot in card.slots]
    assert "out:board.find_cards:[*].card_id" in slots
    assert "key:card_id" in slots
    assert len(slots) <= MAX_BORROWED


def test_an_argument_that_was_seen_often_keeps_to_what_it_showed() -> None:
    card = argument(learned(4), "board.show_card", "card_id")
    assert card.slots[0].name == "out:board.find_cards:[*].card_id"
    assert card.slots[0].hit_rate > 0.9
    assert "key:card_id" not in [slot.name for slot in card.slots]
    owner = argument(learned(4), "board.find_cards", "owner")
    assert not any(slot.name.startswith(("key:", "out:")) for slot in owner.slots)


def test_values_of_another_argument_by_its_name_are_not_taken_over() -> None:
    for tool in learned(4).sources.tools:
        for one in tool.arguments:
            keyed = [slot.name for slot in one.slots if slot.name.startswith("key:")]
            assert keyed in ([], [f"key:{one.name}"])


def test_what_results_fill_from_a_few_values_is_a_choice() -> None:
    state = argument(learned(4), "board.drop_card", "state")
    assert {constant.value for constant in state.constants} == set(STATES)
    assert {one.value: one.share for one in state.constants}["Closed"] == 0.0


def entry(slot: str, value: str, event: int = 1, position: int = 0, text: str = "") -> Entry:
    origin = Origin("tool_result", 0, event, "")
    return Entry(slot, value, origin, position, Record(text) if text else Record(value))


def test_names_of_things_are_no_closed_set() -> None:
    sets = ClosedSets(("state", "title", "code"))
    for task in range(40):
        sets.observe([entry("out:t:[*].state", STATES[task % 3])], f"t{task}")
        sets.observe([entry("out:t:.title", f"Title {task}")], f"t{task}")
        sets.observe([entry("out:t:.other", "always")], f"t{task}")
    for task in range(MAX_VALUES + 1):
        for again in range(4):
            sets.observe([entry("out:t:.code", f"c{task}")], f"t{again}")
    assert sorted(value for value, _ in sets.of("state")) == sorted(STATES)
    assert sets.of("title") == []
    assert sets.of("other") == []
    assert sets.of("code") == []


def test_what_fewer_than_three_tasks_showed_is_no_choice() -> None:
    sets = ClosedSets(("state",))
    for task in range(20):
        sets.observe([entry("out:t:.state", "Open")], f"t{task}")
    for _ in range(50):
        sets.observe([entry("out:t:.state", "of one task")], "t1")
        sets.observe([entry("out:t:.state", "of two")], f"t{_ % 2}")
    assert [value for value, _ in sets.of("state")] == ["Open"]


def test_sets_counted_apart_are_those_counted_together() -> None:
    whole, one, two = (ClosedSets(("state", "name")) for _ in range(3))
    for task in range(30):
        for part in (whole, one if task % 2 else two):
            part.observe([entry("out:t:.state", STATES[task % 3])], f"t{task}")
            part.observe([entry("out:t:.name", f"n{task}")], f"t{task}")
    taken = ClosedSets(("state", "name"))
    taken.take(one)
    taken.take(two)
    assert taken.of("state") == whole.of("state") != []
    assert taken.of("name") == whole.of("name") == []


def test_choices_come_from_the_tool_most_like_it() -> None:
    choices = {
        "mail.send_mail": {"field": ["subject"]},
        "board.read_card": {"field": ["state", "owner"]},
        "board.read_board_card": {"kind": ["x"]},
    }
    assert list(choices_of_kin("board.change_card", "field", choices)) == ["state", "owner"]
    assert list(choices_of_kin("other.change", "field", choices)) == []


def test_examples_of_a_schema_are_found() -> None:
    tool = spec("board.find", "owner", "state",
                description='Finds.\n\nExamples\n>>> board.find("ada", "In progress")\n'
                            '>>> board.find(state="In review")')  # fmt: skip
    assert example_values(tool) == {"owner": ["ada"], "state": ["In progress", "In review"]}
    given = ToolSpec("t", "", {"properties": {"a": {"examples": ["one", 2], "default": "two"}}})
    assert example_values(given) == {"a": ["one", "two"]}


def test_an_example_is_tried_where_its_words_are_said() -> None:
    rare = Argument("t", "state", 0, "string", "string", (), (), 0.5, (), examples=("In progress",))
    for said, there in (("move what is in progress", True), ("move what is open", False)):
        context = Context()
        context.extend([Message("user", said)])
        found = [one.text for one in enumerate_candidates(context, rare, ())]
        assert ("In progress" in found) == there


def test_the_last_name_of_a_path_is_its_key() -> None:
    assert key_of("out:t:.items[*].card_id") == "card_id"
    assert key_of("out:t:.tags[*]") == "tags"
    assert key_of("out:t:.body~json.token") == ""
    assert key_of("usr:A") == ""


def test_what_results_say_under_a_name_is_found_whatever_the_tool() -> None:
    context = Context()
    for at, tool in enumerate(("one", "two")):
        call = ToolCall(f"c{at}", tool, {}, "{}")
        context.extend([
            Message("assistant", tool_calls=(call,)),
            Message("tool", json.dumps({"deep": [{"card_id": f"K{at}"}]}), tool_call_id=f"c{at}"),
        ])  # fmt: skip
        found = [one.text for one in keyed_entries(context, "key:card_id")]
        assert found == [f"K{number}" for number in range(at + 1)]


def test_of_a_long_list_what_was_spoken_of_and_its_first_are_tried() -> None:
    context = Context()
    rows = [{"card_id": f"K{at}", "owner": "zora" if at == 100 else "bo"} for at in range(200)]
    call = ToolCall("c", "t", {}, "{}")
    context.extend([
        Message("user", "the card of zora"), Message("assistant", tool_calls=(call,)),
        Message("tool", json.dumps(rows), tool_call_id="c"),
    ])  # fmt: skip
    found = [one.text for one in tried(context, context.slots["out:t:[*].card_id"])]
    assert len(found) == NEWEST
    assert {"K0", "K1", "K100", "K199"} <= set(found)
    assert found == sorted(found, key=lambda text: int(text[1:]))


def test_words_that_say_nothing_make_room_for_those_that_do() -> None:
    context = Context()
    words = ["kofi", *["the", "with", "and"] * 30, "yuki"]
    context.extend([Message("user", " ".join(words))])
    found = {one.text for one in tried(context, context.slots["usr:a"])}
    assert found == {"kofi", "yuki"}


def test_every_slot_has_some_room() -> None:
    assert rooms([40, 40, 2], 32) == [26, 30, 32]
    assert rooms([3], 32) == [32]
    assert rooms([40] * 20, 32)[0] == 16
