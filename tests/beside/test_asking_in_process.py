"""System 1 in process keeps the gateway's rules, obeys the switch and fails open."""

import logging
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from reflexarc.beside.asking import Asked, System1
from reflexarc.lifecycle.off import entry_of, switch_off, switch_on
from reflexarc.reflex import Reflex
from tests.reflex import parcels
from tests.reflex.test_in_process import TOOLS, conversation


def request(task: int = 5000, length: int = 2, **more: Any) -> dict[str, Any]:
    return {
        "model": "parcel-model",
        "messages": conversation(task, length),
        "tools": TOOLS,
        **more,
    }


@pytest.fixture
def system1(parcel_reflex: Reflex, tmp_path: Path) -> System1:
    return System1(parcel_reflex, state=tmp_path)


def test_a_certified_read_is_a_call_with_everything_a_turn_needs(system1: System1) -> None:
    asked = system1.ask(request())
    wanted = parcels.session(5000).messages[2].tool_calls[0]
    assert (asked.action, asked.tool, asked.arguments) == ("act", wanted.name, wanted.arguments)
    assert asked.call_id.startswith("call_s1")
    assert asked.max_error == 0.1


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"tool_choice": "required"}, "field:tool_choice"),
        ({"response_format": {"type": "json_schema"}}, "field:response_format"),
        ({"n": 2}, "field:n"),
        ({"logprobs": True}, "field:logprobs"),
        ({"invented": 1}, "field:invented"),
        ({"tools": []}, "no_tools"),
        ({"tools": [*TOOLS, {"type": "web_search"}]}, "tool_type:web_search"),
        ({"messages": []}, "field:messages"),
        ({"messages": [{"role": "nobody"}]}, "field:messages"),
        ({"messages": "Hello"}, "malformed_body"),
        ({"messages": [{"role": "user", "content": object()}]}, "malformed_body"),
        ({"model": "another"}, "model_changed"),
    ],
)
def test_what_the_gateway_would_not_answer_escalates(
    system1: System1, more: dict[str, Any], reason: str
) -> None:
    asked = system1.ask(request(**more))
    assert (asked.action, asked.reason, asked.call_id) == ("escalate", reason, "")


def test_writes_never_act(system1: System1) -> None:
    session = parcels.session(5003)
    for length in range(2, len(session.messages)):
        asked = system1.ask(request(5003, length))
        assert asked.tool in ("get_order", "track_parcel") or not asked.acts


def test_a_tighter_bound_is_kept(parcel_reflex: Reflex, tmp_path: Path) -> None:
    tight = System1(parcel_reflex, max_error=0.0005, state=tmp_path)
    assert tight.ask(request()).reason == "no_certificate"


def test_off_is_off(parcel_reflex: Reflex, tmp_path: Path) -> None:
    seconds = [0.0]
    watched = System1(parcel_reflex, state=tmp_path, clock_s=lambda: seconds[0])
    assert watched.ask(request()).acts
    for what, name, reason in (("all", "", "off:switch"), ("tool", "get_order", "off:tool")):
        switch_off(tmp_path, entry_of(what, name, 0.0, "me", "trying"))  # pyright: ignore[reportArgumentType] - literals of a table
        seconds[0] += 1.0
        asked = watched.ask(request())
        assert (asked.action, asked.reason, asked.tool) == ("escalate", reason, "get_order")
        switch_on(tmp_path, "all", "", 0.0)
        seconds[0] += 1.0
        assert watched.ask(request()).acts
    (tmp_path / "off.json").write_text("{")
    seconds[0] += 1.0
    assert watched.ask(request()).reason == "off:switch"
    switch_on(tmp_path, "all", "", 0.0)
    seconds[0] += 1.0
    watched.acting = False
    assert watched.ask(request()).reason == "off:beside"


def test_a_reflex_that_raises_escalates_and_nothing_of_the_conversation_is_logged(
    parcel_reflex: Reflex, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(Reflex):
        def decide(self, context: Any, tools: Any, **options: Any) -> Any:
            raise RuntimeError(f"a secret of {context}, {tools}, {options}")

    broken = Broken.from_bytes(parcel_reflex.to_bytes())
    with caplog.at_level(logging.ERROR, "reflexarc.beside"):
        asked = System1(broken, state=tmp_path).ask(request())
    assert (asked.action, asked.reason) == ("escalate", "system1_error")
    assert "RuntimeError" in caplog.text
    assert "secret" not in caplog.text


def test_many_threads_ask_one_system_1(system1: System1) -> None:
    asking = [request(task) for task in range(7000, 7040)]
    alone = [_shown(system1.ask(one)) for one in asking]
    with ThreadPoolExecutor(8) as threads:
        assert [_shown(a) for a in threads.map(system1.ask, asking)] == alone
    assert sum(action == "act" for action, *_ in alone) > 30


def _shown(asked: Asked) -> tuple[str, str, str, str]:
    return asked.action, asked.reason, asked.call_id, asked.text


def test_a_declared_write_is_not_made(system1: System1) -> None:
    tools = [{**TOOLS[0], "x-reflexarc-effect": "write"}, *TOOLS[1:]]
    assert system1.ask(request(tools=tools)).reason == "side_effect"


def test_the_package_needs_no_framework() -> None:
    program = (
        "import sys, reflexarc.beside.asking\n"
        "print({'pydantic_ai', 'agents', 'openai', 'uvicorn', 'aiohttp'} & set(sys.modules))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.stdout.strip(), done.stderr) == ("set()", "")
