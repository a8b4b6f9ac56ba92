"""How prompts of saved states begin, so that a session that begins like another goes on from its
state. In memory alone: after a restart a session finds its own state, and no other's."""

from collections import OrderedDict
from collections.abc import Callable

from reflexarc.upstream.embedded.owners import Owner

MAX_PROMPTS = 512
MAX_CHARS = 16 * 1024 * 1024
"""Of all prompts that are remembered; the least recently saved go first."""
LEAST_CHARS = 256
"""Less in common is not worth a state's loading."""


class Beginnings:
    """Prompts by owner. Nothing is found across tenants."""

    def __init__(self) -> None:
        self._prompts: OrderedDict[Owner, str] = OrderedDict()
        self._chars = 0

    def keep(self, owner: Owner, prompt: str) -> None:
        """A state of this session was saved once it had read this."""
        self._chars += len(prompt) - len(self._prompts.pop(owner, ""))
        self._prompts[owner] = prompt
        while len(self._prompts) > MAX_PROMPTS or self._chars > MAX_CHARS:
            _, gone = self._prompts.popitem(last=False)
            self._chars -= len(gone)

    def nearest(
        self, owner: Owner, prompt: str, has: Callable[[Owner], bool]
    ) -> tuple[Owner | None, int]:
        """Of the same tenant's states that are still there, the one that holds most of a prompt's
        beginning, and how many characters; none where that is too little."""
        found: Owner | None = None
        most = LEAST_CHARS - 1
        for other, known in self._prompts.items():
            if other.tenant != owner.tenant or not prompt.startswith(known[: most + 1]):
                continue
            shared = in_common(known, prompt)
            if shared > most and has(other):
                found, most = other, shared
        return found, 0 if found is None else most


def in_common(one: str, other: str) -> int:
    """How many characters two texts begin with alike."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
