"""Values that stand in results under the very name of an argument, whatever the tool and the path:
the first guess for an argument nothing else is known of.
"""

from functools import lru_cache

from reflexarc.provenance import Entry
from reflexarc.reflex.context import Context

KEYED = "key:"
"""The kind of these slots: `key:task_id` holds what results say of a `task_id`."""
_RESULTS = "out:"
_NEWEST = 60


@lru_cache(maxsize=8192)  # of names of slots: a megabyte or two
def key_of(slot: str) -> str:
    """The last name in the path of a result's slot; nothing of another slot, or of a part."""
    if not slot.startswith(_RESULTS) or "~" in slot:
        return ""
    return slot.rpartition(".")[2].removesuffix("[*]")


def keyed_entries(context: Context, slot: str) -> list[Entry]:
    """The entries of such a slot, oldest first; found once while nothing new is read."""
    known = context.made.get(slot)
    read = len(context.entries)
    if known is not None and known[0] == read:
        return known[1]
    name = slot.removeprefix(KEYED)
    found = [
        entry
        for where, entries in context.slots.items()
        if key_of(where) == name
        for entry in entries[-_NEWEST:]
    ]
    found.sort(key=lambda entry: (entry.origin.event, entry.position))
    context.made[slot] = (read, found[-_NEWEST:])
    return context.made[slot][1]
