"""What a deployment read is expected there again, as far as it was found; who holds nothing is
drawn by how a conversation begins."""

from collections import Counter
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reflexarc.upstream.affinity import MAX_OPENING, Affinity, Held, Prefix, score

TOOLS, SYSTEM = b"[tools]", b"you help"
pieces = st.lists(st.binary(max_size=20), max_size=12)


def prefix(*messages: bytes) -> Prefix:
    """Of a conversation whose first message is the third piece."""
    return Prefix.of((TOOLS, SYSTEM, *messages), 2)


def read(
    affinity: Affinity,
    asked: Prefix,
    name: str = "a",
    *,
    tenant: str = "t",
    tokens: int = 1_000,
    cached: int = 0,
    written: int = 0,
    now_s: float = 0.0,
) -> None:
    affinity.answered(tenant, asked, name, tokens, cached, written, now_s)


def holds(affinity: Affinity, asked: Prefix, tenant: str = "t", now_s: float = 1.0) -> set[str]:
    return set(affinity.held(tenant, asked, ("a", "b", "c"), now_s))


def of(affinity: Affinity, asked: Prefix, name: str = "a", now_s: float = 1.0) -> Held | None:
    return affinity.held("t", asked, (name,), now_s).get(name)


@given(pieces, pieces)
def test_a_prompt_that_was_added_to_begins_with_the_one_before(
    first: list[bytes], more: list[bytes]
) -> None:
    short, long = Prefix.of(first, 1), Prefix.of([*first, *more], 1)
    for at in range(len(first)):
        assert long.digest(at) == short.digest(at)
        assert long.end(at) == short.end(at)
    assert len(first) < 2 or long.key == short.key


@given(pieces, pieces)
def test_prompts_that_differ_anywhere_have_no_piece_in_common_from_there_on(
    one: list[bytes], other: list[bytes]
) -> None:
    same = 0
    while same < min(len(one), len(other)) and one[same] == other[same]:
        same += 1
    first, second = Prefix.of(one, 0), Prefix.of(other, 0)
    theirs = {second.digest(at) for at in range(same, len(second))}
    assert not {first.digest(at) for at in range(same, len(first))} & theirs


def test_the_next_turn_is_held_where_the_one_before_was_read() -> None:
    affinity = Affinity()
    read(affinity, prefix(b"hello"), "a")
    read(affinity, prefix(b"another"), "b")
    turn = prefix(b"hello", b"well?", b"go on")
    held = affinity.held("t", turn, ("a", "b"), 5.0)
    assert held["a"].tokens == 1_000
    assert held["a"].age_s == 5.0
    assert held["a"].share == pytest.approx(len(TOOLS + SYSTEM + b"hello") / turn.end(4))
    assert held["b"].share == pytest.approx(len(TOOLS + SYSTEM) / turn.end(4))
    assert held["b"].tokens < 1_000


def test_a_new_session_that_begins_alike_is_held_as_far_as_that_goes() -> None:
    affinity = Affinity()
    read(affinity, prefix(b"hello", b"well?", b"go on"))
    assert holds(affinity, prefix(b"something else")) == {"a"}
    assert holds(affinity, Prefix.of((TOOLS, b"you judge", b"hello"), 2)) == {"a"}  # the tools
    assert holds(affinity, Prefix.of((b"[other]", SYSTEM, b"hello"), 2)) == set()


def test_nothing_is_known_across_tenants() -> None:
    affinity = Affinity()
    read(affinity, prefix(b"hello"), cached=500)
    assert holds(affinity, prefix(b"hello"), tenant="u") == set()
    held = of(affinity, prefix(b"hello"))
    assert affinity.expected("u", "a", held) == 0 < affinity.expected("t", "a", held)


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(1, 5)), max_size=60))
def test_no_more_is_remembered_than_was_agreed(turns: list[tuple[int, int]]) -> None:
    affinity = Affinity(max_held=20)
    for session, length in turns:
        read(affinity, Prefix.of([b"%d %d" % (session, at) for at in range(length)], 0))
        assert len(affinity) <= 20


def test_of_a_long_opening_the_last_pieces_are_remembered() -> None:
    affinity = Affinity()
    opening = Prefix.of([b"%d" % at for at in range(100)], 98)
    read(affinity, opening)
    assert len(affinity) == MAX_OPENING + 1


def test_the_least_recently_read_is_forgotten_first() -> None:
    affinity = Affinity(max_held=2)
    first, second, third = (Prefix.of([name], 0) for name in (b"1", b"2", b"3"))
    for one in (first, second, first, third):
        read(affinity, one)
    assert [bool(holds(affinity, one)) for one in (first, second, third)] == [True, False, True]


