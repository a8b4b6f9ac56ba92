"""What was demoted, said or kept is not undone by others meanwhile, and can be left again."""

from pathlib import Path

import msgspec
import pytest

from reflexarc.lifecycle.by_hand import demote, promote, roll_back
from reflexarc.lifecycle.changes import Changes
from reflexarc.lifecycle.oversight import MAX_UNWRITTEN, Act, Oversight
from reflexarc.lifecycle.relearning import stopped_by_hand
from reflexarc.lifecycle.standing import (
    MAX_TEXT,
    Event,
    Kind,
    ReflexState,
    Standing,
    Version,
    demoted,
    promoted,
    without_promotions,
)
from reflexarc.lifecycle.standing_file import (
    FILE,
    adopted,
    change,
    digest_of,
    name_of,
    read_standings,
)
from reflexarc.reflex import Reflex, learn
from reflexarc.steps.errors import ConfigError
from tests.gateway.conftest import desk_session

A, B, C, D = (digit * 32 for digit in "abcd")


def _live(*scopes: str) -> Version:
    version = Version(A, "file", 1.0)
    for scope in scopes:
        version = promoted(version, scope, "ann", 2.0)
    return version


def _audit(kind: Kind, tool: str, *, wrong: bool) -> Event:
    return Event(A, kind, tool, "disagree" if wrong else "agree", 5.0, nulls=(0.15, 0.05))


# --- two gateways -------------------------------------------------------------------------------


def test_what_another_gateway_adds_meanwhile_takes_no_demotion_back() -> None:
    state = ReflexState("x", A, (_live("reads"),))
    oversight = Oversight(state, lambda: 0.0)
    act = Act(A, "reads", "find", 0.05, False, b"")
    for number in range(40):
        oversight.acted(number, act, audited=True, share=1.0)
        act = msgspec.structs.replace(act, session=bytes([number]))
        if oversight.answered(number, True):
            break
    assert [one.word for one in oversight.state.current.scopes if one.by == "audits"] == ["demoted"]
    # The other's audits were in the file first: with them the evidence is not enough.
    theirs = [_audit("reads", f"t{number % 9}", wrong=False) for number in range(3_000)]
    oversight.set(state.after(theirs))
    assert {one.word for one in oversight.state.current.scopes} >= {"demoted"}
    events = oversight.take()
    written = state.after(theirs).after(events)
    oversight.set(written, written=True)
    found = written.current.standing("reads", "find")
    assert found is not None
    assert (found.word, found.by) == ("demoted", "audits")
    assert "audits were wrong" in found.why


def test_too_much_that_cannot_be_written_down_is_said() -> None:
    oversight = Oversight(ReflexState("x", A, (_live("reads"),)), lambda: 0.0)
    act = Act(A, "reads", "find", 0.05, False, b"")
    for _ in range(MAX_UNWRITTEN):
        assert not oversight.is_full
        oversight.compared(act, False)
        if len(oversight.take()) % 100 == 0:
            oversight.give_back()
    assert oversight.is_full


# --- what can be left again ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "live", "again"),
    [("writes", ("writes:pay", "writes:send"), "writes:pay"), ("reads", ("reads",), "reads:pay")],
)
def test_what_all_of_a_kind_did_is_not_held_against_one_that_is_promoted_again(
    kind: Kind, live: tuple[str, ...], again: str
) -> None:
    state = ReflexState("x", A, (_live(*live),))
    state = state.after([_audit(kind, "pay", wrong=True)] * 30)
    assert {one.word for one in state.current.scopes} == {"demoted"}
    state = state.with_version(promoted(state.current, again, "ann", 9.0))
    assert kind not in state.current.watched
    state = state.after([_audit(kind, "pay", wrong=True)])
    standing = state.current.standing(kind, "pay")
    assert standing is not None
    assert standing.word == "live"


def test_what_others_of_a_kind_do_goes_on_counting() -> None:
    version = _live("writes:pay", "writes:send")
    state = ReflexState("x", A, (version,)).after([_audit("writes", "pay", wrong=True)])
    assert "writes" in promoted(state.current, "writes:pay", "ann", 9.0).watched
    state = ReflexState("x", A, (_live(),)).after([_audit("reads", "find", wrong=True)])
    assert "reads" in promoted(state.current, "reads:find", "ann", 9.0).watched


def test_what_a_person_stopped_is_not_said_to_be_the_audits_doing() -> None:
    version = demoted(_live("reads"), "reads", "ann", 3.0, "odd")
    state = ReflexState("x", A, (version,)).after([_audit("reads", "find", wrong=True)] * 30)
    assert [(one.scope, one.by) for one in state.current.scopes] == [("reads", "ann")]


def test_a_version_learned_again_does_not_start_what_a_person_stopped() -> None:
    version = demoted(_live("reads", "writes:pay"), "reads:find", "ann", 3.0, "odd")
    version = demoted(version, "writes:pay", "ann", 3.0, "odd")
    version = version.with_standing(Standing("reads:get", "demoted", "audits", 4.0))
    assert [one.scope for one in stopped_by_hand(version)] == ["reads:find"]
    every = demoted(version, "reads", "ann", 5.0, "")
    every = demoted(every, "reads:find", "ann", 5.0, "")
    assert [one.scope for one in stopped_by_hand(every)] == ["reads", "reads:find"]


