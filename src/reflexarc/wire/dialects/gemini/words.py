"""Gemini's words: why an answer stopped, what it tells beside its content, a model in a path."""

from urllib.parse import quote

from reflexarc.steps.errors import RequestError
from reflexarc.wire.replies import Stop

STOPS: dict[str, Stop] = {
    "STOP": "end",
    "MAX_TOKENS": "length",
    "SAFETY": "filter",
    "RECITATION": "filter",
    "LANGUAGE": "filter",
    "BLOCKLIST": "filter",
    "PROHIBITED_CONTENT": "filter",
    "SPII": "filter",
    "IMAGE_SAFETY": "filter",
    "IMAGE_PROHIBITED_CONTENT": "filter",
    "IMAGE_RECITATION": "filter",
    "MODEL_ARMOR": "filter",
    "CONTINUATION": "pause",
}
BROKEN = frozenset(
    {
        "MALFORMED_FUNCTION_CALL",
        "MALFORMED_RESPONSE",
        "UNEXPECTED_TOOL_CALL",
        "TOO_MANY_TOOL_CALLS",
        "MISSING_THOUGHT_SIGNATURE",
    }
)
"""The model's turn came to nothing: an error where there is no answer, a cut one where there is."""
PLAIN = frozenset({"STOP", "MAX_TOKENS", "SAFETY", "CONTINUATION"})
"""Reasons that are written again as they were."""
BESIDE_CANDIDATES = frozenset({"promptFeedback", "modelStatus"})
REASONS: dict[Stop, str] = {
    "end": "STOP",
    "calls": "STOP",
    "stop_sequence": "STOP",
    "length": "MAX_TOKENS",
    "truncated": "MAX_TOKENS",
    "filter": "SAFETY",
    "refusal": "SAFETY",
    "pause": "CONTINUATION",
}
BESIDE_CONTENT = frozenset(
    {
        "finishReason",
        "finishMessage",
        "citationMetadata",
        "groundingMetadata",
        "groundingAttributions",
        "avgLogprobs",
        "logprobsResult",
        "safetyRatings",
        "urlContextMetadata",
        "continuationToken",
    }
)
"""What a candidate tells beside its content; read as parts, and put back here."""


def model_path(model: str) -> str:
    """A model as it stands in a URL's path, whose slashes are its own (`tunedModels/mine`). Raises
    `RequestError` for a name that would lead elsewhere: it may come from a client's body."""
    name = model.removeprefix("models/")
    if {"", ".", ".."} & set(name.split("/")):
        raise RequestError(f"model {model[:80]!r} is no name of a model", param="model")
    return "/models/" + quote(name, safe="/:@!$&'()*+,;=~")
