"""Whatever a provider sends, its stream is read to one end, and clients get it told in order."""

from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from reflexarc.steps.errors import RequestError
from reflexarc.wire.assembling import BrokenOffError
from reflexarc.wire.dialect import Where
from reflexarc.wire.dialects.gemini import DIALECT
from reflexarc.wire.replies import Began, Ended, Failed, PartBegan, PartEnded, Reply
from tests.wire.dialects.gemini_answers import assembled, chunk, events, sse, written

_names = st.sampled_from(
    [
        "args",
        "blockReason",
        "candidates",
        "content",
        "data",
        "error",
        "finishReason",
        "functionCall",
        "functionResponse",
        "groundingMetadata",
        "id",
        "index",
        "inlineData",
        "jsonPath",
        "name",
        "partialArgs",
        "parts",
        "promptFeedback",
        "promptTokenCount",
        "responseId",
        "stringValue",
        "text",
        "thought",
        "thoughtSignature",
        "usageMetadata",
        "willContinue",
        "function_call",
        "unheard",
    ]
)
_plain = st.sampled_from(
    [None, True, False, 0, 7, -1, 1.5, "", "a", "STOP", "$.a", "$.a[0]", "$.b.c"]
)
_any = st.recursive(
    _plain,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_names, inner, max_size=4),
    max_leaves=12,
)
_parts = st.dictionaries(_names, _any, max_size=3) | st.builds(
    lambda inner, more: {"functionCall": inner, **more},
    st.dictionaries(_names, _any, max_size=4),
    st.dictionaries(_names, _any, max_size=1),
)
_chunks = _any | st.builds(
    lambda parts, more: {"candidates": [{"content": {"parts": parts}, **more}]},
    st.lists(_parts, max_size=3),
    st.dictionaries(_names, _any, max_size=2),
)


@given(st.lists(_chunks, max_size=4), st.booleans())
def test_any_chunks_are_read_to_one_end_and_told_in_order(given_: list[Any], ends: bool) -> None:
    found = events(sse(*given_, *([chunk(reason="STOP")] if ends else [])))
    assert [isinstance(event, Ended | Failed) for event in found].count(True) == 1
    assert isinstance(found[-1], Ended | Failed)
    assert sum(isinstance(event, Began) for event in found) <= 1
    begun = [event.at for event in found if isinstance(event, PartBegan)]
    assert begun == list(range(len(begun)))
    if isinstance(found[-1], Ended):
        assert {event.at for event in found if isinstance(event, PartEnded)} == set(begun)
        assembled(found)
    written(found)


@given(_chunks)
def test_any_body_is_an_answer_or_is_told_to_be_broken(value: Any) -> None:
    if not isinstance(value, dict):
        return
    try:
        reply = DIALECT.read_reply(value)
    except BrokenOffError as error:
        told: Any = error.fault
    else:
        told = reply
    assert told.origin == "gemini" if isinstance(told, Reply) else told.status >= 400


@given(_any, _any)
def test_any_request_is_read_or_refused(head: Any, content: Any) -> None:
    reads: list[Callable[[], object]] = [
        lambda: DIALECT.read_head({"generationConfig": head, "tools": content}, Where("m")),
        lambda: DIALECT.read_head({"systemInstruction": head, "toolConfig": content}, Where("m")),
        lambda: DIALECT.read_message({"role": "model", "parts": head}, "contents[0]"),
        lambda: DIALECT.read_message(content, "contents[0]"),
    ]
    assert all(_refusal(read) != "" for read in reads)


def _refusal(read: Callable[[], object]) -> str | None:
    """The path of what was refused, None where nothing was."""
    try:
        read()
    except RequestError as error:
        return error.param or ""
    return None
