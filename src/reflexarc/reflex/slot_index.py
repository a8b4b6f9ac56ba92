"""Where a value stands in one conversation: its slots by its text, while learning."""

from collections import Counter, defaultdict

from reflexarc.reflex.context import Context
from reflexarc.reflex.keyed import key_of


class SlotIndex:
    """The values of one context by text, kept up to date as the context grows."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.read = 0
        self.by_text: defaultdict[str, set[str]] = defaultdict(set)
        self.sizes: Counter[str] = Counter()
        # Of the values of results by the last name of their path, how many are distinct.
        self.keyed: Counter[str] = Counter()

    def update(self) -> list[str]:
        """Read what is new; the slots that were not there before."""
        new: list[str] = []
        for entry in self.context.entries[self.read :]:
            slots = self.by_text[entry.text]
            if entry.slot not in slots:
                slots.add(entry.slot)
                if entry.slot not in self.sizes:
                    new.append(entry.slot)
                self.sizes[entry.slot] += 1
                self.keyed[key_of(entry.slot)] += 1
        self.read = len(self.context.entries)
        return new
