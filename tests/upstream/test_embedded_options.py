"""What can be set of the embedded engine, and how far."""

from typing import Any

import msgspec
import pytest

from reflexarc.upstream.embedded import EngineOptions


def read(**fields: Any) -> EngineOptions:
    return msgspec.convert(fields, EngineOptions)


@pytest.mark.parametrize(
    ("name", "least", "most", "beyond"),
    [
        ("slots", 1, 16, (0, 17)),
        ("context_tokens", 512, 8192, (511, 8193)),
        ("threads", 0, 256, (-1, 257)),
        ("save_after_s", 0.05, 86_400, (0, 86_401)),
        ("save_from_tokens", 1, 8192, (0, 8193)),
        ("saved_mib", 0, 1_048_576, (-1, 1_048_577)),
        ("saved_hours", 0.01, 8784, (0, 8785)),
    ],
)
def test_each_has_its_range(name: str, least: float, most: float, beyond: tuple[Any, Any]) -> None:
    for value in (least, most):
        assert getattr(read(**{name: value}), name) == value
    for value in beyond:
        with pytest.raises(msgspec.ValidationError, match=name):
            read(**{name: value})


@pytest.mark.parametrize("fields", [{"kv_type": "q4_0"}, {"ngram": 1}, {"slot": 2}])
def test_what_there_is_not_cannot_be_set(fields: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        read(**fields)


def test_memory_follows_from_slots_and_kind_of_cache() -> None:
    assert read(slots=4).cache_bytes == (4 * 8192 + 2048) * 23_040
    assert read(slots=1, context_tokens=1024, kv_type="q8_0").cache_bytes == 3072 * 12_240
