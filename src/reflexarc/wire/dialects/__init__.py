"""The dialects of LLM APIs, one package each: bytes of theirs to asks and replies, and back."""
