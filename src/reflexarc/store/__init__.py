"""What was done: sessions, steps, decisions, audits and the audit trail, in SQLite."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reflexarc.store.recording import Recording
    from reflexarc.store.store import Store

__all__ = ["Recording", "Store"]


def __getattr__(name: str) -> Any:
    """Loads the database's libraries where they are used: a gateway, which only needs to know
    where things are kept, does without them."""
    if name == "Recording":
        from reflexarc.store.recording import Recording

        return Recording
    if name == "Store":
        from reflexarc.store.store import Store

        return Store
    raise AttributeError(name)
