"""What the embedded engine takes of a chat request, and what it refuses."""

import json
from typing import Any

import pytest

from reflexarc.steps.errors import InputError, MalformedError, RequestError
from reflexarc.upstream.embedded.request import UnsupportedError, read_request

HELLO = [{"role": "user", "content": "Hello"}]
TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}
    for name in ("one", "two")
]


def read(**fields: Any) -> Any:
    return read_request(json.dumps({"model": "m", "messages": HELLO, **fields}).encode())


def test_without_tools_the_answer_is_words() -> None:
    assert (read().choice, read().offered) == ("none", ())
    assert read(tools=[], tool_choice="auto").choice == "none"


@pytest.mark.parametrize(
    ("given", "choice", "offered"),
    [
        (None, "auto", ["one", "two"]),
        ("auto", "auto", ["one", "two"]),
        ("required", "required", ["one", "two"]),
        ("none", "none", []),
        ({"type": "function", "function": {"name": "two"}}, "required", ["two"]),
    ],
)
def test_tool_choice_says_what_may_be_called(given: Any, choice: str, offered: list[str]) -> None:
    request = read(tools=TOOLS, tool_choice=given)
    assert request.choice == choice
    assert [tool.name for tool in request.offered] == offered
    assert [tool.name for tool in request.tools] == ["one", "two"]


@pytest.mark.parametrize(
    "fields",
    [
        {"tool_choice": "required"},
        {"tools": TOOLS, "tool_choice": "sometimes"},
        {"tools": TOOLS, "tool_choice": {"type": "function", "function": {"name": "three"}}},
        {"tools": [TOOLS[0], TOOLS[0]]},
        {"tools": [{"type": "web_search"}]},
        {"messages": []},
        {"messages": ["hello"]},
        {"max_tokens": 0},
        {"temperature": 3},
        {"temperature": "hot"},
        {"stop": ["a", "b", "c", "d", "e"]},
        {"stop": [""]},
        {"response_format": {"type": "grammar"}},
    ],
)
def test_what_does_not_fit_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(RequestError):
        read(**fields)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("n", 2),
        ("logprobs", True),
        ("top_logprobs", 3),
        ("logit_bias", {"5": 1}),
        ("modalities", ["text", "audio"]),
        ("audio", {"voice": "alloy"}),
        ("functions", [{"name": "f"}]),
        ("function_call", "auto"),
        ("web_search_options", {}),
    ],
)
def test_what_it_cannot_do_is_refused_by_name(field: str, value: Any) -> None:
    with pytest.raises(UnsupportedError, match=field) as refused:
        read(**{field: value})
    assert (refused.value.status, refused.value.param) == (400, field)


def test_pictures_are_refused() -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:,"}}
    with pytest.raises(UnsupportedError, match="text only"):
        read(messages=[{"role": "user", "content": [picture]}])


def test_what_changes_no_answer_is_passed_over() -> None:
    request = read(
        n=1, user="u", metadata={}, store=False, parallel_tool_calls=True, of_tomorrow=[1]
    )
    assert request.sampling == {"temperature": 0.0}


def test_limits_and_sampling_are_taken() -> None:
    request = read(
        max_completion_tokens=7, max_tokens=9, top_p=0.5, seed=-1, temperature=1, stop="X"
    )
    assert (request.max_tokens, request.stop) == (7, ("X",))
    assert request.sampling == {"temperature": 1.0, "top_p": 0.5, "seed": 2**32 - 1}


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'{"messages": 1}', b'{"model":"m"}', b"\xff"])
def test_odd_bodies_are_the_callers_errors(body: bytes) -> None:
    with pytest.raises(InputError):
        read_request(body)


def test_a_key_given_twice_is_refused() -> None:
    with pytest.raises(MalformedError, match="twice"):
        read_request(b'{"model":"m","model":"n","messages":[]}')
