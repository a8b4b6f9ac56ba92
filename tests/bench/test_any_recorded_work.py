"""Whatever requests a log holds, a report is made of them, and its figures agree."""

from array import array

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from reflexarc.bench.waste import Waste
from reflexarc.bench.waste_page import page
from reflexarc.steps.prompt import Blocks, Piece, Prompt
from reflexarc.traces.requests import (
    ABSENT,
    Counts,
    Figure,
    RecordedRequest,
    RecordedTool,
    derived,
    estimated,
    measured,
)
from tests.bench.recorded import report


def _figures(most: float) -> st.SearchStrategy[Figure]:
    values = st.integers(0, int(most)) | st.floats(0, most, allow_nan=False)
    made = st.sampled_from([measured, derived, estimated])
    return st.just(ABSENT) | st.builds(lambda how, value: how(value), made, values)


_names = st.sampled_from(["", "a", "b", "<b>&", "\u202e\x1b[2J", "é\ud800"])
_messages = st.lists(
    st.sampled_from(["", "x" * 600, "y" * 40, '{"role": "user", "content": "hi"}', "10:00:01"]),
    max_size=5,
)
_prompts = st.none() | st.one_of(
    st.builds(
        lambda texts, plain, complete: Prompt(
            tuple(
                Piece("message" if at else "system", f"messages[{at}]", text.encode(), plain=plain)
                for at, text in enumerate(texts)
            ),
            complete,
        ),
        _messages,
        st.booleans(),
        st.booleans(),
    ),
    st.builds(
        lambda ids, size: Blocks(size, array("q", ids)),
        st.lists(st.integers(-1, 3), max_size=8),
        st.sampled_from([1, 64]),
    ),
)
_times = _figures(3e9)
_tools = st.builds(RecordedTool, _names, began_s=_times, ended_s=_times, own_s=_figures(100))
_requests = st.builds(
    RecordedRequest,
    id=_names,
    session=_names,
    file=_names,
    agent=st.sampled_from(["", "sub"]),
    model=st.sampled_from(["claude-opus-4-5", "gpt-5.4", "", "other"]),
    provider=st.sampled_from(["anthropic", "openai", "", "x"]),
    service_tier=st.sampled_from(["", "batch", "odd"]),
    began_s=_times,
    first_s=_times,
    ended_s=_times,
    gap=st.booleans(),
    counts=st.builds(
        Counts,
        prompt=_figures(1e7),
        cache_read=_figures(1e7),
        cache_write=_figures(1e7),
        cache_write_1h=_figures(1e7),
        output=_figures(1e6),
        context=_figures(1e7),
    ),
    cost_usd=_figures(100),
    tools=st.lists(_tools, max_size=3).map(tuple),
    prompt=_prompts,
    starts=st.sampled_from(["", "session", "compaction"]),
    failed=st.booleans(),
    unknown_cache=st.booleans(),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(_requests, max_size=8))
def test_a_report_is_made_of_any_requests_and_its_figures_agree(
    requests: list[RecordedRequest],
) -> None:
    made = report(*requests)
    counted = [one for one in requests if not one.failed]
    assert made.totals.requests == len(counted)
    for rows in (made.files, made.models, made.sessions):
        assert sum(row.requests for row in rows) == len(counted)
    for one in made.breaks:
        assert 0 < one.lost_tokens <= max(one.prompt_tokens, *_sent(counted)) + 1
        assert one.usd is None or one.usd >= 0
    for band in (*made.redundancy_by_context, *made.redundancy_any_earlier_by_context):
        assert 0 <= band.p10 <= band.median <= band.p90 <= 1
    for expired in made.cache_expiry:
        assert 0 <= expired.cold_share <= expired.share + 1e-6 <= 1 + 2e-6
    for saving in made.savings:
        assert (saving.usd or 0) >= 0
        assert (saving.tokens or 0) >= 0
        assert (saving.seconds or 0) >= 0
    assert made.verdicts
    assert page(made, "any").encode()
    assert msgspec.convert(msgspec.to_builtins(made), Waste) == made


def _sent(requests: list[RecordedRequest]) -> list[float]:
    return [0.0, *(one.counts.prompt.value or 0 for one in requests)]