# --- versions -----------------------------------------------------------------------------------


def test_those_that_wait_do_not_crowd_out_what_a_rollback_goes_back_to() -> None:
    state = adopted(adopted(None, "x", A, 0.0), "x", B, 1.0)
    for digest in (C, D):
        state = state.with_version(Version(digest, "relearned", 2.0))
    assert [one.digest for one in state.versions] == [D, B, A]
    assert state.previous is not None
    assert state.previous.digest == A


def test_a_rollback_goes_back_to_what_was_in_use_not_to_what_waited() -> None:
    state = adopted(None, "x", A, 0.0).with_version(Version(B, "relearned", 1.0))
    state = adopted(state, "x", C, 2.0)
    assert state.previous is not None
    assert (state.in_use, state.previous.digest) == (C, A)


# --- the file -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def learned() -> bytes:
    return learn([desk_session(number) for number in range(60)], max_error=0.1).to_bytes()


@pytest.fixture
def artifact(learned: bytes, tmp_path: Path) -> Path:
    path = tmp_path / "agent.reflex"
    path.write_bytes(learned)
    return path


def test_promoting_the_version_in_use_by_its_digest_leaves_a_file_that_can_be_read(
    artifact: Path, tmp_path: Path
) -> None:
    state = promote(tmp_path, artifact, "reads", "ann", "", 1.0).now
    again = promote(tmp_path, artifact, "reads", "bob", "", 2.0, state.in_use[:8]).now
    found = read_standings(tmp_path)
    assert found.fault == ""
    assert found.of(name_of(artifact)) == again
    assert [one.by for one in again.current.scopes] == ["bob"]


def test_nothing_is_written_that_could_not_be_read_again(artifact: Path, tmp_path: Path) -> None:
    promote(tmp_path, artifact, "reads", "ann", "", 1.0)
    before = (tmp_path / FILE).read_bytes()
    long = "x" * (MAX_TEXT + 1)
    for act in (
        lambda: promote(tmp_path, artifact, "reads", "ann", long, 2.0),
        lambda: promote(tmp_path, artifact, "reads", long, "", 2.0),
        lambda: demote(tmp_path, artifact, "all", "ann", long, 2.0),
    ):
        with pytest.raises(ConfigError, match="at most 500 characters"):
            act()

    def twice(state: ReflexState | None) -> ReflexState:
        assert state is not None
        return msgspec.structs.replace(state, versions=(*state.versions, *state.versions))

    def too_long(state: ReflexState | None) -> ReflexState:
        assert state is not None
        version = state.current.with_standing(Standing("reads", "live", "ann", 3.0, long))
        return state.with_version(version)

    for wrong in (twice, too_long):
        with pytest.raises(ConfigError, match="would not be readable"):
            change(tmp_path, name_of(artifact), wrong)
    assert (tmp_path / FILE).read_bytes() == before


def test_a_rollback_that_is_refused_leaves_the_artifact(artifact: Path, tmp_path: Path) -> None:
    promote(tmp_path, artifact, "reads", "ann", "", 1.0)
    other = Reflex.load(artifact)
    other.card = msgspec.structs.replace(other.card, items=other.card.items + 1)
    other.save(artifact)
    second = promote(tmp_path, artifact, "reads", "ann", "", 2.0).now.in_use
    with pytest.raises(ConfigError, match="at most 500 characters"):
        roll_back(tmp_path, artifact, "ann", "x" * (MAX_TEXT + 1), 3.0)
    assert digest_of(artifact.read_bytes()) == second


def test_demoting_a_tool_that_is_not_there_is_refused_since_it_stops_nothing(
    artifact: Path, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=r"knows no tool get_ordr; .*get_order"):
        demote(tmp_path, artifact, "reads:get_ordr", "ann", "", 1.0)
    artifact.write_bytes(b"no artifact")
    now = demote(tmp_path, artifact, "reads:get_ordr", "ann", "", 1.0).now
    assert [one.scope for one in now.current.scopes] == ["reads:get_ordr"]


def test_who_takes_a_reflex_out_of_the_file_takes_promotions_back_and_no_demotion() -> None:
    version = demoted(_live("reads", "writes:pay"), "reads:find", "ann", 3.0, "")
    left = without_promotions(ReflexState("x", A, (version,)))
    assert [(one.scope, one.word) for one in left.current.scopes] == [("reads:find", "demoted")]


# --- what changed -------------------------------------------------------------------------------


@pytest.mark.parametrize("reason", ["recalled_otherwise", "schema:customer.id", "thinking"])
def test_a_request_that_escalates_for_another_reason_fits_all_the_same(reason: str) -> None:
    changes = Changes()
    for number in range(20):
        assert not changes.seen(b"ann", bytes([number]), "prompt_changed", b"theirs")
        assert not changes.seen(b"ann", bytes([100 + number]), reason)
