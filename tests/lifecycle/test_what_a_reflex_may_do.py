"""Standing: who promoted what, what demotes it, what a file that cannot be read means."""

from pathlib import Path

import msgspec
import pytest

from reflexarc.lifecycle.changes import NEIGHBOURS_IN_A_ROW, Changes
from reflexarc.lifecycle.oversight import PATIENCE_S, Act, Oversight
from reflexarc.lifecycle.standing import (
    KEPT_VERSIONS,
    Event,
    ReflexState,
    Standing,
    Version,
    checked_scope,
    demoted,
    demotions,
    promoted,
)
from reflexarc.lifecycle.standing_file import (
    FILE,
    adopted,
    change,
    forget_versions,
    keep,
    kept,
    kept_path,
    read_standings,
)
from reflexarc.lifecycle.watched import MAX_UNANSWERED
from reflexarc.steps.errors import ArtifactError, ConfigError

A, B, C, D = (digit * 32 for digit in "abcd")


def _live(scope: str = "reads") -> Version:
    return promoted(Version(A, "file", 1.0), scope, "ann", 2.0)


def _act(tool: str = "find", session: bytes = b"s", digest: str = A) -> Act:
    return Act(digest, "reads", tool, 0.05, False, session)


def test_a_tool_has_its_own_standing_or_that_of_all_reads() -> None:
    version = demoted(_live(), "reads:find", "ann", 3.0, "odd")
    find, other = version.standing("reads", "find"), version.standing("reads", "get")
    assert find is not None
    assert find.word == "demoted"
    assert other is not None
    assert other.word == "live"
    assert version.standing("writes", "find") is None
    again = promoted(version, "reads", "bob", 4.0)
    assert [(one.scope, one.word, one.by) for one in again.scopes] == [("reads", "live", "bob")]


def test_a_write_has_a_standing_of_its_own_only_and_a_person_behind_it() -> None:
    assert _live().standing("writes", "pay") is None
    with pytest.raises(ConfigError, match="a person, never by configuration"):
        promoted(Version(A, "file", 0.0), "writes:pay", "configuration", 1.0)
    with pytest.raises(ConfigError, match="name who with --by"):
        promoted(Version(A, "file", 0.0), "writes:pay", " ", 1.0)
    for scope in ("writes", "writes:", "all", "reads:", "thinks:a", ""):
        with pytest.raises(ConfigError, match="is no scope"):
            checked_scope(scope)


def test_demoting_all_takes_reads_and_every_write() -> None:
    version = promoted(_live(), "writes:pay", "ann", 2.0)
    words = {one.scope: one.word for one in demoted(version, "all", "ann", 3.0, "").scopes}
    assert words == {"reads": "demoted", "writes:pay": "demoted"}


def test_a_promotion_begins_the_watch_anew() -> None:
    state = ReflexState("x", A, (_live(),)).after([_answer(wrong=True), _answer("get")])
    assert set(state.current.watched) == {"reads:find", "reads:get", "reads"}
    assert set(promoted(state.current, "reads:find", "ann", 9.0).watched) == {"reads:get", "reads"}
    assert not promoted(state.current, "reads", "ann", 9.0).watched


def _answer(tool: str = "find", *, wrong: bool = False, digest: str = A) -> Event:
    what = "disagree" if wrong else "agree"
    return Event(digest, "reads", tool, what, 5.0, nulls=(0.15, 0.05))


def test_what_audits_refute_is_demoted_once_and_says_why() -> None:
    before = ReflexState("x", A, (_live(),))
    after = before.after([_answer(wrong=True)] * 12)
    found = demotions(before, after)
    assert found
    assert all(one.standing.by == "audits" and "odds" in one.standing.why for one in found)
    assert demotions(after, after.after([_answer(wrong=True)])) == ()


def test_a_tool_that_flips_among_many_is_demoted_alone() -> None:
    state = ReflexState("x", A, (_live(),))
    for _ in range(400):
        state = state.after([_answer(f"t{number}") for number in range(9)])
    state = state.after(
        [msgspec.structs.replace(_answer("t3", wrong=True), stake=0.06) for _ in range(14)]
    )
    words = {one.scope: one.word for one in state.current.scopes}
    assert words == {"reads": "live", "reads:t3": "demoted"}


def test_events_of_a_version_that_is_gone_change_nothing() -> None:
    state = ReflexState("x", A, (_live(),))
    assert state.after([_answer(wrong=True, digest=B)] * 50) == state


