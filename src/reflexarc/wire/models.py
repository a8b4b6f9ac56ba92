"""Lists of models: each dialect's form, read and written.

What is written for OpenAI's and Anthropic's clients is one form that both read.
"""

from datetime import UTC, datetime
from typing import Any, cast

import msgspec

_ANSWERS = "generateContent"


class Model(msgspec.Struct, frozen=True):
    """`created_s` is Unix time, 0 where it is not told; limits are tokens."""

    id: str
    name: str = ""
    created_s: int = 0
    owner: str = ""
    about: str = ""
    input_limit: int | None = None
    output_limit: int | None = None


def read_models(value: dict[str, Any], dialect: str) -> list[Model]:
    """What the upstream lists; entries without an id are passed over."""
    listed = value.get("models" if dialect == "gemini" else "data")
    found: list[Model] = []
    for entry in cast("list[Any]", listed) if isinstance(listed, list) else ():
        model = _read(cast("dict[str, Any]", entry), dialect) if isinstance(entry, dict) else None
        if model is not None:
            found.append(model)
    return found


def _read(entry: dict[str, Any], dialect: str) -> Model | None:
    identity = entry.get("name" if dialect == "gemini" else "id")
    if not isinstance(identity, str) or not identity:
        return None
    methods = entry.get("supportedGenerationMethods")
    if isinstance(methods, list) and _ANSWERS not in methods:
        return None  # it makes vectors or images
    name = entry.get("displayName" if dialect == "gemini" else "display_name")
    owner = entry.get("owned_by")
    return Model(
        identity.removeprefix("models/"),
        name if isinstance(name, str) else "",
        _created(entry),
        owner if isinstance(owner, str) else "",
        _text(entry.get("description")),
        _limit(entry.get("inputTokenLimit")),
        _limit(entry.get("outputTokenLimit")),
    )


def _created(entry: dict[str, Any]) -> int:
    created = entry.get("created")
    if isinstance(created, int | float) and not isinstance(created, bool) and 0 <= created < 2**53:
        return int(created)
    text = entry.get("created_at")
    if isinstance(text, str):
        try:
            return max(0, int(datetime.fromisoformat(text).timestamp()))
        except (ValueError, OverflowError):
            return 0
    return 0


def write_models(models: list[Model], dialect: str, now_s: int) -> dict[str, Any]:
    """The list as clients of a dialect read it."""
    if dialect == "gemini":
        return {"models": [write_model(model, dialect, now_s) for model in models]}
    return {
        "object": "list",
        "data": [write_model(model, dialect, now_s) for model in models],
        "has_more": False,
        "first_id": models[0].id if models else None,
        "last_id": models[-1].id if models else None,
    }


def write_model(model: Model, dialect: str, now_s: int) -> dict[str, Any]:
    if dialect == "gemini":
        written: dict[str, Any] = {
            "name": f"models/{model.id}",
            "displayName": model.name or model.id,
            "supportedGenerationMethods": [_ANSWERS, "countTokens"],
        }
        said = {
            "description": model.about or None,
            "inputTokenLimit": model.input_limit,
            "outputTokenLimit": model.output_limit,
        }
        written.update({name: value for name, value in said.items() if value is not None})
        return written
    created_s = model.created_s or now_s
    at = datetime.fromtimestamp(min(created_s, 2**31), UTC)
    return {
        "id": model.id,
        "object": "model",
        "created": created_s,
        "owned_by": model.owner or "upstream",
        "type": "model",
        "display_name": model.name or model.id,
        "created_at": at.isoformat().replace("+00:00", "Z"),
    }


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _limit(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
