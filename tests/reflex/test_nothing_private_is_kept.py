"""What is personal, secret, or of fewer than three tasks stands in no artifact."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from reflexarc.provenance.words import shape
from reflexarc.reflex import Reflex, learn
from reflexarc.reflex.fit import fit_predictor
from reflexarc.reflex.private import Private
from reflexarc.reflex.scan import scan_patterns, scan_values
from reflexarc.reflex.sensitive import personal_field, sensitive
from reflexarc.steps import Message, Session, ToolCall, ToolSpec
from tests.reflex import parcels

PLANTED = {
    1: ("plonkish", "vera.moss@corp.test", "+1 415 555 0134", "sk-proj-Ab3dE6gH9jK2mN5pQ8s"),
    2: ("quibbled", "otto.lind@corp.test", "+49 30 5550 1234", "ghp_A1b2C3d4E5f6G7h8I9j0K1l2"),
    3: ("Zelda Quorn", "zelda@quorn.test", "4111 1111 1111 1111", "AKIA2E3R4T5Y6U7I8O9P"),
    60: ("Ignatz Pfeil", "i.pfeil@corp.test", "DE89 3704 0044 0532 0130 00", "Hunter2!secret"),
}
"""By the number of tasks it is planted in: a word or name, and what has a pattern."""


def planted(session: Session, secrets: tuple[str, str, str, str]) -> Session:
    """The secrets in the user's text, a prompt's line, results' fields and keys, an argument."""
    name, mail, number, key = secrets
    messages: list[Message] = []
    for message in session.messages:
        if message.role == "system":
            text = f"{message.content}\nThe caller is {name}, {mail}, password: {key}"
            message = msgspec.structs.replace(message, content=text)
        elif message.role == "user":
            text = f"{message.content} My name is {name}, {mail}, {number}, password: {key}"
            message = msgspec.structs.replace(message, content=text)
        elif message.role == "tool" and message.content.startswith("{"):
            fields: dict[str, Any] = json.loads(message.content)
            fields["customer"] = {"name": name, "email": mail, "phone": number}
            fields["by"] = {mail: {"status": name}, name: {"status": key}}
            fields["status_line"] = f"status: {mail}"
            message = msgspec.structs.replace(message, content=json.dumps(fields))
        calls = tuple(_with(call, {"token": key, "contact": mail}) for call in message.tool_calls)
        messages.append(msgspec.structs.replace(message, tool_calls=calls))
    return msgspec.structs.replace(session, messages=tuple(messages), model=f"model of {mail}")


def _with(call: ToolCall, more: dict[str, str]) -> ToolCall:
    arguments = {**call.arguments, **more}
    return ToolCall(call.id, call.name, arguments, json.dumps(arguments))


