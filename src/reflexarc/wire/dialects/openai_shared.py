"""What chat and responses say alike, so that each can say what came in the other.

Members of a request under the same name and with the same meaning, and custom tools, which chat
nests and responses keeps flat.
"""

from typing import Any, cast

SAME_SETTINGS = frozenset(
    {
        "safety_identifier",
        "prompt_cache_retention",
        "prompt_cache_options",
        "moderation",
    }
)
"""Members of `Settings.more` that both know, in the same words."""

FAMILY = frozenset({"chat", "responses"})


def custom_to_flat(value: dict[str, Any]) -> dict[str, Any]:
    """A custom tool as chat gives it (`{"type", "custom": {...}}`), as responses does."""
    inner = value.get("custom")
    if not isinstance(inner, dict):
        return value
    members = cast("dict[str, Any]", inner)
    flat: dict[str, Any] = {"type": "custom"}
    for name, held in members.items():
        given: Any = held
        if name == "format" and isinstance(held, dict):
            form = cast("dict[str, Any]", held)
            grammar = form.get("grammar")
            if isinstance(grammar, dict):
                given = {"type": "grammar", **cast("dict[str, Any]", grammar)}
        flat[name] = given
    return flat


def custom_to_nested(value: dict[str, Any]) -> dict[str, Any]:
    """The same the other way round."""
    if "custom" in value:
        return value
    inner: dict[str, Any] = {}
    for name, held in value.items():
        if name == "type":
            continue
        given: Any = held
        if name == "format" and isinstance(held, dict):
            form = dict(cast("dict[str, Any]", held))
            if form.pop("type", None) == "grammar":
                given = {"type": "grammar", "grammar": form}
        inner[name] = given
    return {"type": "custom", "custom": inner}
