"""Lists of models: read in each dialect, written for each kind of client."""

from typing import Any

import pytest

from reflexarc.wire.models import Model, read_models, write_model, write_models

NOW_S = 1_700_000_000


@pytest.mark.parametrize("dialect", ["chat", "responses", "messages", "gemini"])
def test_a_list_is_read_as_it_was_written(dialect: str) -> None:
    models = [Model("a/1", "A", 7, "us"), Model("b", "b", 8, "us")]
    found = read_models(write_models(models, dialect, NOW_S), dialect)
    assert [(model.id, model.name) for model in found] == [("a/1", "A"), ("b", "b")]


def test_what_google_tells_of_a_model_is_kept_for_its_clients() -> None:
    models = [Model("a", "A", about="first", input_limit=1000, output_limit=100)]
    assert read_models(write_models(models, "gemini", NOW_S), "gemini") == models
    assert write_model(models[0], "gemini", NOW_S)["name"] == "models/a"


def test_what_cannot_answer_is_no_model_here() -> None:
    listed: list[Any] = [
        {"name": "models/embed", "supportedGenerationMethods": ["embedContent"]},
        {"name": "models/a"},
        {"name": 7},
        "b",
    ]
    assert [model.id for model in read_models({"models": listed}, "gemini")] == ["a"]
    for value in ({}, {"data": None}, {"data": {}}, {"data": [{}, {"id": ""}, 3]}):
        assert read_models(value, "chat") == []


def test_odd_dates_harm_nothing() -> None:
    entries = [{"id": "a", "created": -1}, {"id": "b", "created_at": "soon"}, {"id": "c"}]
    models = read_models({"data": entries}, "chat")
    assert [model.created_s for model in models] == [0, 0, 0]
    assert write_model(models[0], "messages", NOW_S)["created_at"] == "2023-11-14T22:13:20Z"
    late = write_model(Model("a", created_s=10**15), "chat", NOW_S)
    assert late["created_at"].startswith("2038")
