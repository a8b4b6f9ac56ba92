"""Answers to go on from: what a purge and a limit take of them, and what they leave."""

import json
from pathlib import Path

import pytest

from reflexarc.gateway.chains import Chains
from reflexarc.store.kept import KeptAnswer, KeptAnswers, forget_kept


def answer(identity: str, tenant: str = "t", *, at_s: float = 0.0, items: bytes = b"[]",
           parent: str | None = None) -> KeptAnswer:  # fmt: skip
    return KeptAnswer(tenant, identity, parent, True, at_s, items, b"{}")


def ids(kept: KeptAnswers, *tenants: str) -> list[str]:
    return [i for i in "abcd" for tenant in tenants or ("t",) if kept.get(tenant, i)]


SPELT = [
    json.dumps([{"content": "für Jörg 😀"}]),
    json.dumps([{"content": "für Jörg 😀"}], ensure_ascii=False),
    json.dumps([{"arguments": json.dumps({"name": "Jörg 😀"})}]),
    json.dumps([{"arguments": json.dumps({"name": "Jörg 😀"})}], ensure_ascii=False),
    json.dumps([{"output": json.dumps([{"text": json.dumps({"name": "Jörg 😀"})}])}]),
]


@pytest.mark.parametrize("items", SPELT)
def test_a_purged_value_is_found_however_it_is_spelt(items: str, tmp_path: Path) -> None:
    kept = KeptAnswers.open(tmp_path)
    kept.put(answer("a", items=items.encode()))
    kept.put(answer("b", items=b'[{"content":"J\\\\u00f6rn"}]'))
    assert kept.forget(["Jörg 😀"]) == 1
    assert ids(kept) == ["b"]
    kept.close()


def test_a_value_with_marks_and_lines_is_found(tmp_path: Path) -> None:
    kept = KeptAnswers.open(tmp_path)
    value = 'say "hi"\nC:\\new\\u0041'
    kept.put(answer("a", items=json.dumps([{"content": value}]).encode()))
    kept.put(answer("b", items=json.dumps([{"output": json.dumps([value])}]).encode()))
    assert kept.forget([value]) == 2
    kept.close()


def test_conditions_given_together_must_all_hold(tmp_path: Path) -> None:
    kept = KeptAnswers.open(tmp_path)
    for tenant in ("t", "u"):
        kept.put(answer("a", tenant, at_s=1.0))
        kept.put(answer("b", tenant, at_s=9.0))
    assert kept.forget([], tenants=["t"], before_s=5.0) == 1
    assert (ids(kept, "t"), ids(kept, "u")) == (["b"], ["a", "b"])
    kept.close()


def test_past_the_limit_the_oldest_go_and_no_more_than_must(tmp_path: Path) -> None:
    kept = KeptAnswers.open(tmp_path)
    for at, identity in enumerate("abcd"):
        kept.put(answer(identity, at_s=float(at), items=b"[" + b" " * 97 + b"]"))
    assert kept.retain(-1.0, max_bytes=250) == 2
    assert ids(kept) == ["c", "d"]
    kept.close()


async def test_a_gateway_that_runs_heeds_a_purge(tmp_path: Path) -> None:
    chains = Chains(tmp_path, 1.0, lambda: 0.0)
    chains.keep(answer("a", items=b'["secret"]'))
    chains.keep(answer("b", items=b'["other"]'))
    assert await chains.one("t", "a") is not None
    await chains.close()
    assert forget_kept(tmp_path, ["secret"]) == 1
    assert await chains.one("t", "a") is None
    assert await chains.one("t", "b") is not None
    await chains.close()


async def test_part_of_a_conversation_is_never_given_for_all_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chains = Chains(None, 1.0, lambda: 0.0)
    chains.keep(answer("same", parent="same"))
    assert await chains.chain("t", "same") is None
    for at in range(4):
        chains.keep(answer(str(at), parent=str(at - 1) if at else None))
    assert len(await chains.chain("t", "3") or ()) == 4
    monkeypatch.setattr("reflexarc.gateway.chains.MAX_TURNS", 3)
    assert await chains.chain("t", "3") is None
