"""Keys: the gateway's own reach no client and no store, clients' reach no provider with its own."""

import json
from pathlib import Path

from reflexarc.gateway.config import Route
from reflexarc.gateway.config_pool import ModelConfig, ProviderConfig, Served

from .conftest import Starter
from .pools import Two, ask, asked, pool_of, pooled
from .test_accounts_bind_requests import Maker, bearer, key, with_keys
from .upstream import Upstream, http_answer

__all__ = ["key"]
SECRET = "sk-very-secret-0123456789"


async def test_a_provider_that_repeats_the_key_it_refuses_tells_it_to_nobody(
    start: Starter, two: Two, upstream: Upstream, state_dir: Path
) -> None:
    error = {"error": {"message": f"Incorrect API key provided: {SECRET}.", "code": SECRET}}
    upstream.answer = http_answer(json.dumps(error).encode(), status="401 Unauthorized")
    provider = ProviderConfig(url=upstream.url, key_env="KEY_a", private=True)
    pool = {
        **pool_of(two), "provider": {"a": provider},
        "model": {"agent": ModelConfig(standard=(Served("a", "m"),))},
    }  # fmt: skip
    running = await start(
        routes=(Route(upstream="models", mode="off", record="full"),),
        environment={"KEY_a": SECRET},
        pool=pool,
    )
    for client in ("chat", "messages"):
        for stream in (False, True):
            status, headers, said = await asked(running, client, stream=stream)
            assert status == 401
            assert "Incorrect API key" in json.dumps(said)
            assert SECRET not in json.dumps([headers, said])
    assert upstream.received[0].header(b"authorization") == f"Bearer {SECRET}".encode()
    assert SECRET not in running.gateway.metrics.text().decode()
    await running.gateway.recorder.close()
    for path in state_dir.rglob("*"):
        assert not path.is_file() or SECRET.encode() not in path.read_bytes(), path


async def test_whose_account_a_client_has_is_nothing_to_a_provider_with_its_own_key(
    start: Starter, two: Two
) -> None:
    running = await pooled(start, two)
    mine = {
        "openai-organization": "org-mine", "openai-project": "proj-mine",
        "x-goog-user-project": "mine", "cookie": "session=mine", "x-other": "passes",
    }  # fmt: skip
    await asked(running, "chat", stream=False, headers=mine)
    (received,) = two[0].received
    assert "mine" not in json.dumps(received.headers)
    assert received.headers["x-other"] == "passes"


async def test_a_virtual_key_beside_another_key_goes_nowhere(
    start: Starter, two: Two, key: Maker
) -> None:
    text = key()
    running = await with_keys(start, two, "required")
    sent = {"authorization": "Bearer sk-theirs", "x-api-key": text}
    answer = await running.post("/v1/chat/completions", ask("chat", stream=False), sent)
    assert answer.status == 200
    (received,) = two[0].received
    assert text not in str(received.headers)
    assert "sk-theirs" not in str(received.headers)


async def test_a_key_counts_no_tokens_of_a_model_that_it_may_not_use(
    start: Starter, two: Two, key: Maker
) -> None:
    running = await with_keys(start, two)
    body = {"model": "agent", "messages": [{"role": "user", "content": "hello"}]}
    path = "/v1/messages/count_tokens"
    assert (await running.post(path, body, bearer(key("no", models=("other",))))).status == 404
    assert (await running.post(path, body, bearer(key("yes", models=("agent",))))).status == 200
