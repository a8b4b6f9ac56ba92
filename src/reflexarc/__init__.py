"""reflexarc: System 1 for LLM agents. `from reflexarc import Reflex` is the door in process.

The names below are loaded when they are first asked for: the package alone costs nothing, and what
only knows its version needs no numpy.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reflexarc.reflex import Context as Context
    from reflexarc.reflex import Decision as Decision
    from reflexarc.reflex import Guarantee as Guarantee
    from reflexarc.reflex import ProposedCall as ProposedCall
    from reflexarc.reflex import Reflex as Reflex
    from reflexarc.reflex import learn as learn

__version__ = "0.1.0"

_FROM_REFLEX = ("Context", "Decision", "Guarantee", "ProposedCall", "Reflex", "learn")


def __getattr__(name: str) -> Any:
    if name not in _FROM_REFLEX:
        raise AttributeError(f"module 'reflexarc' has no attribute {name!r}")
    value = getattr(import_module("reflexarc.reflex"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted((*globals(), *_FROM_REFLEX))
