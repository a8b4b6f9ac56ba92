"""What a step cost: the sums of its attempts, else System 2's price for its tokens."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest
from sqlalchemy import Row, select

from reflexarc.store.purging import Conditions, remove
from reflexarc.store.recording import Recording
from reflexarc.store.records import AttemptMade, StepEnded
from reflexarc.store.retention import retain
from reflexarc.store.schema import attempts, steps
from reflexarc.store.store import Store
from reflexarc.store.usage import used_of
from reflexarc.wire.answers import answer_from_body
from reflexarc.wire.price import Price
from reflexarc.wire.usage import Usage
from tests.store import stepping
from tests.store.stepping import BEGAN_S, at, chat, completion, says, user

SONNET = Price(Decimal(3), Decimal(15), Decimal("0.3"), Decimal("3.75"), Decimal(6))
REQUEST = chat([user("Where is order OR-1?")])


def step(**more: Any) -> StepEnded:
    return msgspec.structs.replace(stepping.step(REQUEST), price=SONNET, **more)


def attempt(micro_usd: int | None = 100, **more: Any) -> AttemptMade:
    made = AttemptMade(
        provider="groq", model="qwen/qwen3-32b", service_tier="flex", tier="interactive",
        outcome="answered", status=200, code="", first_token_ms=80.0, total_ms=200.0,
        usage=Usage(100, 10, cache_read=40, cache_write=30, cache_write_1h=20, reasoning=5),
        micro_usd=micro_usd,
    )  # fmt: skip
    return msgspec.structs.replace(made, **more)


def rows(recording: Recording, tmp_path: Path, one: StepEnded, answer: bytes) -> tuple[Any, Any]:
    recording.step(one, REQUEST, answer)
    assert recording.flush().fault == ""
    recording.close()
    store = Store.open(tmp_path / "reflexarc.db")
    try:
        with store.reading() as connection:
            found: Row[Any] = connection.execute(select(steps)).one()
            made = connection.execute(select(attempts).order_by(attempts.c.position)).all()
    finally:
        store.close()
    return found, made


ANSWERS: dict[str, dict[str, Any]] = {
    "messages": {
        "type": "message", "role": "assistant", "model": "m", "id": "i", "stop_reason": "end_turn",
        "content": [{"type": "text", "text": "x"}],
        "usage": {
            "input_tokens": 3, "cache_creation_input_tokens": 12304, "output_tokens": 550,
        },
    },
    "chat": json.loads(completion(
        says("x"),
        {
            "prompt_tokens": 12307, "completion_tokens": 550,
            "prompt_tokens_details": {"cache_write_tokens": 12304},
        },
    )),
    "responses": {
        "object": "response", "status": "completed", "id": "i", "model": "m",
        "output": [{
            "type": "message", "role": "assistant", "id": "o", "status": "completed",
            "content": [{"type": "output_text", "text": "x", "annotations": []}],
        }],
        "usage": {
            "input_tokens": 12307, "output_tokens": 550,
            "input_tokens_details": {"cache_write_tokens": 12304},
        },
    },
}  # fmt: skip


@pytest.mark.parametrize("dialect", ANSWERS)
def test_writing_to_a_cache_is_paid_in_every_dialect_that_tells_it(
    tmp_path: Path, dialect: str
) -> None:
    body = json.dumps(ANSWERS[dialect]).encode()
    assert answer_from_body(body, "application/json", dialect).complete
    found, made = rows(at(tmp_path), tmp_path, step(answer_dialect=dialect), body)
    assert found.cost_micro_usd == 54_399
    assert found.cost_usd == pytest.approx(0.0544, abs=1e-6)
    assert (found.prompt_tokens, found.cache_write_tokens) == (12_307, 12_304)
    assert (found.completion_tokens, found.tokens_estimated, found.partial) == (550, False, False)
    assert made == []


def test_an_act_costs_nothing_and_an_unknown_price_is_not_made_up() -> None:
    acted = used_of(step(decided_by="system1"), None, 400, 0)
    assert (acted.micro_usd, acted.usage, acted.estimated) == (0, Usage(100, 0), True)
    unpriced = used_of(msgspec.structs.replace(step(), price=None), None, 400, 40)
    assert (unpriced.micro_usd, unpriced.usage, unpriced.estimated) == (None, Usage(100, 10), True)


def test_an_answer_that_was_cut_off_is_marked_partial() -> None:
    assert used_of(step(complete=False), None, 400, 40).partial
    assert not used_of(step(), None, 400, 40).partial


def test_a_step_costs_what_all_its_attempts_cost(tmp_path: Path) -> None:
    failed = attempt(0, provider="cerebras", outcome="failed", status=500, code="http_500",
                     first_token_ms=None, usage=Usage(0, 0))  # fmt: skip
    lost = attempt(7, outcome="hedge_lost", partial=True, estimated=True, usage=Usage(50, 1))
    one = step(attempts=[failed, lost, attempt()])
    told = {
        "prompt_tokens": 999,
        "completion_tokens": 999,
    }  # what the client saw is not what it cost
    found, made = rows(at(tmp_path), tmp_path, one, completion(says("x"), told))
    assert (found.cost_micro_usd, found.cost_usd) == (107, 0.000107)
    assert (found.prompt_tokens, found.completion_tokens) == (150, 11)
    assert (found.cached_tokens, found.cache_write_tokens) == (40, 30)
    assert (found.partial, found.tokens_estimated) == (True, True)
    assert (found.tier, found.provider) == ("interactive", "groq")
    assert [row.position for row in made] == [0, 1, 2]
    assert (made[0].provider, made[0].code, made[0].first_token_ms) == (
        "cerebras",
        "http_500",
        None,
    )
    assert (made[2].service_tier, made[2].cache_write_1h_tokens) == ("flex", 20)
    assert (made[2].reasoning_tokens, made[2].micro_usd) == (5, 100)


def test_the_provider_of_a_step_is_whose_answer_the_client_got(tmp_path: Path) -> None:
    one = step(attempts=[attempt(), attempt(provider="openai", outcome="hedge_lost")])
    found, _ = rows(at(tmp_path), tmp_path, one, completion(says("x")))
    assert found.provider == "groq"


def test_one_unknown_price_leaves_the_whole_unknown_unless_nothing_was_used(
    tmp_path: Path,
) -> None:
    unknown = attempt(None)
    unused = attempt(None, usage=Usage(0, 0), outcome="failed")
    assert used_of(step(attempts=[attempt(), unknown]), None, 4, 0).micro_usd is None
    assert used_of(step(attempts=[attempt(), unused]), None, 4, 0).micro_usd == 100
    found, made = rows(
        at(tmp_path), tmp_path, step(attempts=[unused, unknown]), completion(says("x"))
    )
    assert (found.cost_micro_usd, found.cost_usd) == (None, None)
    assert [row.micro_usd for row in made] == [0, None]


@pytest.mark.parametrize("how", ["purge", "retention"])
def test_attempts_go_with_their_step(tmp_path: Path, how: str) -> None:
    rows(at(tmp_path), tmp_path, step(attempts=[attempt()]), completion(says("x")))
    store = Store.open(tmp_path / "reflexarc.db")
    if how == "purge":
        remove(store, Conditions(), b"k" * 32, "me", lambda: BEGAN_S + 1)
    else:
        retain(store, BEGAN_S + 1, 2**40)
    with store.reading() as connection:
        assert connection.execute(select(attempts)).all() == []
    store.close()


def test_attempts_cross_to_the_recorders_process() -> None:
    one = step(attempts=[attempt(), attempt(None)])
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(one), type=StepEnded) == one
