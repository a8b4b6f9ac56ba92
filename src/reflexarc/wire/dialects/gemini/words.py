"""Gemini's words: why an answer stopped, and what it tells beside its content."""

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
