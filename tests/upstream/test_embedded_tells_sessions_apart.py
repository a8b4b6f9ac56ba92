"""Whose a request is, for the embedded engine."""

import itertools
import json
from typing import Any

import pytest
from multidict import CIMultiDict

from reflexarc.upstream.embedded import engine_headers
from reflexarc.upstream.embedded.owners import SESSION_HEADERS, Owner, owner_of
from reflexarc.upstream.embedded.request import read_request

KEY = b"k" * 32
START = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}]
MORE = [{"role": "assistant", "content": "Hi."}, {"role": "user", "content": "And now?"}]
TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}


def who(headers: dict[str, str] | None = None, **fields: Any) -> Owner:
    request = read_request(json.dumps({"model": "m", "messages": START, **fields}).encode())
    return owner_of(CIMultiDict(headers or {}), request, KEY)


@pytest.mark.parametrize("name", SESSION_HEADERS)
def test_a_header_names_the_session(name: str) -> None:
    named = who({name.title(): "one"})
    assert named == who({name: "one"}, messages=[{"role": "user", "content": "Other"}])
    assert named != who({name: "two"})
    assert named != who()


def test_of_several_headers_the_first_counts_and_before_the_cache_key() -> None:
    for first, second in itertools.pairwise(SESSION_HEADERS):
        assert who({second: "b", first: "a"}) == who({first: "a"}, prompt_cache_key="c")
    assert who(prompt_cache_key="c") == who(prompt_cache_key="c", messages=[*START, *MORE])
    assert who(prompt_cache_key="c") != who({SESSION_HEADERS[0]: "c"})


def test_without_a_name_it_is_how_the_conversation_begins() -> None:
    assert who() == who(messages=[*START, *MORE])
    others = [
        who(tools=[TOOL]),
        who(messages=[{"role": "system", "content": "Be long."}, START[1]]),
        who(messages=[START[0], {"role": "user", "content": "Hullo"}]),
        who(messages=[START[1]]),
    ]
    assert len({one.session for one in [who(), *others]}) == 5


@pytest.mark.parametrize("header", ["authorization", "api-key", "x-api-key", "x-goog-api-key"])
def test_sessions_of_one_name_are_as_many_as_there_are_keys(header: str) -> None:
    mine = who({header: "a", "x-session-id": "s"})
    other = who({header: "b", "x-session-id": "s"})
    assert mine.tenant != other.tenant
    assert mine.session != other.session


def test_who_names_another_tenant_gets_none_of_its_sessions() -> None:
    named = dict(engine_headers("acme", "s"))
    assert who(named) == who(named)
    assert who(named).tenant != who(dict(engine_headers("other", "s"))).tenant
    assert who({**named, "authorization": "Bearer x"}).tenant != who(named).tenant
    assert who(dict(engine_headers("acme", None))).tenant == who(named).tenant


def test_names_that_run_together_are_different_ones() -> None:
    one = who({"authorization": "ab", "x-reflexarc-tenant": "c"})
    assert one.tenant != who({"authorization": "a", "x-reflexarc-tenant": "bc"}).tenant
