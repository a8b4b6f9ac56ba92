"""Breaks are found in texts, blocks and counts, named where the text shows them, and priced."""

import msgspec
import pytest

from reflexarc.bench.waste_breaks import BreakFound
from reflexarc.traces.requests import RecordedRequest, measured
from tests.bench.recorded import blocks, input_price, read_price, report, request, text

LONG = [f"message {number} says something " * 40 for number in range(12)]


def _breaks(*requests: RecordedRequest) -> list[BreakFound]:
    return report(*requests).breaks


def _tokens(*messages: str) -> float:
    return sum(map(len, messages)) / 4


def test_a_conversation_that_grows_has_none() -> None:
    turns = [
        request(at, sent=text(*LONG[: at + 1]), prompt=_tokens(*LONG[: at + 1])) for at in range(12)
    ]
    assert _breaks(*turns) == []


def test_a_clock_in_front_is_found_named_and_priced() -> None:
    turns = [
        request(
            at,
            sent=text(f"It is 2026-11-30 12:{at:02d}:00 now.", *LONG[: at + 1]),
            prompt=_tokens(*LONG[: at + 1]) + 8,
        )
        for at in range(6)
    ]
    found = _breaks(*turns)
    assert len(found) == 5
    worst = found[0]
    assert (worst.cause, worst.source, worst.kind) == ("clock", "text", "derived")
    assert worst.request == "s:5"
    assert worst.lost_tokens == pytest.approx(_tokens(*LONG[:5]), rel=0.05)
    rate = float(input_price() - read_price()) / 1e6
    assert worst.usd == pytest.approx(worst.lost_tokens * rate, rel=1e-4)
    assert [one.usd for one in found] == sorted((one.usd or 0 for one in found), reverse=True)


def test_blocks_that_change_are_found_and_their_text_said_to_be_missing() -> None:
    found = _breaks(
        request(0, sent=blocks(*range(50)), prompt=5000),
        request(1, sent=blocks(*range(20), *range(100, 140)), prompt=6000),
    )
    (one,) = found
    assert (one.source, one.cause, one.lost_tokens) == ("blocks", "unknown", 3000)
    assert "from token 2,000 on" in one.why
    assert "its text is not in this log" in one.why


def test_a_text_that_changes_in_its_middle_is_read_anew_from_there() -> None:
    before, after = ("start " * 500 + f"plan {plan} " + "rest " * 400 for plan in ("one", "two"))
    (one,) = _breaks(
        request(0, sent=text(before), prompt=len(before) / 4),
        request(1, sent=text(after), prompt=len(after) / 4),
    )
    assert (one.source, one.cause) == ("text", "history_edited")
    assert one.lost_tokens == pytest.approx(500, abs=3)


def test_interleaved_conversations_are_none() -> None:
    main, side = blocks(*range(60)), blocks(*range(900, 920))
    turns = [request(0, sent=main, prompt=6000), request(1, sent=side, prompt=2000)]
    turns += [request(2, sent=blocks(*range(65)), prompt=6500)]
    assert _breaks(*turns) == []


def test_counts_alone_date_a_break_and_suggest_its_cause() -> None:
    kept = request(0, prompt=20_000, cache_read=0, cache_write=20_000, at_s=0)
    soon = request(1, prompt=21_000, cache_read=3000, cache_write=18_000, at_s=60)
    later = request(2, prompt=22_000, cache_read=0, cache_write=22_000, at_s=1000)
    found = {one.request: one for one in _breaks(kept, soon, later)}
    assert found["s:1"].cause == "unknown"
    assert "provider's side is possible" in found["s:1"].why
    assert (found["s:1"].lost_tokens, found["s:1"].source) == (17_000, "counts")
    assert found["s:2"].cause == "expired"
    assert "16 min after the last use" in found["s:2"].why
    assert found["s:2"].lost_tokens == 21_000


def test_a_cache_asked_for_an_hour_does_not_expire_after_minutes() -> None:
    turns = [
        request(0, prompt=20_000, cache_read=0, cache_write=20_000, at_s=0),
        request(1, prompt=20_000, cache_read=0, cache_write=20_000, at_s=1000),
    ]
    asked = [
        msgspec.structs.replace(
            one, counts=msgspec.structs.replace(one.counts, cache_write_1h=one.counts.cache_write)
        )
        for one in turns
    ]
    assert _breaks(*turns)[0].cause == "expired"
    assert _breaks(*asked)[0].cause == "unknown"


