"""A conversation's messages are worked through once; a bounded memory forgets the oldest."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reflexarc.gateway.asked import Requests
from reflexarc.gateway.conversations import Conversations
from reflexarc.reflex.decision import Decision
from reflexarc.steps import Message
from reflexarc.steps.errors import MalformedError, RequestError
from reflexarc.wire.offered import ToolReader
from reflexarc.wire.sent import Listed, chain


class _Context:
    def __init__(self) -> None:
        self.seen: list[str] = []

    def extend(self, messages: Sequence[Message]) -> None:
        self.seen += [message.content for message in messages]


class _Reflex:
    def context(self) -> _Context:
        return _Context()

    def decide(self, context: Any, tools: Any, **options: Any) -> Decision:
        raise NotImplementedError


def _seen(context: Any) -> list[str]:
    return context.seen


def _raws(*texts: str) -> list[msgspec.Raw]:
    return [msgspec.Raw(msgspec.json.encode({"role": "user", "content": t})) for t in texts]


def _memory(max_contexts: int = 10, max_bytes: int = 10**6) -> Conversations:
    return Conversations(max_contexts, max_bytes)


READ = Requests(ToolReader(128), 128).chat


@given(
    texts=st.lists(st.sampled_from("abc"), min_size=1, max_size=12),
    cuts=st.lists(st.integers(1, 12), max_size=6),
)
def test_any_way_of_growing_gives_the_same_context(texts: list[str], cuts: list[int]) -> None:
    memory = _memory()
    reflex = _Reflex()
    for cut in sorted({min(c, len(texts)) for c in cuts} | {len(texts)}):
        conversation = memory.take(b"t", "r", reflex, Listed(_raws(*texts[:cut])), READ)
        assert _seen(conversation.context) == texts[:cut]
        assert conversation.head == chain(_raws(*texts[:cut]))[-1]
        memory.keep(b"t", "r", conversation)


@given(
    st.lists(st.text(max_size=5), max_size=8), st.lists(st.text(max_size=5), min_size=1, max_size=8)
)
def test_a_chain_of_appends_equals_one_chain(before: list[str], after: list[str]) -> None:
    start = chain(_raws(*before))[-1] if before else b""
    assert chain(_raws(*after), start)[-1] == chain(_raws(*before, *after))[-1]


def test_only_new_messages_are_read() -> None:
    memory = _memory()
    reflex = _Reflex()
    memory.keep(b"t", "r", memory.take(b"t", "r", reflex, Listed(_raws("a", "b")), READ))
    grown = memory.take(b"t", "r", reflex, Listed(_raws("a", "b", "c")), READ)
    assert grown.reused == 2
    memory.keep(b"t", "r", grown)
    assert memory.take(b"t", "r", reflex, Listed(_raws("a", "b", "c")), READ).reused == 3


def test_a_branch_starts_anew_and_is_right() -> None:
    memory = _memory()
    reflex = _Reflex()
    memory.keep(b"t", "r", memory.take(b"t", "r", reflex, Listed(_raws("a", "b", "c")), READ))
    branch = memory.take(b"t", "r", reflex, Listed(_raws("a", "x")), READ)
    assert (branch.reused, _seen(branch.context)) == (0, ["a", "x"])


@pytest.mark.parametrize(("tenant", "name"), [(b"other", "r"), (b"t", "other")])
def test_nothing_is_shared_between_tenants_or_reflexes(tenant: bytes, name: str) -> None:
    memory = _memory()
    reflex = _Reflex()
    memory.keep(b"t", "r", memory.take(b"t", "r", reflex, Listed(_raws("a")), READ))
    assert memory.take(tenant, name, reflex, Listed(_raws("a")), READ).reused == 0


def test_a_faulty_message_harms_nothing_held() -> None:
    memory = _memory()
    reflex = _Reflex()
    memory.keep(b"t", "r", memory.take(b"t", "r", reflex, Listed(_raws("a")), READ))
    twice = msgspec.Raw(b'{"role":"user","role":"user"}')
    with pytest.raises(MalformedError):
        memory.take(b"t", "r", reflex, Listed([*_raws("a"), twice]), READ)
    with pytest.raises(RequestError) as caught:
        memory.take(
            b"t", "r", reflex, Listed([*_raws("a"), msgspec.Raw(b'{"role":"oracle"}')]), READ
        )
    assert caught.value.param == "messages[1].role"
    assert memory.take(b"t", "r", reflex, Listed(_raws("a", "b")), READ).reused == 1


def test_the_oldest_is_forgotten_by_number_and_by_bytes() -> None:
    for memory in (_memory(max_contexts=2), _memory(max_bytes=2 * len(_raws("a")[0]))):
        reflex = _Reflex()
        for text in "abc":
            memory.keep(b"t", "r", memory.take(b"t", "r", reflex, Listed(_raws(text)), READ))
        assert memory.take(b"t", "r", reflex, Listed(_raws("a")), READ).reused == 0
        assert memory.take(b"t", "r", reflex, Listed(_raws("c")), READ).reused == 1
