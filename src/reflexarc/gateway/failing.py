"""Where the gateway itself failed, for its log: never what of a conversation it failed on."""

import traceback


def place_of(error: Exception) -> str:
    """Kind and place of an error without its message, which may quote a conversation."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} at {last.filename}:{last.lineno} in {last.name}"
