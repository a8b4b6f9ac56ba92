"""Constants, effects and repeats: small rules with large consequences."""

import json

import pytest

from reflexarc.reflex import guess_effect, repeats
from reflexarc.reflex.context import Context
from reflexarc.reflex.learning import tool_effects
from reflexarc.reflex.private import Private
from reflexarc.reflex.replay import replay
from reflexarc.reflex.source_learning import SourceLearner
from reflexarc.steps import Message, Session, ToolCall, ToolSpec
from tests.reflex import parcels


def calls(task: str, run: int, *arguments: dict[str, str]) -> Session:
    messages = [Message("user", "go")]
    for at, argument in enumerate(arguments):
        call = ToolCall(f"c{at}", "get_thing", argument, json.dumps(argument))
        messages += [Message("assistant", "", (call,)), Message("tool", "ok", (), call.id)]
    return Session(f"{task}-{run}", task, (ToolSpec("get_thing"),), tuple(messages))


def learned(sessions: list[Session]) -> SourceLearner:
    learner = SourceLearner(Private(sessions))
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


READS = {
    "get_order_details": "Get the status and details of an order.",
    "get_user_details": "Get the details of a user, including their orders and refunds.",
    "find_user_id_by_name_zip": "Find user id by name and zip. Use find by email by default, and "
    "only call this function if the user is not found by email.",
    "list_comments": "",
    "findUserByEmail": "",
    "GET_v3_plans_id_confirm": "",
    "email.search_emails": "Searches for emails matching the query.\n\nParameters\n----------\n"
    "sort: creates an order by date.",
    "company_directory.find_email_address": "Finds the email address of an employee.",
    "mcp__github__list_issues": "List the issues of a repository.",
    "check_balance": "Does not modify the account. Returns the balance.",
    "track_parcel": "Look up where a parcel is.",
    "fetch_page": "Fetches a page without changing anything.",
    "get_tickets": "This tool belongs to a desk that lets users create, view and delete tickets. "
    "Tool description: Get all tickets created by the current user.",
    "search_direct_flight": "Search direct flights between two cities on a specific date.",
}
WRITES_BY_NAME = [
    "get_or_create_user",
    "find_and_replace",
    "check_in_guest",
    "check_out_book",
    "check_in",
    "check_into_hotel",
    "check_off_item",
    "checkout",
    "list_item_for_sale",
    "list_product_on_ebay",
    "list_append",
    "list_push",
    "list_pop",
    "list_archive",
    "track_event",
    "track_expense",
    "show_notification",
    "get_and_increment_counter",
    "getAndSet",
    "get_next_job",
    "get_token",
    "get_input_from_user",
    "fetch_and_lock",
    "fetch_and_import",
    "lookup_and_charge",
    "flight.search_and_purchase",
    "read_and_archive",
    "view_and_acknowledge",
    "diff_apply",
    "query",
    "sql_query",
    "query_mutation",
    "browse_click",
    "cat_to_file",
    "search_book_flight",
    "find_place_order",
    "find_run_job",
    "check_pay_bill",
    "fetch_transfer_funds",
    "view_start_instance",
    "get_schedule_meeting",
    "hotel_search_place_booking",
    "read_mark_all",
    "view_set_theme",
    "HassListCompleteItem",
    "HassMediaSearchAndPlay",
    "cancel_pending_order",
    "POST_v3_orders",
    "DELETE_v1_find_id",
    "post_search",
    "calculate",
    "frobnicate",
    "delete_thoughts",
    "post_thought",
    "mcp__github__create_issue",
]
WRITES_BY_DESCRIPTION = {
    "run_query": "Run any SQL on the database, including INSERT, UPDATE and DELETE.",
    "query": "Query the database. SELECT as well as UPDATE statements are allowed.",
    "fetch": "HTTP request with any method (GET, POST, PUT).",
    "get_user": "Gets a user. Creates the user if it does not exist.",
    "get_report": "Generates a report and emails it.",
    "find": "Not only finds the item but also deletes it.",
    "get_item": "Without further confirmation, purchases the item.",
    "search_and": "",
    "list_jobs": "Lists the waiting jobs and claims the first.",
}


@pytest.mark.parametrize("name", READS)
def test_what_only_looks_is_a_read(name: str) -> None:
    guessed, why = guess_effect(ToolSpec(name, READS[name]))
    assert guessed == "read", why


@pytest.mark.parametrize("name", [*WRITES_BY_NAME, ""])
def test_what_a_name_cannot_tell_is_a_write(name: str) -> None:
    guessed, why = guess_effect(ToolSpec(name))
    assert guessed == "write", why
    assert why


@pytest.mark.parametrize("name", WRITES_BY_DESCRIPTION)
def test_a_description_that_acts_makes_a_write(name: str) -> None:
    guessed, why = guess_effect(ToolSpec(name, WRITES_BY_DESCRIPTION[name]))
    assert guessed == "write", why


@pytest.mark.parametrize("name", ["think", "think_tool", "sequential_thinking", "scratchpad"])
def test_what_only_records_a_thought_thinks(name: str) -> None:
    assert guess_effect(ToolSpec(name, "Use the tool to think about something."))[0] == "think"


def test_the_strictest_of_several_schemas_counts() -> None:
    plain = calls("task-0", 0, {"kind": "all"})
    declared = Session("s", "task-1", (ToolSpec("get_thing", effect="write"),), plain.messages)
    reworded = Session("s", "task-1", (ToolSpec("get_thing", "Deletes a thing."),), plain.messages)
    assert tool_effects([plain], {})["get_thing"][0] == "read"
    for other in (declared, reworded):
        assert tool_effects([plain, plain, other], {})["get_thing"][0] == "write"
        assert tool_effects([other, plain], {"get_thing": "read"})["get_thing"][0] == "read"


def test_a_declaration_wins() -> None:
    assert guess_effect(ToolSpec("get_order", effect="write")) == ("write", "declared")
    assert guess_effect(ToolSpec("delete_all", effect="read")) == ("read", "declared")


def test_repeats_are_pairs_of_runs_that_agree() -> None:
    runs = [calls("t", run, {"id": "a" if run < 3 else "b"}) for run in range(4)]
    found = repeats([*runs, calls("alone", 0, {"id": "x"})])
    assert found.repeat_rate == pytest.approx(3 / 6)  # three of the six pairs
    assert found.modal_share == pytest.approx(0.75)
    assert found.modal_share_left_out == pytest.approx(0.75)  # 3 others say a, b has none
    assert (found.calls, found.tasks) == (4, 1)
    assert repeats([calls("alone", 0, {"id": "x"})]).repeat_rate is None


def test_an_empty_context_has_no_values() -> None:
    assert Context().distinct("out:any") == set()