def test_nothing_is_expected_cached_where_no_cache_was_ever_told_of() -> None:
    affinity = Affinity()
    for turn in range(5):
        read(affinity, prefix(*[b"turn"] * (turn + 1)), now_s=turn)
    held = of(affinity, prefix(*[b"turn"] * 6))
    assert affinity.expected("t", "a", held) == 0
    assert held is not None
    assert affinity.worth("t", "a", held) == held.share  # but nothing speaks against it


def test_what_is_found_cached_corrects_what_is_expected() -> None:
    affinity = Affinity()
    read(affinity, prefix(b"0"), cached=10)
    expected = list[int]()
    for turn in range(1, 30):
        asked = prefix(*(b"%d" % at for at in range(turn + 1)))
        held = of(affinity, asked, now_s=turn)
        expected.append(affinity.expected("t", "a", held))
        read(affinity, asked, cached=300, now_s=turn)
    assert expected[0] == 1_000
    assert expected == sorted(expected, reverse=True)
    assert expected[-1] == pytest.approx(300, abs=50)


def test_a_cache_that_forgets_after_some_minutes_is_expected_to() -> None:
    affinity = Affinity()
    now_s, asked = 0.0, list[bytes]()
    for session in range(20):
        asked = [b"%d" % session]
        read(affinity, prefix(*asked), now_s=now_s)
        for wait_s, cached in ((20.0, 1_000), (600.0, 0), (20.0, 1_000)):
            now_s += wait_s
            asked.append(b"more")
            read(affinity, prefix(*asked), cached=cached, now_s=now_s)
    soon, late = (of(affinity, prefix(*asked), now_s=now_s + s) for s in (20.0, 600.0))
    assert affinity.expected("t", "a", soon) > 900
    assert affinity.expected("t", "a", late) < 200
    assert affinity.worth("t", "a", late) == 0.0 < affinity.worth("t", "a", soon)
    longer = of(affinity, prefix(*asked), now_s=now_s + 90_000.0)
    assert affinity.expected("t", "a", longer) == affinity.expected("t", "a", late)


def test_who_tells_what_it_stores_holds_that_and_no_more() -> None:
    affinity = Affinity()
    read(affinity, prefix(b"marked"), written=700)
    assert affinity.expected("t", "a", of(affinity, prefix(b"marked", b"more"))) == 700
    read(affinity, prefix(b"not marked"), tokens=5_000)
    held = of(affinity, prefix(b"not marked", b"more"))
    assert held is not None
    assert held.tokens < 1_000  # what it has of the other's beginning


def test_an_emptied_cache_holds_nothing_that_was_read_before() -> None:
    affinity = Affinity()
    read(affinity, prefix(b"hello"), "a", now_s=1.0)
    read(affinity, prefix(b"hello"), "b", now_s=1.0)
    affinity.emptied("a", 2.0)
    assert holds(affinity, prefix(b"hello"), now_s=3.0) == {"b"}
    read(affinity, prefix(b"hello"), "a", now_s=4.0)
    assert holds(affinity, prefix(b"hello"), now_s=5.0) == {"a", "b"}


def test_an_answer_that_counts_nothing_teaches_nothing() -> None:
    affinity = Affinity()
    read(affinity, prefix(b"hello"), tokens=0)
    read(affinity, Prefix.of((), 0))
    assert len(affinity) == 0
    assert holds(affinity, Prefix()) == set()


# --- rendezvous


def drawn(key: bytes, weights: Mapping[bytes, float]) -> bytes:
    return max(weights, key=lambda identity: score(key, identity, weights[identity]))


KEYS = [b"session %d" % number for number in range(4_000)]


def test_each_has_a_share_of_sessions_by_its_weight() -> None:
    weights: dict[bytes, float] = {b"a": 1.0, b"b": 2.0, b"c": 5.0}
    found = Counter(drawn(key, weights) for key in KEYS)
    for identity, weight in weights.items():
        assert found[identity] / len(KEYS) == pytest.approx(weight / 8, abs=0.03)


def test_one_that_goes_takes_only_its_own_sessions_along() -> None:
    all_three: dict[bytes, float] = {b"a": 1.0, b"b": 1.0, b"c": 1.0}
    two: dict[bytes, float] = {b"a": 1.0, b"b": 1.0}
    moved = [key for key in KEYS if drawn(key, all_three) != drawn(key, two)]
    assert {drawn(key, all_three) for key in moved} == {b"c"}
    assert Counter(drawn(key, two) for key in moved)[b"a"] / len(moved) == pytest.approx(
        0.5, abs=0.06
    )


@given(st.binary(), st.binary(), st.floats(1e-9, 1e9))
def test_a_score_is_a_finite_number_and_the_same_each_time(
    key: bytes, identity: bytes, weight: float
) -> None:
    assert 0 < score(key, identity, weight) < float("inf")
    assert score(key, identity, weight) == score(key, identity, weight)
