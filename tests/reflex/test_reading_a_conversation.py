"""A context read message by message equals one read at once, and nothing odd makes it raise."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from reflexarc.reflex import Context, Reflex
from reflexarc.reflex.candidates import MAX_CANDIDATES, MAX_LISTS, coerce, enumerate_candidates
from reflexarc.reflex.replay import replay
from reflexarc.steps import Message, Session, ToolCall
from tests.reflex import parcels


def state(context: Context) -> Any:
    return (
        context.length,
        context.symbols,
        context.call_keys,
        sorted((entry.slot, entry.text) for entry in context.entries),
    )


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_any_division_into_appends_gives_the_same_context(data: st.DataObject) -> None:
    messages = parcels.session(data.draw(st.integers(0, 50)), noise=0.3).messages
    cuts = data.draw(st.lists(st.integers(0, len(messages)), max_size=6).map(sorted))
    pieces, whole = Context(), Context()
    for start, end in zip([0, *cuts], [*cuts, len(messages)], strict=True):
        pieces.extend(messages[start:end])
    whole.extend(messages)
    assert state(pieces) == state(whole)


def test_siblings_of_a_batch_are_seen_once_without_their_results() -> None:
    asked = [{"order_id": f"#W{at}"} for at in range(3)]
    calls = tuple(
        ToolCall(f"c{at}", "get_order", arguments, json.dumps(arguments))
        for at, arguments in enumerate(asked)
    )
    batch = Session(
        "s", "t", parcels.TOOLS,
        (
            Message("user", "Compare #W0, #W1 and #W2"),
            Message("assistant", "", calls),
            *(Message("tool", f'{{"at": {at}}}', (), f"c{at}") for at in range(3)),
            Message("assistant", "Done."),
        ),
    )  # fmt: skip
    seen = []
    for context, item in replay(batch):
        outputs = sum(symbol.startswith("O:") for symbol in context.symbols)
        seen.append((item.position, len(item.calls), len(context.call_keys), outputs))
    assert seen == [(0, 3, 0, 0), (1, 2, 1, 0), (2, 1, 2, 0), (0, 0, 3, 3)]


def containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    keyed = st.dictionaries(st.text(max_size=9), inner, max_size=5)
    return st.lists(inner, max_size=5) | keyed


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30),
    containers,
    max_leaves=20,
)
outputs = st.text(max_size=200) | values.map(json.dumps)
odd_messages = st.lists(
    st.builds(Message, st.sampled_from(["user", "system", "assistant", "tool"]), outputs)
    | st.builds(
        lambda name, arguments: Message(
            "assistant", "", (ToolCall("c", name, arguments, json.dumps(arguments)),)
        ),
        st.sampled_from(["get_order", "track_parcel", "", "no such tool"]),
        st.dictionaries(st.sampled_from(["order_id", "reason", "x"]), values, max_size=3),
    ),
    max_size=12,
)


@given(odd_messages)
@settings(max_examples=80, deadline=None)
def test_no_conversation_makes_a_decision_raise(
    parcel_reflex: Reflex, messages: list[Message]
) -> None:
    decision = parcel_reflex.decide(messages, parcels.TOOLS, alternatives=3)
    assert decision.action in ("act", "escalate")
    assert 0.0 <= decision.confidence <= 1.0


def test_deep_and_hostile_outputs_are_read_in_bounds() -> None:
    context = Context()
    deep = "[" * 5000 + "]" * 5000
    wide = json.dumps([{"id": f"X{at}", "n": at} for at in range(20_000)])
    endless = '{"a": 1e999, "b": NaN, "c": "\\ud800"}'
    context.extend([Message("user", "go")])
    for text in (deep, wide, endless, "\ud800" * 50, "x" * 2_000_000):
        context.extend([Message("tool", text, name="dump")])
    assert len(context.entries) < 10_000


def test_candidates_are_bounded(parcel_reflex: Reflex) -> None:
    crowd = " ".join(f"#W{at}" for at in range(1_000_000, 1_000_300))
    context = Context()
    for _ in range(40):
        context.extend([Message("user", crowd)])
    for tool in parcel_reflex.members[0].predictor.sources.tools:
        for argument in tool.arguments:
            found = enumerate_candidates(context, argument, argument.constants)
            single = argument.kind not in ("list", "objects", "object")
            most = MAX_CANDIDATES if single else MAX_LISTS
            assert len(found) <= most + len(argument.constants) + 1


def test_values_are_copied_in_the_kind_the_argument_takes() -> None:
    assert coerce("12", "integer") == (True, 12)
    assert coerce("$12.50", "number") == (True, 12.5)
    assert coerce(12, "string") == (True, "12")
    assert coerce(7.0, "integer") == (True, 7)
    assert coerce(7.5, "integer") == (False, None)
    assert coerce(float("inf"), "integer") == (False, None)
    assert coerce("²", "integer") == (False, None)
    assert coerce(True, "integer") == (False, None)
    assert coerce("true", "boolean") == (True, True)


def test_a_prompt_read_again_is_of_its_own_conversation() -> None:
    """What a prompt says is worked out once; where it stands is each conversation's own."""
    prompt = Message("system", 'Today is 2026-03-04. store: "North"\nregion: east')
    contexts = [Context(), Context()]
    contexts[1].extend([Message("system", "Be brief.")])
    for context in contexts:
        context.extend([prompt])
    first, second = (
        [entry for entry in context.entries if entry.slot.startswith("sys:")]
        for context in contexts
    )
    assert [(one.slot, one.value) for one in first] == [(one.slot, one.value) for one in second]
    assert {one.origin.message for one in first} == {0}
    assert {one.origin.message for one in second} == {1}
    assert contexts[0].prompt_lines == contexts[1].prompt_lines[-len(contexts[0].prompt_lines) :]