def test_a_turn_that_wrote_nothing_to_a_cache_of_an_hour_leaves_it_one_of_an_hour() -> None:
    before = request(1, at_s=0, prompt=10_000, cache_read=10_000, cache_write=0)
    after = request(2, at_s=600, prompt=10_000, cache_read=2_000, cache_write=8_000)
    after = msgspec.structs.replace(
        after, counts=msgspec.structs.replace(after.counts, cache_write_1h=measured(8_000))
    )

    (found,) = _breaks(before, after)

    assert found.cause == "unknown"


def test_within_a_block_counts_are_no_break() -> None:
    turns = [
        request(0, prompt=20_000, cache_read=0, cache_write=20_000),
        request(1, prompt=21_000, cache_read=19_900, cache_write=1_100),
    ]
    assert _breaks(*turns) == []


def test_what_a_log_calls_a_new_chain_is_none() -> None:
    turns = [
        request(0, prompt=20_000, cache_read=0, cache_write=20_000),
        request(1, prompt=8_000, cache_read=0, cache_write=8_000, starts="compaction"),
    ]
    assert _breaks(*turns) == []


def test_another_agent_breaks_nothing() -> None:
    turns = [
        request(0, prompt=20_000, cache_read=0, cache_write=20_000),
        request(1, prompt=8_000, cache_read=0, cache_write=8_000, agent="sub"),
    ]
    assert _breaks(*turns) == []


def test_a_model_that_is_never_cached_has_none_to_break() -> None:
    turns = [request(at, prompt=5000 + at, cache_read=0) for at in range(4)]
    assert _breaks(*turns) == []


def test_where_written_tokens_are_not_told_only_what_was_read_was_surely_cached() -> None:
    turns = [
        request(0, prompt=10_000, cache_read=0),
        request(1, prompt=10_500, cache_read=9_856),
        request(2, prompt=11_000, cache_read=3_456),
        request(3, prompt=12_000, cache_read=3_456),
    ]
    (one,) = _breaks(*turns)
    assert one.request == "s:2"
    assert one.lost_tokens == 10_500 - 3_456


def test_another_model_is_named() -> None:
    turns = [
        request(0, prompt=20_000, cache_read=0, cache_write=20_000),
        request(1, prompt=20_500, cache_read=0, cache_write=20_500, model="claude-sonnet-4-5"),
    ]
    assert [one.cause for one in _breaks(*turns)] == ["model"]


def test_another_model_reads_anew_what_it_has_not_read_itself() -> None:
    other = "claude-sonnet-4-5"
    found = _breaks(
        request(0, sent=blocks(*range(50)), prompt=5000),
        request(1, sent=blocks(*range(60)), prompt=6000, model=other),
        request(2, sent=blocks(*range(70)), prompt=7000),
        request(3, sent=blocks(*range(75)), prompt=7500),
    )
    assert {(one.request, one.cause, one.lost_tokens) for one in found} == {("s:1", "model", 5000)}
    found = _breaks(
        request(0, sent=blocks(*range(50)), prompt=5000),
        request(1, sent=blocks(*range(90)), prompt=9000, model=other),
        request(2, sent=blocks(*range(95)), prompt=9500),
    )
    assert {(one.request, one.lost_tokens) for one in found} == {("s:1", 5000), ("s:2", 4000)}


def test_what_the_cache_gave_all_the_same_was_not_lost() -> None:
    before = request(0, sent=blocks(*range(50)), prompt=5000, cache_read=0)
    after = request(1, sent=blocks(*range(20), *range(100, 140)), prompt=6000, cache_read=5500)
    (one,) = _breaks(before, after)
    assert one.lost_tokens == 500


def test_a_request_without_a_price_has_a_break_without_one() -> None:
    found = _breaks(
        request(0, sent=blocks(*range(50)), prompt=5000, model="m", provider="p"),
        request(1, sent=blocks(*range(20), 99), prompt=6000, model="m", provider="p"),
    )
    assert [one.usd for one in found] == [None]


def test_all_are_counted_and_the_costliest_listed() -> None:
    turns = [
        request(at, sent=blocks(*range(20), *range(1000 * at, 1000 * at + 40)), prompt=6000)
        for at in range(250)
    ]
    made = report(*turns)
    assert made.break_totals.count == 249
    assert len(made.breaks) == 200
    assert made.break_totals.lost_tokens == 249 * 4000