@pytest.fixture(scope="module")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Learned from 60 sessions, with each group of secrets planted in as many tasks as it says."""
    sessions: list[Session] = []
    at = 0
    groups = [(count, PLANTED[count]) for count in (1, 2, 3)]
    for count, secrets in groups:
        sessions += [planted(parcels.session(at + n), secrets) for n in range(count)]
        at += count
    sessions += [planted(parcels.session(at + n), PLANTED[60]) for n in range(60)]
    path = tmp_path_factory.mktemp("planted") / "agent.reflex"
    learn(sessions, max_error=0.1).save(path)
    return path


@pytest.mark.parametrize("tasks", PLANTED)
def test_planted_values_are_in_no_artifact(artifact: Path, tasks: int) -> None:
    assert scan_values(artifact, PLANTED[tasks]) == []


def test_nothing_in_an_artifact_has_a_sensitive_pattern(artifact: Path) -> None:
    assert scan_patterns(artifact) == []


def test_what_is_no_secret_is_still_learned(artifact: Path) -> None:
    reflex = Reflex.load(artifact)
    assert scan_values(artifact, ["refund_order", "lost"]), "the scan does find what is there"
    constants = {
        (argument.tool, argument.name): [constant.value for constant in argument.constants]
        for tool in reflex.members[0].predictor.sources.tools
        for argument in tool.arguments
    }
    assert constants["refund_order", "reason"] == ["lost"]
    assert constants["refund_order", "token"] == []
    assert constants["refund_order", "contact"] == []


@pytest.mark.parametrize("name", ["Иванов", "Ödön", "田中"])
def test_a_name_in_any_script_is_no_shape(name: str) -> None:
    """A shape names a slot: were letters kept in it, the artifact would hold the name."""
    tools = (ToolSpec("find_guest", "Finds a guest."),)

    def session(task: str, trial: int, guest: str) -> Session:
        call = ToolCall("c", "find_guest", {"guest": guest}, json.dumps({"guest": guest}))
        messages = (
            Message("user", f"{guest} ?"), Message("assistant", tool_calls=(call,)),
            Message("tool", f"room of {guest} {trial}", tool_call_id="c"),
        )  # fmt: skip
        return Session(f"{task}-{trial}", task, tools, messages)

    sessions = [session("one", trial, name) for trial in range(6)]
    sessions += [session(f"t{at}", 0, f"guest{at}") for at in range(12)]
    predictor = fit_predictor(sessions, (), Private(sessions))
    assert name not in msgspec.json.encode(predictor.sources.tools).decode()
    assert shape(name).strip("Aa") == ""


def test_a_model_that_may_not_be_named_lets_no_other_pass(artifact: Path) -> None:
    reflex = Reflex.load(artifact)
    messages = parcels.session(700).messages[:2]
    decision = reflex.decide(messages, parcels.TOOLS, model="another")
    assert decision.reason == "model_changed"


def test_a_tool_named_after_a_person_is_not_kept(tmp_path: Path) -> None:
    sessions = parcels.sessions(0, 40)
    extra = msgspec.structs.replace(parcels.TOOLS[0], name="mail_otto.lind@corp.test")
    rare = msgspec.structs.replace(parcels.TOOLS[0], name="find_plonkish")
    sessions = [msgspec.structs.replace(one, tools=(*one.tools, extra)) for one in sessions]
    sessions[0] = msgspec.structs.replace(sessions[0], tools=(*sessions[0].tools, rare))
    reflex = learn(sessions, max_error=0.1)
    reflex.save(tmp_path / "a.reflex")
    assert scan_values(tmp_path / "a.reflex", ["otto.lind", "plonkish"]) == []
    asked = reflex.decide(sessions[0].messages[:2], sessions[0].tools, model="parcel-model")
    assert asked.reason == "unseen_tools"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("write to ann@example.org today", "e-mail"),
        ("+44 20 7946 0958", "telephone or long number"),
        ("5500 0000 0000 0004", "payment card"),
        ("GB82 WEST 1234 5698 7654 32", "IBAN"),
        ("078-05-1120", "national id"),
        ("10.1.2.3", "IP address"),
        ("2001:db8:0:0:0:ff00:42:8329", "IP address"),
        ("xoxb-12345678-abcdef", "secret"),
        ("AIzaSyA1234567890abcdefghijklmnop", "secret"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc", "secret"),
        ("-----BEGIN RSA PRIVATE KEY-----", "secret"),
        ("Bearer abcdef123456789", "secret"),
        ("password=Hunter22", "password"),
        ("f47ac10b-58cc-4372-a567-0e02b2c3d479", "UUID"),
        ("1984-07-02", "date of birth"),
        ("742 Evergreen Terrace", "street address"),
        ("Hauptstraße 12", "street address"),
        ("9f8c2e71b04d5a6e3c1f", "random string"),
        (4155550134, "telephone or long number"),
        ({"email": "x"}, "personal field"),
        (["a", {"b": "ann@example.org"}], "e-mail"),
    ],
)
def test_sensitive_patterns_are_told(text: object, kind: str) -> None:
    assert sensitive(text) is not None, kind


@pytest.mark.parametrize(
    "value",
    [
        "economy", "basic_economy", "no longer needed", "LAX", "JFK", "USD", "°C", "km/h", True, 7,
        19.99, 0.142857142857142, "2024-05-15", "2024-05-15T15:00:00", "cancelled", "round_trip",
        "credit card", "North America/New York", "T-Shirt", "v1.2.3", "gpt-4o-2024-05-13",
        "get_user_details_by_id", "/api/v2/orders", "http://localhost:8080/v1", "12:30", "A320",
        "ordered by mistake", "Europe/Berlin", "1-2 days", "#FF8800", "en-US", "application/json",
        "token", "password", [], {}, None,
    ],
)  # fmt: skip
def test_what_agents_always_say_is_not_sensitive(value: object) -> None:
    assert sensitive(value) is None


def test_fields_of_people_are_told_by_their_names() -> None:
    for name in ("email", "$.user.first_name", "customerName", ".address.address1", "api_key",
                 "phone_number", "out:get:.contacts[*].email"):  # fmt: skip
        assert personal_field(name), name
    for name in ("status", "product.name", "name", "file_name", "order_id", "city", "$.items[*]"):
        assert not personal_field(name), name
