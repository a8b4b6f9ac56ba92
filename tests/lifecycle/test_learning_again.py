"""Relearning: a process of its own, judged on later sessions, three versions, a bounded life."""

import asyncio
import contextlib
import json
import subprocess
import sys
import threading
from pathlib import Path

import msgspec
import pytest

from reflexarc.gateway.config import Lifecycle, Route
from reflexarc.gateway.relearner import Relearner, how_again
from reflexarc.lifecycle.by_hand import promote, roll_back
from reflexarc.lifecycle.from_store import Learning
from reflexarc.lifecycle.later import MIN_LATER, Later, cut, judged
from reflexarc.lifecycle.learner import Job
from reflexarc.lifecycle.relearning import (
    Limits,
    options_of,
    relearn,
)
from reflexarc.lifecycle.standing_file import (
    adopted,
    change,
    digest_of,
    kept_versions,
    name_of,
    read_standings,
)
from reflexarc.reflex import Reflex, learn
from reflexarc.steps import Effect, Session
from reflexarc.steps.errors import LearnError
from reflexarc.store.artifacts import note_artifact
from reflexarc.store.store import Store
from tests.gateway.conftest import chat_message, chat_tool, desk_session
from tests.store.stepping import BEGAN_S, at, record

EFFECTS: dict[str, Effect] = {"find_customer": "read", "get_order": "read", "refund_order": "write"}
HOW = Learning(0.1, 0.9, EFFECTS)


def _store(directory: Path, sessions: list[Session]) -> None:
    recording = at(directory)
    for number, session in enumerate(sessions):
        messages = [chat_message(message) for message in session.messages]
        for index, message in enumerate(session.messages):
            if message.role == "assistant":
                record(
                    recording, messages[:index], messages[index],
                    more={"tools": [chat_tool(tool) for tool in session.tools]},
                    session=session.id, task=session.task, began_s=BEGAN_S + number,
                )  # fmt: skip
    assert recording.flush().fault == ""
    recording.close()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, bytes]:
    """A store of 80 sessions in full, and an artifact of an agent's first days."""
    directory = tmp_path_factory.mktemp("state")
    sessions = [desk_session(number) for number in range(80)]
    _store(directory, sessions)
    first = learn(sessions[:8], max_error=0.1)
    return directory, first.to_bytes()


@pytest.fixture
def place(world: tuple[Path, bytes], tmp_path: Path) -> tuple[Path, Path]:
    """A state directory with that store, and the artifact."""
    directory = tmp_path / "state"
    directory.mkdir()
    for part in world[0].glob("reflexarc.db*"):
        (directory / part.name).write_bytes(part.read_bytes())
    artifact = tmp_path / "agent.reflex"
    artifact.write_bytes(world[1])
    return directory, artifact


def test_what_later_sessions_bear_out_takes_over_and_can_be_rolled_back(
    place: tuple[Path, Path],
) -> None:
    directory, artifact = place
    first = digest_of(artifact.read_bytes())
    phases: list[str] = []
    found = relearn(
        directory, artifact, HOW, promote="automatic", unix_time=lambda: BEGAN_S + 999,
        on_progress=lambda phase, _: phases.append(phase),
    )  # fmt: skip
    assert (found.took_over, found.why_not) == (True, "")
    assert phases
    assert found.verdict is not None
    assert found.verdict.sessions == 20
    assert found.verdict.new.answered >= MIN_LATER
    assert digest_of(artifact.read_bytes()) == found.version != first
    state = read_standings(directory).of(name_of(artifact))
    assert state is not None
    assert [one.digest for one in state.versions] == [found.version, first]
    assert [(one.scope, one.word, one.by) for one in state.current.scopes] == [
        ("reads", "live", "relearning")
    ]
    assert state.attempts == 1
    # Learned from the earlier sessions alone: what it is judged on it has not seen.
    learned = Reflex.load(artifact)
    assert learned.card.sessions == 60
    assert not any(learned.learned_from(f"t{number}") for number in range(60, 80))
    # The store knows what it was learned from, so that a purge finds it.
    assert {path.stem for path in kept_versions(directory)} == {found.version, first}
    store = Store.open(directory / "reflexarc.db")
    with store.reading() as connection:
        rows = connection.exec_driver_sql("select path, sessions from artifacts").all()
    store.close()
    assert {Path(row[0]).name for row in rows} == {"agent.reflex", f"{found.version}.reflex"}
    assert all(len(json.loads(row[1])) == 60 for row in rows)
    assert roll_back(directory, artifact, "ann", "", BEGAN_S).now.in_use == first
    assert digest_of(artifact.read_bytes()) == first


