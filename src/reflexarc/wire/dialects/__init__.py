"""The dialects of LLM APIs, one package each: bytes of theirs to asks and replies, and back."""

from importlib import import_module
from typing import cast

from reflexarc.wire.dialect import Dialect

NAMES = ("chat", "responses", "messages", "gemini")


def dialect(name: str) -> Dialect:
    """The dialect of this name, one of `NAMES`. Each is loaded when it is first asked for."""
    if name not in NAMES:
        raise ValueError(f"there is no dialect {name!r}; known are {', '.join(NAMES)}")
    return cast(Dialect, import_module(f"reflexarc.wire.dialects.{name}").DIALECT)


def load_dialects() -> None:
    """Loads all of them, so that nobody's first request waits for it."""
    for name in NAMES:
        dialect(name)
