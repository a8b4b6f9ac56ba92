"""Calls with nested and composed arguments: taken apart, learned, put together, made."""

import copy
import json
import string
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from reflexarc.provenance.parts import delimiter, names_one, text_parts
from reflexarc.reflex import Reflex, learn
from reflexarc.reflex.artifact import pack, unpack
from reflexarc.reflex.context import Context
from reflexarc.reflex.fit import fit_predictor
from reflexarc.reflex.form_learning import FormLearner
from reflexarc.reflex.forms import MAX_LEAVES, Form, FormIndex, Leaf, fill, leaves_of
from reflexarc.reflex.predictor import Predictor
from reflexarc.reflex.private import Private
from reflexarc.reflex.replay import replay
from reflexarc.steps import Message, ToolCall, call_key
from reflexarc.steps.errors import ArtifactCorruptError
from tests.reflex import loans

LEARNED = loans.sessions(0, 36)
NEW = loans.sessions(500, 12)
TEXTS = some.text(alphabet=string.ascii_letters + string.digits + "/?&=:. -_", max_size=60)
SCALARS = some.one_of(TEXTS, some.integers(-5, 5), some.booleans(), some.none())
ARGUMENTS = some.dictionaries(
    some.sampled_from("abcde"),
    some.recursive(
        SCALARS | some.lists(SCALARS, max_size=3),
        lambda inner: some.dictionaries(some.sampled_from("xyz"), inner, max_size=3),
        max_leaves=8,
    ),
    max_size=4,
)


@pytest.fixture(scope="module")
def predictor() -> Predictor:
    return fit_predictor(LEARNED, (), Private(LEARNED))


@pytest.fixture(scope="module")
def reflex() -> Reflex:
    return learn(LEARNED)


def test_new_requests_are_put_together_exactly(predictor: Predictor) -> None:
    """Ids and tokens nobody has seen, in paths, queries, headers and bodies."""
    right = calls = 0
    for session in NEW:
        for context, item in replay(session):
            if item.recorded is None:
                continue
            ranking = predictor.rank(context, {"http_request"})
            calls += 1
            right += ranking.calls[0].key == item.recorded.key
    assert calls == 3 * len(NEW) + 8
    assert right / calls >= 0.95


def test_without_its_forms_the_same_predictor_would_be_wrong(predictor: Predictor) -> None:
    plain = msgspec.structs.replace(predictor.sources.tools[0], forms=(), holes=(), moves=())
    bare = Predictor(
        type(predictor.sources)((plain,)), predictor.vocabulary, predictor.tool_forest,
        predictor.argument_forest, predictor.choice, predictor.cues, predictor.form_forest,
    )  # fmt: skip
    right = 0
    for session in NEW:
        for context, item in replay(session):
            if item.recorded is not None and item.step > 0:
                calls = bare.rank(context, {"http_request"}).calls
                right += bool(calls) and calls[0].key == item.recorded.key
    assert right == 0


def test_where_each_value_came_from_is_told(predictor: Predictor) -> None:
    session = NEW[1]
    context = Context()
    context.extend(session.messages[:6])
    best = predictor.rank(context, {"http_request"}).calls[0]
    assert best.form >= 0
    token = best.chosen["headers.Authorization~Bearer"]
    assert "out:http_request:.body~json.access" in {entry.slot for entry in token.entries}
    instrument = best.chosen["url~id"]
    assert "out:http_request:.body~json.instrument" in {entry.slot for entry in instrument.entries}


def test_no_value_of_a_task_stands_in_a_form(predictor: Predictor) -> None:
    """Each task's ids and token are of this task alone; so is a word planted in two tasks."""
    planted = [_with_body(session, {"note": "quibbled"}) for session in LEARNED[:2]]
    learned = fit_predictor([*planted, *LEARNED[2:]], (), Private(LEARNED))
    for one in (predictor, learned):
        text = msgspec.json.encode(one.sources.tools).decode()
        assert "quibbled" not in text
        for session in LEARNED:
            for message in session.messages:
                for call in message.tool_calls:
                    for value in _own_values(call):
                        assert value not in text