def test_by_hand_it_waits_and_a_person_promotes_it(place: tuple[Path, Path]) -> None:
    directory, artifact = place
    first = digest_of(artifact.read_bytes())
    found = relearn(directory, artifact, HOW, unix_time=lambda: BEGAN_S + 999)
    assert (found.took_over, found.why_not) == (False, "it waits to be promoted by hand")
    assert digest_of(artifact.read_bytes()) == first
    state = promote(directory, artifact, "reads", "ann", "", BEGAN_S, found.version[:10]).now
    assert state.in_use == found.version == digest_of(artifact.read_bytes())
    assert state.previous is not None
    assert state.previous.digest == first
    assert state.current.scopes[0].by == "ann"


def test_every_attempt_counts_and_costs_whatever_becomes_of_it(place: tuple[Path, Path]) -> None:
    directory, artifact = place
    stop = threading.Event()
    stop.set()
    for attempt in (1, 2):
        found = relearn(directory, artifact, HOW, stop=stop)
        assert (found.attempt, found.version) == (attempt, "")
        assert "was ended" in found.why_not
        assert found.confidence == pytest.approx(1 - 0.1 / (attempt * (attempt + 1)))


def test_one_that_takes_too_long_is_ended(place: tuple[Path, Path]) -> None:
    directory, artifact = place
    found = relearn(directory, artifact, HOW, limits=Limits(cpu_s=1))
    assert not found.version
    assert "it may use 1 s of a core" in found.why_not


