"""Conversations that Anthropic's servers hold (`thread`): whoever else answers has no such state.

Its SDK asks for one unasked, and sends the whole conversation again where it is told so.
"""

from reflexarc.steps.errors import InputError
from reflexarc.wire.turns import Ask

MEMBER = "thread"


class ThreadUnsupportedError(InputError):
    """A request that would begin a thread."""

    code = "thread_unsupported_request"


class ThreadNotFoundError(InputError):
    """A request that would go on with one."""

    code = "thread_not_found"
    status = 404


CODES = frozenset({ThreadUnsupportedError.code, ThreadNotFoundError.code})
"""Clients look for these in an error's `details`."""


def refuse_threads(ask: Ask) -> None:
    """Raises for a request that needs the server to remember what came before it."""
    thread = ask.settings.more.get(MEMBER)
    if thread is None:
        return
    goes_on = isinstance(thread, dict) and "previous_message_id" in thread
    said = "the upstream of this route holds no threads; send the whole conversation without thread"
    raise ThreadNotFoundError(said) if goes_on else ThreadUnsupportedError(said)
