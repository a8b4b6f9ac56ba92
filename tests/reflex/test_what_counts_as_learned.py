"""Constants, effects and repeats: small rules with large consequences."""

import json

import pytest

from reflexarc.reflex import guess_effect, repeats
from reflexarc.reflex.context import Context
from reflexarc.reflex.replay import replay
from reflexarc.reflex.sources import SourceLearner
from reflexarc.steps import Message, Session, ToolCall, ToolSpec
from tests.reflex import parcels


def calls(task: str, run: int, *arguments: dict[str, str]) -> Session:
    messages = [Message("user", "go")]
    for at, argument in enumerate(arguments):
        call = ToolCall(f"c{at}", "get_thing", argument, json.dumps(argument))
        messages += [Message("assistant", "", (call,)), Message("tool", "ok", (), call.id)]
    return Session(f"{task}-{run}", task, (ToolSpec("get_thing"),), tuple(messages))


def learned(sessions: list[Session]) -> SourceLearner:
    learner = SourceLearner()
    for session in sessions:
        for context, item in replay(session):
            if item.recorded is not None:
                learner.observe(context, item.recorded, session.task)
    return learner


def test_a_planted_leak_is_not_learned_as_a_constant() -> None:
    secret = [calls("leaky", run, {"kind": "all", "id": "SECRET-1"}) for run in range(50)]
    others = [calls(f"task-{at}", 0, {"kind": "all", "id": f"ID-{at}"}) for at in range(20)]
    (tool,) = learned(secret + others).finish().tools
    constants = {
        argument.name: [constant.value for constant in argument.constants]
        for argument in tool.arguments
    }
    assert constants == {"kind": ["all"], "id": []}


def test_a_tasks_own_values_are_left_out_while_learning() -> None:
    three = [calls(f"task-{at}", 0, {"kind": "all"}) for at in range(3)]
    sources = learned(three).finish()
    argument = sources.by_name["get_thing"].arguments[0]
    assert [constant.value for constant in sources.constants(argument)] == ["all"]
    assert sources.constants(argument, without="task-0") == ()
    assert len(sources.constants(argument, without="another")) == 1


def test_slots_are_found_where_the_values_stand() -> None:
    learner = learned(parcels.sessions(0, 20))
    order = learner.finish().by_name["track_parcel"]
    best = {argument.name: argument.slots[0].name for argument in order.arguments}
    assert best["parcel_id"] == "out:get_order:.parcel.id"
    assert best["carrier"] == "out:get_order:.parcel.carrier"


@pytest.mark.parametrize(
    ("name", "description", "effect"),
    [
        ("get_order_details", "Get the status and details of an order.", "read"),
        ("list_comments", "", "read"),
        ("findUserByEmail", "", "read"),
        ("GET_v3_orders_id", "", "read"),
        ("email.search_emails", "Searches for emails matching the query.", "read"),
        ("check_balance", "Does not modify the account. Returns the balance.", "read"),
        ("get_or_create_user", "", "write"),
        ("find_and_replace", "", "write"),
        ("check_in_guest", "Marks a guest as arrived.", "write"),
        ("checkout", "", "write"),
        ("list_item_for_sale", "Creates an offer.", "write"),
        ("cancel_pending_order", "", "write"),
        ("POST_v3_orders", "", "write"),
        ("calculate", "Calculate the result of an expression.", "write"),
        ("frobnicate", "", "write"),
        ("", "", "write"),
        ("think", "Use the tool to think about something.", "think"),
    ],
)
def test_what_cannot_be_told_is_a_write(name: str, description: str, effect: str) -> None:
    guessed, why = guess_effect(ToolSpec(name, description))
    assert guessed == effect, why
    assert why


def test_a_declaration_wins() -> None:
    assert guess_effect(ToolSpec("get_order", effect="write")) == ("write", "declared")
    assert guess_effect(ToolSpec("delete_all", effect="read")) == ("read", "declared")


def test_repeats_are_pairs_of_runs_that_agree() -> None:
    runs = [calls("t", run, {"id": "a" if run < 3 else "b"}) for run in range(4)]
    found = repeats([*runs, calls("alone", 0, {"id": "x"})])
    assert found.repeat_rate == pytest.approx(3 / 6)  # three of the six pairs
    assert found.modal_share == pytest.approx(0.75)
    assert (found.calls, found.tasks) == (4, 1)
    assert repeats([calls("alone", 0, {"id": "x"})]).repeat_rate is None


def test_an_empty_context_has_no_values() -> None:
    assert Context().distinct("out:any") == set()