def test_three_versions_are_kept_and_the_one_in_use_is_never_forgotten() -> None:
    state = ReflexState("x", A, (Version(A, "file", 0.0),))
    for digest in (B, C, D):
        state = state.with_version(Version(digest, "relearned", 1.0))
    assert len(state.versions) == KEPT_VERSIONS
    assert [one.digest for one in state.versions] == [D, C, A]
    used = state.using(D)
    assert used.previous is not None
    assert used.previous.digest == C
    assert state.previous is None
    with pytest.raises(ConfigError, match="is not kept"):
        state.using(B)


# --- one process's view -------------------------------------------------------------------------


def test_an_audit_nobody_answers_is_never_agreement() -> None:
    now = [0.0]
    oversight = Oversight(ReflexState("x", A, (_live(),)), lambda: now[0])
    for number in range(200):
        oversight.acted(number, _act(), audited=True, share=1.0)
        oversight.answered(number, False)
    assert oversight.share(_act()) < 0.1
    oversight.acted(200, _act(), audited=True, share=0.06)
    oversight.answered(200, None)
    assert oversight.share(_act()) == 1.0
    for number in range(201, 200 + MAX_UNANSWERED):
        assert oversight.why_not(_act()) is None
        oversight.acted(number, _act(), audited=True, share=1.0)
    now[0] = PATIENCE_S - 1
    oversight.look()
    assert oversight.why_not(_act()) is None
    now[0] = PATIENCE_S
    oversight.look()
    assert oversight.why_not(_act()) == "audits_unanswered"
    assert oversight.why_not(_act("other")) is None
    oversight.compared(_act(), False)
    assert oversight.why_not(_act()) is None


def test_after_one_error_a_read_is_audited_for_sure_and_a_write_left_alone() -> None:
    state = ReflexState("x", A, (promoted(_live(), "writes:pay", "ann", 2.0),))
    oversight = Oversight(state, lambda: 0.0)
    write = Act(A, "writes", "pay", 0.05, True, b"s")
    for number, act in enumerate((_act(), write)):
        oversight.acted(number, act, audited=True, share=1.0)
        oversight.answered(number, True)
    assert oversight.share(_act()) == 1.0
    assert oversight.why_not(_act()) is None
    assert oversight.why_not(write) == "in_doubt"
    for _ in range(10):
        oversight.compared(write, False)
    assert oversight.why_not(write) is None


def test_what_is_not_written_yet_counts_here_and_once() -> None:
    state = ReflexState("x", A, (_live(),))
    oversight = Oversight(state, lambda: 0.0)
    for number in range(5):
        oversight.acted(number, _act(), audited=True, share=1.0)
        oversight.answered(number, False)
    events = oversight.take()
    oversight.acted(9, _act(), audited=False, share=1.0)
    oversight.set(state)  # the file is read while it is being written
    assert oversight.watched(A, "reads", "find").acts == 6
    oversight.set(state.after(events), written=True)
    one = oversight.watched(A, "reads", "find")
    assert (one.acts, one.evidence.answered) == (6, 5)
    oversight.take()
    oversight.give_back()
    assert oversight.has_events
    oversight.set(state.after(events))
    assert oversight.watched(A, "reads", "find").acts == 6


# --- what changed -------------------------------------------------------------------------------


def test_a_change_that_three_sessions_in_a_row_show_is_the_reflexes() -> None:
    changes = Changes()
    assert not changes.seen(b"ann", b"0", "certified")
    for session in (b"1", b"1", b"2"):
        assert not changes.seen(b"ann", session, "prompt_changed")
    assert changes.seen(b"ann", b"3", "model_changed") == (
        "model_changed, prompt_changed in 3 sessions in a row"
    )


def test_an_odd_client_stops_nobody_else() -> None:
    changes = Changes()
    changes.seen(b"ann", b"0", "unfamiliar:user")
    for session in range(50):
        assert not changes.seen(b"odd", bytes([session]), "prompt_changed")
    for session in range(50):  # the same client with two prompts, one of which fits
        assert not changes.seen(b"ann", bytes([session]), "prompt_changed")
        assert not changes.seen(b"ann", b"0", "below_threshold")


