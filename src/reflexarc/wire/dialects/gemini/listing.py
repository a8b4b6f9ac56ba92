"""The list of models (`GET /v1beta/models`), read and written."""

from collections.abc import Iterable
from typing import Any, NamedTuple, cast

_METHODS = ["generateContent", "streamGenerateContent", "countTokens"]


class ListedModel(NamedTuple):
    """`id` is without `models/`. Limits are tokens, None where nothing is told."""

    id: str
    display_name: str = ""
    description: str = ""
    input_limit: int | None = None
    output_limit: int | None = None


def read_models(value: Any) -> list[ListedModel]:
    """The models that can answer; what is no model is passed over."""
    listed: Any = cast("dict[str, Any]", value).get("models") if isinstance(value, dict) else None
    models: list[ListedModel] = []
    for one in cast("list[Any]", listed) if isinstance(listed, list) else []:
        if not isinstance(one, dict):
            continue
        given = cast("dict[str, Any]", one)
        name = given.get("name")
        methods = given.get("supportedGenerationMethods")
        answers = methods is None or (isinstance(methods, list) and _METHODS[0] in methods)
        if isinstance(name, str) and name and answers:
            models.append(
                ListedModel(
                    name.removeprefix("models/"),
                    _text(given.get("displayName")),
                    _text(given.get("description")),
                    _limit(given.get("inputTokenLimit")),
                    _limit(given.get("outputTokenLimit")),
                )
            )
    return models


def write_models(models: Iterable[ListedModel]) -> dict[str, Any]:
    return {"models": [write_model(model) for model in models]}


def write_model(model: ListedModel) -> dict[str, Any]:
    """One of the list, and the body of `GET /v1beta/models/NAME`."""
    made: dict[str, Any] = {"name": f"models/{model.id}"}
    made["displayName"] = model.display_name or model.id
    if model.description:
        made["description"] = model.description
    if model.input_limit is not None:
        made["inputTokenLimit"] = model.input_limit
    if model.output_limit is not None:
        made["outputTokenLimit"] = model.output_limit
    made["supportedGenerationMethods"] = list(_METHODS)
    return made


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _limit(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