def test_texts_that_would_not_be_taken_apart_again_are_holes_as_a_whole() -> None:
    """A day that a name adjoins, a credential with delimiters: what is learned can be loaded."""
    sessions = [
        _with_header(session, "Authorization", f"Basic {at}x/y{at}==")
        for at, session in enumerate(LEARNED)
    ]
    sessions = [
        _with_body(session, {"file": f"logs/2027-03-{at % 28 + 1:02d}.csv"})
        for at, session in enumerate(sessions)
    ]
    learned = learn(sessions)
    assert Reflex.from_bytes(learned.to_bytes()).to_bytes() == learned.to_bytes()
    leaves = {
        leaf.path: leaf
        for form in learned.members[0].predictor.sources.tools[0].forms
        for leaf in form.leaves
    }
    assert leaves["body", "file"].parts == (None,)
    assert leaves["headers", "Authorization"].parts == (None,)
    assert leaves["method",].value in ("GET", "POST")


def test_what_three_tasks_say_is_kept_unless_it_is_secret() -> None:
    sessions = [_with_body(session, {"note": "gentle"}) for session in LEARNED[:4]]
    sessions = [_with_header(session, "X-Api-Key", "kk-same-for-all-77") for session in sessions]
    learner = FormLearner(Private(sessions))
    for session in sessions:
        for message in session.messages:
            for call in message.tool_calls:
                learner.observe(call, session.task)
    forms = learner.finish()["http_request"].forms
    text = msgspec.json.encode(forms).decode()
    assert "gentle" in text
    assert "kk-same-for-all-77" not in text


@settings(max_examples=200, deadline=None)
@given(TEXTS)
def test_parts_join_to_the_text(text: str) -> None:
    assert "".join(text_parts(text)) == text
    assert len(text_parts(text)) <= 60


def test_parts_of_a_long_text_are_the_text() -> None:
    long = "a/1" * 200
    assert text_parts(long) == [long]


def test_which_parts_name_one_thing() -> None:
    assert text_parts("https://a.example:80/v2/orders/ord-7?since=2024-05-01T10:00:00Z") == [
        "https://a.example:80", "/", "v2", "/", "orders", "/", "ord-7", "?", "since", "=",
        "2024-05-01T10:00:00Z",
    ]  # fmt: skip
    assert names_one("ord-7")
    assert not names_one("v2")
    assert not names_one("https://a.example:80")
    assert not names_one("orders")
    assert delimiter("/")
    assert not delimiter("a")


@settings(max_examples=200, deadline=None)
@given(ARGUMENTS)
def test_a_call_put_together_is_the_call_that_was_taken_apart(arguments: dict[str, Any]) -> None:
    found = leaves_of(arguments)
    if not found:
        return
    leaves = tuple(_opened(path, value) for path, value in found)
    index = FormIndex([Form(leaves, (), 0, 0)])
    apart = index.find(arguments)
    assert apart is not None
    assert call_key("t", fill(leaves, apart[1])) == call_key("t", arguments)


def test_true_is_not_one_in_a_form() -> None:
    index = FormIndex([Form((Leaf(("a",), (), True),), (), 0, 0)])
    assert index.find({"a": True}) is not None
    assert index.find({"a": 1}) is None


def test_a_call_too_wide_or_too_deep_has_no_form() -> None:
    assert leaves_of({f"k{at}": 1 for at in range(MAX_LEAVES)}) is not None
    assert leaves_of({f"k{at}": 1 for at in range(MAX_LEAVES + 1)}) is None
    deep: dict[str, Any] = {"a": 1}
    for _ in range(40):
        deep = {"a": deep}
    assert leaves_of(deep) is None


