"""Words that the messages dialect and others have for the same thing. Tables, nothing more."""

from reflexarc.wire.replies import Stop

NAME = "messages"

STOPS: dict[str, Stop] = {
    "end_turn": "end",
    "tool_use": "calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "stop_sequence": "stop_sequence",
    "refusal": "refusal",
    "pause_turn": "pause",
    "compaction": "pause",
}

STOP_WORDS: dict[Stop, str] = {
    "end": "end_turn",
    "calls": "tool_use",
    "length": "max_tokens",
    "truncated": "max_tokens",
    "stop_sequence": "stop_sequence",
    "refusal": "refusal",
    "filter": "refusal",
    "pause": "pause_turn",
}

TIERS: dict[str, str] = {"auto": "auto", "standard_only": "default"}
"""What a request may ask for, and the word for it between dialects (OpenAI's)."""

TIERS_USED: dict[str, str] = {"standard": "default", "priority": "priority", "batch": "batch"}
"""What an answer says was used."""

EFFORTS: dict[str, str] = {
    "minimal": "low",
    "low": "low",
    "medium": "medium",
    "high": "high",
    "xhigh": "xhigh",
    "max": "max",
}

_THEIRS: dict[str, dict[str, str]] = {
    "chat": {
        "count": "n",
        "output": "response_format",
        "reasoning": "reasoning_effort",
        "cache_key": "prompt_cache_key",
        "previous": "previous_response_id",
        "choice": "tool_choice",
        "turns": "messages",
        "image": "image_url",
        "document": "file",
        "audio": "input_audio",
    },
    "responses": {
        "count": "n",
        "output": "text.format",
        "verbosity": "text.verbosity",
        "cache_key": "prompt_cache_key",
        "previous": "previous_response_id",
        "choice": "tool_choice",
        "turns": "input",
        "image": "input_image",
        "document": "input_file",
        "audio": "input_audio",
    },
    "gemini": {
        "temperature": "generationConfig.temperature",
        "top_p": "generationConfig.topP",
        "seed": "generationConfig.seed",
        "presence_penalty": "generationConfig.presencePenalty",
        "frequency_penalty": "generationConfig.frequencyPenalty",
        "count": "generationConfig.candidateCount",
        "stop": "generationConfig.stopSequences",
        "output": "generationConfig.responseMimeType",
        "reasoning": "generationConfig.thinkingConfig",
        "choice": "toolConfig",
        "turns": "contents",
    },
}


def theirs(dialect: str, member: str) -> str:
    """A member of `Settings`, or a kind of content, in the words of a dialect."""
    return _THEIRS.get(dialect, {}).get(member, member)
