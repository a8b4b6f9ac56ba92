"""What was cut is opened by its id, by its own tenant alone, within bounds."""

from hypothesis import given
from hypothesis import strategies as st

from reflexarc.context.pruning_kept import KeptCuts
from reflexarc.context.pruning_text import Removed


def test_each_tenant_opens_its_own() -> None:
    kept = KeptCuts()
    kept.keep(b"a", [Removed("cut_1", b'"one"')])
    assert kept.open(b"a", "cut_1") == b'"one"'
    assert kept.open(b"b", "cut_1") is None
    assert kept.open(b"a", "cut_2") is None
    kept.clear()
    assert kept.open(b"a", "cut_1") is None


def test_what_was_used_last_stays() -> None:
    kept = KeptCuts(max_bytes=100, max_bytes_of_tenant=20)
    kept.keep(b"a", [Removed("1", b"x" * 10), Removed("2", b"x" * 10)])
    assert kept.open(b"a", "1") is not None
    kept.keep(b"a", [Removed("3", b"x" * 10)])
    assert kept.open(b"a", "2") is None
    assert kept.open(b"a", "1") is not None
    kept.keep(b"a", [Removed("4", b"x" * 21)])
    assert kept.open(b"a", "4") is None


put = st.tuples(st.sampled_from([b"a", b"b", b"c"]), st.integers(0, 9), st.integers(0, 60))


@given(st.lists(put))
def test_no_more_is_held_than_is_allowed(puts: list[tuple[bytes, int, int]]) -> None:
    kept = KeptCuts(max_bytes=100, max_bytes_of_tenant=50)
    for tenant, number, size in puts:
        kept.keep(tenant, [Removed(f"{number}", b"x" * size)])
        assert kept.held_bytes <= 100
    held = sum(
        len(kept.open(tenant, f"{number}") or b"")
        for tenant in (b"a", b"b", b"c")
        for number in range(10)
    )
    assert held == kept.held_bytes