def test_its_process_ends_with_whoever_started_it(place: tuple[Path, Path]) -> None:
    directory, artifact = place
    job = Job(str(directory), name_of(artifact), HOW, BEGAN_S, 100, 2**32)
    child = subprocess.Popen(
        [sys.executable, "-m", "reflexarc.lifecycle.learner", msgspec.json.encode(job).decode()],
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    assert child.stdin is not None
    child.stdin.close()
    assert child.wait(timeout=60) == 0


def test_a_store_without_sessions_says_so(tmp_path: Path, world: tuple[Path, bytes]) -> None:
    directory, artifact = tmp_path / "state", tmp_path / "agent.reflex"
    directory.mkdir()
    artifact.write_bytes(world[1])
    _store(directory, [])
    found = relearn(directory, artifact, HOW)
    assert "the store holds no session in full" in found.why_not


def _gateway(directory: Path, artifact: Path, said: list[str]) -> Relearner:
    """A gateway's, which finds that an hour has passed."""
    name, digest = name_of(artifact), digest_of(artifact.read_bytes())
    change(directory, name, lambda _: adopted(None, name, digest, BEGAN_S))
    route = Route(
        "http://s/v1", reflex=str(artifact), record="full", path="/", promote="automatic",
        max_error=0.1, effects=EFFECTS,
    )  # fmt: skip
    return Relearner(
        directory, [route], Lifecycle("hourly"), lambda what, *_: said.append(what), said.append,
        lambda: BEGAN_S + 3_600,
    )  # fmt: skip


async def test_beside_a_gateway_it_is_done_when_it_is_due(place: tuple[Path, Path]) -> None:
    directory, artifact = place
    said: list[str] = []
    first = digest_of(artifact.read_bytes())
    relearner = _gateway(directory, artifact, said)
    relearner.start()
    while len(said) < 2:
        await asyncio.sleep(0.05)
    await relearner.close()
    assert said == ["took_over", "relearn"]
    assert digest_of(artifact.read_bytes()) != first


async def test_a_gateway_that_closes_ends_the_learning_process(place: tuple[Path, Path]) -> None:
    directory, artifact = place
    relearner = _gateway(directory, artifact, [])
    relearner.start()

    def learners() -> int:
        found = 0
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                found += str(directory).encode() in path.read_bytes()
        return found

    while not learners():
        await asyncio.sleep(0.02)
    await relearner.close()
    assert learners() == 0


def test_beside_a_gateway_class_and_confidence_are_those_it_was_learned_with(
    place: tuple[Path, Path],
) -> None:
    directory, artifact = place
    how = Learning(0.02, 0.95, {"get_order": "read"}, "/old", None, "exact")
    store = Store.open(directory / "reflexarc.db")
    with store.writing() as connection:
        note_artifact(connection, artifact, "x", BEGAN_S, msgspec.json.encode(how).decode(), "[]")
    store.close()
    route = Route("http://s/v1", reflex=str(artifact), max_error=0.1, effects={"pay": "write"})
    assert how_again(directory, route) == Learning(
        0.1, 0.95, {"get_order": "read", "pay": "write"}, "/v1", None, "exact"
    )


def test_how_it_was_learned_comes_from_its_card(place: tuple[Path, Path]) -> None:
    directory, artifact = place
    assert options_of(directory, artifact, "/v1") == Learning(0.1, 0.9, EFFECTS, "/v1")


def test_sessions_are_cut_by_time() -> None:
    sessions = [desk_session(number) for number in range(8)]
    earlier, later = cut(sessions)
    assert (earlier, later) == (sessions[:6], sessions[6:])
    with pytest.raises(LearnError, match="too few"):
        cut(sessions[:1])


def _otherwise(session: Session, tool: str) -> Session:
    """The same, but that calls of one tool go elsewhere."""
    messages = [
        msgspec.structs.replace(
            message,
            tool_calls=tuple(
                msgspec.structs.replace(
                    call,
                    arguments=dict.fromkeys(call.arguments, "another"),
                    raw=json.dumps(dict.fromkeys(call.arguments, "another")),
                )
                if call.name == tool
                else call
                for call in message.tool_calls
            ),
        )
        for message in session.messages
    ]
    return msgspec.structs.replace(session, messages=tuple(messages))


def test_later_sessions_speak_for_and_against_each_scope_that_acts() -> None:
    sessions = [desk_session(number) for number in range(200)]
    reflex = learn(sessions[:150], max_error=0.1, effects=EFFECTS)
    held = {one.scope for one in reflex.card.acting if one.granted}
    assert {"reads", "writes:refund_order"} <= held
    clean = judged(reflex, None, sessions[150:], 0.1)
    assert (clean.why_not, clean.new.refuted) == ("", ())
    assert clean.new.answered == clean.new.right == 100  # reads alone act by themselves
    for tool, refuted in (("get_order", ("reads",)), ("refund_order", ("writes:refund_order",))):
        later = [_otherwise(session, tool) for session in sessions[150:]]
        found = judged(reflex, None, later, 0.1)
        assert found.new.refuted == refuted
        assert f"errs more than certified for {refuted[0]}" in found.why_not
    assert "are needed to judge it" in judged(reflex, None, sessions[150:], 0.001).why_not


def test_what_is_wrong_later_or_worse_than_before_is_refused(
    world: tuple[Path, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    reflex = Reflex.from_bytes(world[1])
    for new, old, wanted in (
        (Later(19, 19), None, "are needed to judge it"),
        (Later(40, 30, ("reads",)), None, "10 of its 40 later answers were wrong"),
        (Later(40, 39), Later(60, 59), "the one in use 59"),
        (Later(40, 39), Later(60, 40, ("reads",)), ""),
        (Later(40, 39), Later(20, 20), ""),
    ):
        both = iter([new] if old is None else [new, old])
        monkeypatch.setattr("reflexarc.lifecycle.later._later", lambda *_, both=both: next(both))
        verdict = judged(reflex, None if old is None else reflex, [], 0.05)
        assert wanted in verdict.why_not
        assert bool(wanted) == bool(verdict.why_not)