def test_a_neighbour_on_the_same_route_stops_nobody_until_nobody_else_is_left() -> None:
    changes = Changes()
    number = iter(range(10_000))

    def session() -> bytes:
        return next(number).to_bytes(4, "big")

    for _ in range(2):
        changes.seen(b"ann", session(), "prompt_changed", b"theirs")
    changes.seen(b"ann", session(), "certified")
    for _ in range(20):
        for _ in range(NEIGHBOURS_IN_A_ROW - 1):
            assert not changes.seen(b"ann", session(), "prompt_changed", b"theirs")
        assert not changes.seen(b"ann", session(), "certified")
    found = [
        changes.seen(b"ann", session(), "prompt_changed", b"theirs")
        for _ in range(NEIGHBOURS_IN_A_ROW)
    ]
    assert found[-1] == "prompt_changed in 30 sessions in a row"
    assert not any(found[:-1])


def test_sessions_that_began_before_a_release_do_not_hide_it() -> None:
    changes = Changes()
    changes.seen(b"ann", b"old", "certified")
    assert not changes.seen(b"ann", b"1", "prompt_changed", b"new")
    assert not changes.seen(b"ann", b"old", "certified")  # it goes on with the prompt it had
    assert [bool(changes.seen(b"ann", bytes([n]), "prompt_changed", b"new")) for n in range(3)] == [
        False, False, True
    ]  # fmt: skip


def test_where_nobody_ever_fitted_anybody_shows_a_change() -> None:
    changes = Changes()
    found = [changes.seen(bytes([one]), bytes([one]), "schema_changed") for one in range(3)]
    assert [bool(one) for one in found] == [False, False, True]


# --- the file -----------------------------------------------------------------------------------


def test_what_was_written_is_read_and_nothing_is_where_no_file_is(tmp_path: Path) -> None:
    assert read_standings(tmp_path).reflexes == ()
    change(tmp_path, "/x", lambda _: ReflexState("/x", A, (_live(),)))
    change(tmp_path, "/y", lambda _: ReflexState("/y", B, (Version(B, "file", 0.0),)))
    state = change(tmp_path, "/x", lambda one: _some(one).after([_answer(wrong=True)]))
    found = read_standings(tmp_path)
    assert found.of("/x") == state
    assert [one.artifact for one in found.reflexes] == ["/y", "/x"]


def _some(state: ReflexState | None) -> ReflexState:
    assert state is not None
    return state


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b'{"reflexes": [], "more": 1}',
        b'{"reflexes": [{"artifact": "/x", "in_use": "zz", "versions": []}]}',
        b'{"reflexes": [{"artifact": "/x", "in_use": "%s", "versions": []}]}' % A.encode(),
        b'{"reflexes": [{"artifact": "/x", "in_use": "%s", "versions": [{"digest": "%s", '
        b'"origin": "file", "since_unix_s": 1}]}]}' % (A.encode(), B.encode()),
        b'{"reflexes": [{"artifact": "/x", "in_use": "%s", "attempts": -1, "versions": '
        b'[{"digest": "%s", "origin": "file", "since_unix_s": 1}]}]}' % (A.encode(), A.encode()),
    ],
)
def test_a_file_that_is_not_ours_is_a_fault_and_is_not_written_over(
    tmp_path: Path, text: bytes
) -> None:
    (tmp_path / FILE).write_bytes(text)
    assert read_standings(tmp_path).fault
    with pytest.raises(ConfigError, match="nothing acts until"):
        change(tmp_path, "/x", lambda _: ReflexState("/x", A, (_live(),)))
    assert (tmp_path / FILE).read_bytes() == text


def test_copies_of_versions_are_kept_checked_and_forgotten(tmp_path: Path) -> None:
    one, other = keep(tmp_path, "/x", b"one"), keep(tmp_path, "/x", b"other")
    assert kept(tmp_path, "/x", one) == b"one"
    state = adopted(None, "/x", one, 1.0)
    forget_versions(tmp_path, state)
    assert kept_path(tmp_path, "/x", one).exists()
    with pytest.raises(ArtifactError, match="cannot be read"):
        kept(tmp_path, "/x", other)
    kept_path(tmp_path, "/x", one).write_bytes(b"two")
    with pytest.raises(ArtifactError, match="was changed"):
        kept(tmp_path, "/x", one)


def test_a_file_put_in_the_artifacts_place_is_a_version_in_shadow() -> None:
    state = ReflexState("/x", A, (_live(),))
    new = adopted(state, "/x", B, 7.0)
    assert (new.in_use, new.current.scopes) == (B, ())
    back = adopted(new, "/x", A, 8.0)
    assert back.current.scopes == (Standing("reads", "live", "ann", 2.0),)
