"""Whole answers of `generateContent`, read."""

from typing import Any

from reflexarc.wire.assembling import Assembler, BrokenOffError
from reflexarc.wire.dialects.gemini.shapes import camel
from reflexarc.wire.dialects.gemini.streams_in import GeminiStreamReader
from reflexarc.wire.faults import Fault
from reflexarc.wire.replies import Reply

_TELLING = frozenset({"candidates", "promptFeedback", "usageMetadata", "error"})


def read_reply(value: dict[str, Any]) -> Reply:
    """Raises `BrokenOffError` where it is no answer, or tells an error."""
    if _TELLING.isdisjoint(camel(name) for name in value):
        message = "the provider's body holds no candidates"
        raise BrokenOffError(Fault("upstream", message, 502, code="upstream_malformed"))
    reader = GeminiStreamReader()
    assembler = Assembler()
    for event in reader.take(value):
        assembler.take(event)
    if assembler.fault is None:
        for event in reader.end():
            assembler.take(event)
    return assembler.reply()
