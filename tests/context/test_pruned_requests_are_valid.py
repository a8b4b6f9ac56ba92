"""A pruned request says the same but for what was cut: every other byte stays, each result its
call, each signature its thinking."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reflexarc.context.horizon import fit
from reflexarc.context.pruning import Rules, Terms
from reflexarc.context.pruning_found import ImageBudget
from reflexarc.context.pruning_memory import Pruned, Pruner
from reflexarc.context.pruning_text import ID_PREFIX
from reflexarc.wire.dialects import dialect
from reflexarc.wire.growing import take_apart
from reflexarc.wire.json import decode_strict
from tests.context.talking import (
    body_of,
    conversation,
    grown,
    png,
    result_of,
    with_image,
)

DIALECTS = ("chat", "messages", "responses", "gemini")
FREE = Terms(1.0, 1.0, 0.0)
DEAR = Terms(0.3, 3.75, 0.05)
TTL_S = 300.0


def pruner(max_sessions: int = 100, max_items: int = 10_000) -> Pruner:
    rules = Rules(keep_turns=1, images=ImageBudget(tokens=1_000))
    horizon = fit([30] * 50)
    return Pruner(rules, horizon, max_sessions=max_sessions, max_items=max_items)


def pruned(name: str, items: list[dict[str, object]], terms: Terms = FREE) -> Pruned:
    return pruner().prune(b"t", "s", name, grown(name, items), terms, TTL_S, 0.0)


def read(identity: str, text: str, path: str = "a.py") -> tuple[str, str, dict[str, object], str]:
    return identity, "read_file", {"path": path, "n": 1.0}, text * 900


def history(name: str) -> list[dict[str, object]]:
    return [
        *conversation(name, read("c1", "old "), ("c2", "list", {}, "b"), read("c3", "new ")),
        *conversation(name, read("c4", "other", "b.py"))[1:],
    ]


@pytest.mark.parametrize("name", DIALECTS)
def test_a_result_out_of_date_is_a_reference_that_says_so(name: str) -> None:
    items = history(name)
    made = pruned(name, items)
    [cut] = made.cuts
    after = take_apart(made.body, dialect(name).conversation)
    said = result_of(name, after.item(cut.candidate.at))
    text = said["result"] if name == "gemini" else said
    assert "read again further below" in text
    assert "Do not call again for it" in text
    assert cut.id.startswith(ID_PREFIX)
    assert cut.id in text
    assert made.saved_tokens > 200
    [gone] = made.removed
    assert gone.id == cut.id
    assert b"old old" in gone.content


@pytest.mark.parametrize("name", DIALECTS)
def test_every_other_byte_stays(name: str) -> None:
    before = grown(name, history(name))
    made = pruned(name, history(name))
    after = take_apart(made.body, dialect(name).conversation)
    [at] = {cut.candidate.at for cut in made.cuts}
    assert made.body[: after.begins[at]] == before.body[: before.begins[at]]
    assert made.body[after.ends[at] :] == before.body[before.ends[at] :]
    # And of the item itself, all but the result.
    old = decode_strict(before.item(at), "item")
    new = decode_strict(after.item(at), "item")
    assert list(old) == list(new)
    assert old != new


@pytest.mark.parametrize("name", DIALECTS)
def test_an_old_image_becomes_a_part_of_words(name: str) -> None:
    items = [*conversation(name), *(with_image(name, png(800, 800)) for _ in range(3))]
    items += conversation(name, ("c1", "look", {}, "fine"), ("c2", "look", {}, "good"))[1:]
    made = pruned(name, items)
    assert len(made.cuts) == 2
    after = take_apart(made.body, dialect(name).conversation)
    for cut in made.cuts:
        parts = decode_strict(after.item(cut.candidate.at), "item")
        parts = parts["parts" if name == "gemini" else "content"]
        assert "earlier image" in parts[-1]["text"]
        assert parts[0] == items[cut.candidate.at]["parts" if name == "gemini" else "content"][0]
    assert png(800, 800).encode() in made.removed[0].content


def test_an_image_keeps_its_place_for_a_cache_mark() -> None:
    items = [*conversation("messages"), *(with_image("messages", png(800, 800)) for _ in range(2))]
    items[1]["content"][1]["cache_control"] = {"type": "ephemeral"}
    items += conversation("messages", ("c1", "look", {}, "fine"))[1:]
    made = pruned("messages", items)
    part = decode_strict(take_apart(made.body, "messages").item(1), "item")["content"][1]
    assert part["type"] == "text"
    assert part["cache_control"] == {"type": "ephemeral"}


def test_an_output_that_goes_takes_its_images_along() -> None:
    shown = [
        {"type": "text", "text": "x" * 6000},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png",
                                     "data": png(1200, 1200)}},
    ]  # fmt: skip
    one = ("c1", "read_file", {"path": "a.png", "n": 1.0}, shown)
    looks = [(f"d{at}", "look", {"n": at}, f"{at}") for at in range(2)]
    again = (read("c2", "new ", "a.png"), read("c3", "b", "b"))
    at_once = pruned("messages", conversation("messages", one, *again))
    assert [cut.candidate.why for cut in at_once.cuts] == ["read_again"]
    made = pruned("messages", conversation("messages", one, *looks, *again))
    assert [cut.candidate.why for cut in made.cuts] == ["image", "read_again"]
    assert len(made.removed) == 1
    assert abs(made.saved_tokens - at_once.saved_tokens) < 5
    assert isinstance(result_of("messages", take_apart(made.body, "messages").item(2)), str)


@pytest.mark.parametrize("name", DIALECTS)
def test_where_nothing_may_go_the_body_is_the_same_object(name: str) -> None:
    body = grown(name, conversation(name, read("c1", "a"), read("c2", "b", "b.py")))
    assert pruner().prune(b"t", "s", name, body, FREE, TTL_S, 0.0).body is body.body


def test_a_dialect_that_is_not_known_and_a_body_without_a_list_pass() -> None:
    body = take_apart(b'{"model":"m","input":"hello"}', "input")
    assert pruner().prune(b"t", "s", "responses", body, FREE, TTL_S, 0.0).body == body.body
    assert pruner().prune(b"t", "s", "other", body, FREE, TTL_S, 0.0).body == body.body


turn = st.tuples(
    st.sampled_from(["read_file", "write_file", "look"]),
    st.sampled_from(["a", "b", "c"]),
    st.sampled_from(["x", "y", "z"]),
)


@pytest.mark.parametrize("name", DIALECTS)
@settings(deadline=None, max_examples=40)
@given(turns=st.lists(turn, max_size=14), forgets=st.integers(0, 14))
def test_each_later_request_begins_as_the_one_before_or_is_cut_further(
    name: str, turns: list[tuple[str, str, str]], forgets: int
) -> None:
    calls = [
        (f"c{at}", tool, {"path": path}, text * 900) for at, (tool, path, text) in enumerate(turns)
    ]
    keeps = pruner()
    before: list[bytes] = []
    for end in range(1, len(calls) + 1):
        if end == forgets:
            keeps = pruner()  # decides the same from the history itself
        items = conversation(name, *calls[:end])
        made = keeps.prune(b"t", "s", name, grown(name, items), DEAR, TTL_S, 0.0)
        sent = take_apart(made.body, dialect(name).conversation)
        now = [sent.item(at) for at in range(len(sent))]
        if not made.new or end == forgets:
            assert now[: len(before)] == before or (end == forgets and made.new)
        assert len(now) == len(items)
        before = now
    assert keeps.prune(b"t", "s", name, grown(name, []), DEAR, TTL_S, 0.0).cuts == ()


def test_the_cache_gone_by_time_lets_all_go_at_once() -> None:
    looks = [(f"d{at}", "look", {"n": at}, f"{at}" * 20_000) for at in range(3)]
    calls = [read("c1", "old "), *looks, read("c2", "new "), read("c3", "b", "b.py")]
    keeps = pruner()
    first = grown("chat", conversation("chat", *calls))
    assert keeps.prune(b"t", "s", "chat", first, DEAR, TTL_S, 0.0).cuts == ()
    more = grown("chat", conversation("chat", *calls, ("e", "look", {}, "end")))
    within = pruner()
    within.prune(b"t", "s", "chat", first, DEAR, TTL_S, 0.0)
    assert within.prune(b"t", "s", "chat", more, DEAR, TTL_S, TTL_S - 1).cuts == ()
    assert len(keeps.prune(b"t", "s", "chat", more, DEAR, TTL_S, TTL_S + 1).cuts) == 1


def test_tenants_and_sessions_share_no_decisions_and_memory_is_bounded() -> None:
    keeps = pruner(max_sessions=3, max_items=40)
    body = grown("chat", history("chat"))
    for at in range(20):
        keeps.prune(b"t%d" % at, "s", "chat", body, FREE, TTL_S, 0.0)
        assert len(keeps) <= 3
        assert keeps.held_items <= 40 or len(keeps) == 1


def test_a_client_that_moves_a_cache_mark_goes_on_with_the_same_conversation() -> None:
    items = conversation("messages", read("c1", "old "), read("c2", "new "), read("c3", "b", "b"))
    keeps = pruner()
    first = keeps.prune(b"t", "s", "messages", grown("messages", items), FREE, TTL_S, 0.0)
    assert len(first.cuts) == 1
    items[-1]["content"][-1]["cache_control"] = {"type": "ephemeral"}
    again = keeps.prune(b"t", "s", "messages", grown("messages", items), DEAR, TTL_S, 0.0)
    assert (again.cuts, again.new) == (first.cuts, 0)
    assert body_of("messages", items) != again.body
