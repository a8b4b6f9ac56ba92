"""What a user's message means and mentions, as entries: days, times, durations, names, quotations.

Slots are named by how a thing was said (`usr:day:next weekday`, `usr:quoted+`); what may be said in
many ways also stands in a slot for all of them (`usr:day`), so that a way that learning hardly saw
is not lost.
"""

from collections.abc import Iterator
from datetime import datetime

from reflexarc.provenance.entries import Entry, Origin
from reflexarc.provenance.mentions import mentions
from reflexarc.provenance.runs import placed
from reflexarc.provenance.times import meant_times, now_forms

_COMMON = frozenset({"day", "start", "end", "near"})


def said_entries(text: str, origin: Origin, now: datetime | None, year: str) -> Iterator[Entry]:
    """Entries of a user's message beside its tokens; `now`: what time it is, where that was told;
    `year`: the one of days named without, "" where nobody named one. At most some 700."""
    for position, one in enumerate(meant_times(text, now, year)):
        yield Entry(f"usr:{one.how}", one.value, origin, position, at=one.at)
        form = one.how.partition(":")[0]
        if form in _COMMON:
            yield Entry(f"usr:{form}", one.value, origin, position, at=one.at)
    for position, one in enumerate(mentions(text)):
        yield Entry(f"usr:{one.kind}+", one.value, origin, position, at=one.at)
    for position, one in enumerate(placed(text)):
        yield Entry(f"usr:{one.place}", one.value, origin, position)


def now_entries(now: datetime, origin: Origin) -> Iterator[Entry]:
    """What it is now, yesterday and tomorrow, as arguments would say it."""
    for one in now_forms(now):
        yield Entry(one.how, one.value, origin)
