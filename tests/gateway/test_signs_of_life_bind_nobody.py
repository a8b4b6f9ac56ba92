"""A client of a stream is kept waiting with signs of life; until content any deployment may answer,
and nothing but events of its dialect ever stands in its stream."""

import pytest

from reflexarc.gateway import system2
from reflexarc.wire.dialects import NAMES

from .asking import client_of
from .conftest import Starter
from .pools import Two, ask, pooled

SLOW = "slow=500"


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Silence is long after a tenth of a second."""
    monkeypatch.setattr(system2, "PING_S", 0.1)


@pytest.mark.parametrize("client", NAMES)
async def test_after_signs_of_life_another_deployment_still_answers(
    start: Starter, two: Two, client: str
) -> None:
    running = await pooled(start, two, ("chat", "messages"))
    two[0].script.append(f"{SLOW} error=503")
    spoken = client_of(client)
    path = spoken.path(stream=True).replace("faulty-1", "agent")
    version = {"anthropic-version": "2023-06-01"}
    answer = await running.post(path, ask(client, stream=True), version)
    assert answer.status == 200
    seen = spoken.gathered(answer.body)
    assert seen.ended
    assert seen.error is None
    assert seen.text == "Hello from the upstream."
    assert len(two[1].received) == 1


async def test_when_all_fail_after_one_the_stream_ends_with_an_error(
    start: Starter, two: Two
) -> None:
    running = await pooled(start, two)
    two[0].usual, two[1].usual = f"{SLOW} error=503", "error=529"
    answer = await running.chat(ask("chat", stream=True))
    assert answer.status == 200
    seen = client_of("chat").gathered(answer.body)
    assert seen.error is not None
    assert not seen.ended


async def test_a_whole_answer_does_not_end_up_inside_a_stream(start: Starter, two: Two) -> None:
    running = await pooled(start, two)
    two[0].usual = f"{SLOW} whole"
    answer = await running.chat(ask("chat", stream=True))
    seen = client_of("chat").gathered(answer.body)
    assert seen.error is not None
    assert not seen.ended
