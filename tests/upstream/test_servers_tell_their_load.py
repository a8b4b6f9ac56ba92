"""What a model server says of its load is read as it says it, and believed while it is fresh."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reflexarc.upstream.circuit import CircuitLimits
from reflexarc.upstream.deployments import Deployment
from reflexarc.upstream.fleet import POLL_S, Fleet, Watched
from reflexarc.upstream.readings import (
    MAX_SLOTS,
    Reading,
    read_metrics,
    read_slots,
    together,
)

VLLM = b"""# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="Qwen/Qwen3-32B"} 3.0
vllm:num_requests_running{engine="1",model_name="Qwen/Qwen3-32B"} 2.0
vllm:num_requests_waiting{engine="0",model_name="Qwen/Qwen3-32B"} 1.0
vllm:num_requests_waiting{engine="1",model_name="Qwen/Qwen3-32B"} 0.0
vllm:num_requests_waiting_by_reason{engine="0",model_name="q",reason="capacity"} 7.0
vllm:kv_cache_usage_perc{engine="0",model_name="Qwen/Qwen3-32B"} 0.25
vllm:kv_cache_usage_perc{engine="1",model_name="Qwen/Qwen3-32B"} 0.5
vllm:prefix_cache_queries_total{engine="0",model_name="Qwen/Qwen3-32B"} 1.5e+06
vllm:prefix_cache_hits_total{engine="0",model_name="Qwen/Qwen3-32B"} 900000.0
vllm:prefix_cache_hits_created{engine="0",model_name="Qwen/Qwen3-32B"} 1.7e+09
process_start_time_seconds 1.7e+09
"""
OLDER_VLLM = b"""vllm:num_requests_running{model_name="m"} 4.0
vllm:num_requests_waiting{model_name="m"} 6.0
vllm:gpu_cache_usage_perc{model_name="m"} 0.75
vllm:gpu_prefix_cache_queries_total{model_name="m"} 10.0
vllm:gpu_prefix_cache_hits_total{model_name="m"} 5.0
"""
SGLANG = b"""sglang:num_running_reqs{model_name="m",tp_rank="0",engine_type="unified"} 8.0
sglang:num_running_reqs{model_name="m",tp_rank="1",engine_type="unified"} 8.0
sglang:num_queue_reqs{model_name="m",tp_rank="0",engine_type="unified"} 2.0
sglang:num_queue_reqs{model_name="m",tp_rank="1",engine_type="unified"} 2.0
sglang:token_usage{model_name="m",tp_rank="0"} 0.28
sglang:prompt_tokens_total{model_name="m"} 8.1e+06
sglang:cached_tokens_total{model_name="m",cache_source="device"} 3e+06
sglang:cached_tokens_total{model_name="m",cache_source="host"} 1e+06
"""
LLAMACPP = b"""llamacpp:prompt_tokens_total 700
llamacpp:prompt_tokens_cached_total 300
llamacpp:requests_processing 2
llamacpp:requests_deferred 1
"""
SLOTS = [
    {"id": 0, "n_ctx": 512, "speculative": False, "is_processing": True, "prompt": "x"},
    {"id": 1, "n_ctx": 512, "speculative": False, "is_processing": False},
]


def test_vllms_engines_are_added_up() -> None:
    assert read_metrics(VLLM) == Reading(5.0, 1.0, 0.5, 1.5e6, 9e5, 1.7e9)
    assert read_metrics(OLDER_VLLM) == Reading(4.0, 6.0, 0.75, 10.0, 5.0)


def test_sglangs_ranks_that_share_the_work_are_counted_once() -> None:
    assert read_metrics(SGLANG) == Reading(8.0, 2.0, 0.28, 8.1e6, 4e6)


def test_of_llama_cpp_metrics_and_slots_are_read_together() -> None:
    metrics, slots = read_metrics(LLAMACPP), read_slots(json.dumps(SLOTS).encode())
    assert metrics == Reading(2.0, 1.0, queried=1_000.0, hit=300.0)
    assert slots == Reading(running=1.0, slots=2)
    assert together(metrics, slots) == Reading(2.0, 1.0, queried=1_000.0, hit=300.0, slots=2)
    assert together(None, slots) == slots
    assert together(metrics, None) == metrics
    assert together(None, None) is None


@pytest.mark.parametrize(
    "said",
    [
        b"", b"<html>404</html>", b"vllm:num_requests_running", b"process_start_time_seconds 1",
        b"vllm:num_requests_running{model_name=\"m\"} NaN", b"vllm:num_requests_running -3",
        b"vllm:num_requests_running{model_name=\"m} 3", b"vllm:num_requests_running x", b"\xff\xfe",
    ],
)  # fmt: skip
def test_what_tells_nothing_is_no_reading(said: bytes) -> None:
    assert read_metrics(said) is None


def test_a_label_may_hold_anything() -> None:
    said = rb'vllm:num_requests_running{model_name="a} 9 \"{b\\",engine="0"} 3'
    assert read_metrics(said) == Reading(running=3.0)


@pytest.mark.parametrize(
    "said", [b"", b"{}", b"[]", b"[1]", b'[{"id": "x"}]', b"[" * 10_000, b'{"error": {}}']
)
def test_what_is_no_list_of_slots_is_no_reading(said: bytes) -> None:
    assert read_slots(said) is None


def test_more_slots_than_any_server_has_are_not_believed() -> None:
    assert read_slots(json.dumps([{"id": 0}] * (MAX_SLOTS + 1)).encode()) is None


@given(st.binary(max_size=200), st.integers(0, len(VLLM)), st.integers(0, len(VLLM)))
def test_nothing_that_a_server_says_breaks_the_reader(noise: bytes, begin: int, end: int) -> None:
    for said in (noise, VLLM[:begin] + noise + VLLM[end:]):
        reading = read_metrics(said)
        if reading is not None and reading.load is not None:
            assert reading.load >= 0
        read_slots(said)


def test_a_server_whose_counters_fell_or_whose_start_is_another_began_anew() -> None:
    before = Reading(queried=100.0, hit=50.0)
    assert not Reading(queried=100.0, hit=50.0).began_anew(before)
    assert not Reading(queried=120.0, hit=50.0).began_anew(before)
    assert not Reading(running=1.0).began_anew(before)
    assert Reading(queried=3.0, hit=0.0).began_anew(before)
    started = Reading(queried=100.0, started_s=5.0)
    assert Reading(queried=900.0, started_s=6.0).began_anew(started)
    assert not Reading(queried=900.0, started_s=5.0).began_anew(started)


def watched(max_parallel: int | None = None) -> Watched:
    deployment = Deployment(
        provider="p", kind="vllm", base="http://h", dialects=("chat",), model="m",
        max_parallel=max_parallel,
    )  # fmt: skip
    return Watched(deployment, CircuitLimits())


async def test_what_others_have_at_work_counts_and_ones_own_is_counted_once() -> None:
    one = watched()
    assert one.load(0.0) == 0
    one.told(Reading(running=7.0, waiting=1.0), busy=2, now_s=0.0)
    for _ in range(5):
        await one.slots.take("standard")
    assert one.load(1.0) == 11  # eight then, three more of its own since
    for _ in range(5):
        one.slots.give("standard")
    assert one.load(1.0) == 6  # those of its own are over
    assert one.load(3 * POLL_S + 0.1) == 0  # too long ago


async def test_a_server_is_full_where_its_slots_are_taken_or_many_wait() -> None:
    one = watched()
    assert not one.full(0.0)
    one.told(Reading(running=2.0, waiting=0.0, slots=2), busy=0, now_s=0.0)
    assert one.full(1.0)
    assert one.weight(1.0) == 2
    assert not one.full(60.0)
    one.told(Reading(running=90.0, waiting=3.0), busy=0, now_s=0.0)
    assert not one.full(1.0)
    one.told(Reading(running=90.0, waiting=5.0), busy=0, now_s=0.0)
    assert one.full(1.0)
    assert watched(8).weight(0.0) == 8


def test_what_a_server_told_is_shown_and_survives_a_new_configuration() -> None:
    fleet = Fleet()
    deployment = watched().deployment
    fleet.adopt([deployment])
    fleet.of("p/m").told(Reading(running=1.0), 0, 5.0)
    assert fleet.shown(6.0)[0]["server"] == msgspec.structs.asdict(Reading(running=1.0))
    later = Fleet()
    later.adopt([deployment], fleet)
    assert later.of("p/m").reading == Reading(running=1.0)
    assert later.shown(6.0)[0]["server"] is None  # until it is asked again