Edit = Callable[[dict[str, Any]], object]
EDITS: dict[str, Edit] = {
    "a hole that is not there": lambda tool: _form(tool)["holes"].__setitem__(0, 10**6),
    "a hole too many": lambda tool: _form(tool)["holes"].append(0),
    "a leaf twice": lambda tool: _form(tool)["leaves"].append(_form(tool)["leaves"][-1]),
    "leaves not sorted": lambda tool: _form(tool)["leaves"].reverse(),
    "a leaf without a path": lambda tool: _form(tool)["leaves"][0].update(path=[]),
    "a leaf within a leaf": lambda tool: _form(tool)["leaves"].insert(
        0, {"path": ["headers"], "parts": [], "value": 1}
    ),
    "parts that do not compose": lambda tool: _form(tool)["leaves"][-1].update(
        parts=["https", "://", None]
    ),
    "a text longer than any that is learned": lambda tool: _literal(tool).update(value="x" * 201),
    "an object for one value": lambda tool: _literal(tool).update(value={"x": 1}),
    "a hole that may be left out": lambda tool: [
        hole.update(absent_share=0.5) for hole in tool["holes"]
    ],
    "a hole of another kind": lambda tool: [hole.update(kind="integer") for hole in tool["holes"]],
    "a hole of another tool": lambda tool: tool["holes"][0].update(tool="another"),
    "a move to nowhere": lambda tool: tool["moves"][0].update(forms=[[10**6, 1]]),
    "a move never made": lambda tool: tool["moves"][0].update(forms=[[0, 0]]),
    "a move after no hash": lambda tool: tool["moves"][0].update(key=-1),
    "holes without forms": lambda tool: tool.update(forms=[]),
    "many forms": lambda tool: tool.update(forms=tool["forms"] * 200),
}


def _form(tool: Mapping[str, Any]) -> dict[str, Any]:
    return next(form for form in tool["forms"] if len(form["holes"]) > 1)


def _literal(tool: Mapping[str, Any]) -> dict[str, Any]:
    return next(leaf for leaf in _form(tool)["leaves"] if not leaf["parts"])


@pytest.mark.parametrize("name", EDITS)
def test_forms_that_learn_never_wrote_are_refused(reflex: Reflex, name: str) -> None:
    header, arrays = unpack(reflex.to_bytes())
    header = copy.deepcopy(header)
    EDITS[name](header["members"][0]["tools"][0])
    with pytest.raises(ArtifactCorruptError):
        Reflex.from_bytes(pack(header, arrays))


def test_a_saved_reflex_ranks_as_before(reflex: Reflex) -> None:
    loaded = Reflex.from_bytes(reflex.to_bytes())
    assert loaded.to_bytes() == reflex.to_bytes()
    for end in (2, 4, 6):
        context, other = Context(), Context()
        context.extend(NEW[0].messages[:end])
        other.extend(NEW[0].messages[:end])
        one = reflex.rank(context, {"http_request"}).calls
        two = loaded.rank(other, {"http_request"}).calls
        assert [(call.key, call.joint) for call in one] == [(call.key, call.joint) for call in two]


def _opened(path: tuple[str, ...], value: Any) -> Leaf:
    """A leaf with every part that is no delimiter made a hole, every other leaf one hole."""
    if not isinstance(value, str):
        return Leaf(path, (None,))
    parts = tuple(part if delimiter(part) else None for part in text_parts(value))
    return Leaf(path, parts) if None in parts and len(parts) > 1 else Leaf(path, (None,))


def _own_values(call: ToolCall) -> set[str]:
    """The parts of a call's texts that name one thing: ids and tokens."""
    found: set[str] = set()
    for _, value in leaves_of(call.arguments) or ():
        if isinstance(value, str):
            found |= {part for part in text_parts(value) if names_one(part)}
    return found


def _with_body(session: Any, more: dict[str, Any]) -> Any:
    return _changed(session, lambda one: one | {"body": one.get("body", {}) | more})


def _with_header(session: Any, name: str, value: str) -> Any:
    return _changed(session, lambda one: one | {"headers": one.get("headers", {}) | {name: value}})


def _changed(session: Any, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:
    messages: list[Message] = []
    for message in session.messages:
        calls = tuple(
            ToolCall(call.id, call.name, arguments, json.dumps(arguments))
            for call in message.tool_calls
            for arguments in (change(dict(call.arguments)),)
        )
        messages.append(msgspec.structs.replace(message, tool_calls=calls))
    return msgspec.structs.replace(session, messages=tuple(messages))
