"""`from reflexarc import Reflex`: chat objects in, a decision out; faults name their place."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
import pytest

import reflexarc
from reflexarc.reflex import Context, Decision, Reflex
from reflexarc.steps import Message, ToolSpec
from reflexarc.steps.errors import RequestError
from tests.reflex import parcels


def chat_message(message: Message) -> dict[str, Any]:
    shown: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        shown["tool_calls"] = [
            {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.raw}}
            for c in message.tool_calls
        ]
    if message.tool_call_id:
        shown["tool_call_id"] = message.tool_call_id
    return shown


def chat_tool(tool: ToolSpec) -> dict[str, Any]:
    function = {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
    }
    return {"type": "function", "function": function}


TOOLS = [chat_tool(tool) for tool in parcels.TOOLS]


def conversation(task: int, length: int) -> list[dict[str, Any]]:
    return [chat_message(message) for message in parcels.session(task).messages[:length]]


def test_the_package_alone_loads_nothing_and_gives_a_reflex_when_asked() -> None:
    program = (
        "import sys, reflexarc\n"
        "assert not {'numpy', 'msgspec', 'reflexarc.reflex'} & set(sys.modules)\n"
        "from reflexarc import Reflex, Decision, Context, learn\n"
        "assert Reflex.__module__ == 'reflexarc.reflex.reflex'\n"
        "assert 'lightgbm' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_package_says_what_it_has() -> None:
    assert {"Reflex", "Decision", "Context", "__version__"} <= set(dir(reflexarc))
    assert reflexarc.Reflex is Reflex
    with pytest.raises(AttributeError, match="has no attribute 'Reflexes'"):
        _ = reflexarc.Reflexes  # pyright: ignore[reportAttributeAccessIssue] - it is not there


def test_chat_objects_and_structs_give_the_same_decision(parcel_reflex: Reflex) -> None:
    session = parcels.session(5000)
    for length in range(2, len(session.messages)):
        of_structs = parcel_reflex.decide(session.messages[:length], parcels.TOOLS)
        of_objects = parcel_reflex.decide(conversation(5000, length), TOOLS)
        mixed = [*session.messages[:1], *conversation(5000, length)[1:]]
        assert of_objects == of_structs == parcel_reflex.decide(mixed, tuple(TOOLS))


def test_a_decision_says_what_may_be_called(parcel_reflex: Reflex) -> None:
    acted = parcel_reflex.decide(conversation(5000, 2), TOOLS)
    assert acted.acts
    assert acted.tool == "get_order"
    assert acted.arguments == parcels.session(5000).messages[2].tool_calls[0].arguments
    escalated = parcel_reflex.decide(conversation(5000, 2), TOOLS, model="another")
    assert (escalated.acts, escalated.tool, escalated.arguments) == (False, None, {})
    assert escalated.reason == "model_changed"


def test_a_kept_context_decides_as_a_fresh_one(parcel_reflex: Reflex) -> None:
    whole = conversation(5001, len(parcels.session(5001).messages))
    kept = parcel_reflex.context()
    for length in range(1, len(whole)):
        kept.extend(whole[length - 1 : length])
        decided = parcel_reflex.decide(kept, TOOLS)
        assert decided == parcel_reflex.decide(whole[:length], TOOLS)


def test_a_call_that_does_not_fit_its_schema_is_not_made(parcel_reflex: Reflex) -> None:
    reflex = parcel_reflex
    tools = [*parcels.TOOLS]
    before = reflex.decide(conversation(5000, 2), tools)
    assert before.acts
    # The same identity with another schema cannot be learned: what was learned is changed instead.
    narrow = {**tools[0].parameters, "additionalProperties": False, "maxProperties": 0}
    tools[0] = ToolSpec(tools[0].name, tools[0].description, narrow)
    schemas = {**reflex.identity.schemas, tools[0].name: (tools[0].schema_hash,)}
    narrowed = Reflex.from_bytes(reflex.to_bytes())
    narrowed.identity = msgspec.structs.replace(reflex.identity, schemas=schemas)
    decided = narrowed.decide(conversation(5000, 2), tools)
    assert (decided.action, decided.reason, decided.guarantee) == ("escalate", "schema:/", None)


@pytest.mark.parametrize(
    ("messages", "tools", "param"),
    [
        ("Hello", TOOLS, "messages"),
        ({"role": "user", "content": "Hello"}, TOOLS, "messages"),
        (["Hello"], TOOLS, "messages[0]"),
        ([{"content": "Hello"}], TOOLS, "messages[0].role"),
        ([{"role": "user", "content": 7}], TOOLS, "messages[0].content"),
        (
            [{"role": "user", "content": "a"}, {"role": "assistant", "tool_calls": [{"id": "x"}]}],
            TOOLS,
            "messages[1].tool_calls[0].function",
        ),
        ([], "get_order", "tools"),
        ([], {"type": "function"}, "tools"),
        ([], [{"type": "function"}], "tools[0].function"),
        ([], [{"type": "function", "function": {"name": ""}}], "tools[0].function.name"),
        ([], [7], "tools[0]"),
    ],
)
def test_a_wrong_shape_is_named_by_its_path(
    parcel_reflex: Reflex, messages: Any, tools: Any, param: str
) -> None:
    with pytest.raises(RequestError) as raised:
        parcel_reflex.decide(messages, tools)
    assert raised.value.param == param


def test_a_wrong_message_leaves_a_context_as_it_was(parcel_reflex: Reflex) -> None:
    kept = parcel_reflex.context()
    kept.extend(conversation(5002, 2))
    with pytest.raises(RequestError) as raised:
        kept.extend([{"role": "user", "content": "Well?"}, {"role": "nobody"}])
    assert raised.value.param == "messages[3].role"
    assert kept.length == 2
    assert parcel_reflex.decide(kept, TOOLS) == parcel_reflex.decide(conversation(5002, 2), TOOLS)


def test_hosted_tools_escalate(parcel_reflex: Reflex) -> None:
    decided = parcel_reflex.decide(conversation(5000, 2), [*TOOLS, {"type": "web_search"}])
    assert (decided.action, decided.reason) == ("escalate", "tool_type:web_search")


def test_one_reflex_serves_many_threads(parcel_reflex: Reflex) -> None:
    """Each conversation has its own context; the reflex is shared."""

    def work(task: int) -> list[Decision]:
        whole = conversation(task, len(parcels.session(task).messages))
        context: Context = parcel_reflex.context()
        decided: list[Decision] = []
        for message in whole:
            context.extend([message])
            decided.append(parcel_reflex.decide(context, TOOLS))
        return decided

    tasks = list(range(6000, 6032))
    alone = [work(task) for task in tasks]
    with ThreadPoolExecutor(8) as threads:
        together = list(threads.map(work, tasks))
    assert together == alone
