"""How a user's words speak for each candidate of an argument, as numbers."""

import numpy as np
from numpy.typing import NDArray

from reflexarc.provenance import Entry
from reflexarc.reflex.candidates import ABSENT, Candidate
from reflexarc.reflex.context import Context
from reflexarc.reflex.cues import NONE, Cues, named_before
from reflexarc.reflex.said_words import LONGEST, own_words, said_words
from reflexarc.reflex.sources import Argument

SAID_FEATURES = (
    "cue", "cue_own", "cue_after", "cue_behind", "named_before", "words_said",
    "words_said_behind", "said_now", "common", "from_end", "first_said", "last_said", "all_said",
)  # fmt: skip
_CUE, _CUE_BEHIND, _WORDS, _WORDS_BEHIND = 0, 3, 5, 6
_FIRST = frozenset(("first", "earliest", "oldest", "next", "soonest"))
_LAST = frozenset(("last", "latest", "newest", "recent"))
_ALL = frozenset(("all", "every", "each", "any", "both"))


def said_columns(
    context: Context, argument: Argument, candidates: list[Candidate], cues: Cues
) -> NDArray[np.float32]:
    """(candidates, len(SAID_FEATURES)): what the words around a value speak for; whether the
    argument's name is said before it; the share of its own words that the user's newest message
    has; how far behind the best candidate it is in both; whether that message says it."""
    said = said_words(context.user.text)
    shares = context.said_now().shares
    message = context.user.text
    cued = context.cued.get(cues)
    if cued is None:
        cued = context.cued[cues] = {}
    asked = context.user.words
    which = tuple(not asked.isdisjoint(words) for words in (_FIRST, _LAST, _ALL))
    ends = _ends(candidates)
    rows: list[tuple[float, ...]] = []
    for candidate in candidates:
        entries = candidate.entries
        if len(entries) == 1:
            entry = entries[0] if entries[0].origin.kind == "user_message" else None
        else:
            entry = _from_user(candidate)
        text = candidate.text
        share = shares.get(text)
        if share is None:
            words = own_words(text) if candidate.made != ABSENT else frozenset[str]()
            share = shares[text] = len(words & said) / len(words) if words else 0.0
        after_it = _from_end(candidate, ends)
        if entry is None:
            rows.append((NONE, NONE, NONE, 0.0, 0.0, share, 0.0, 0.0, 0.0, after_it, *which))
            continue
        found = cued.get((argument.index, entry, text))
        if found is None:
            found = (
                *cues.scores(argument.tool, argument.name, entry),
                named_before(argument.name, entry),
                cues.commonness(text) if len(text) <= LONGEST else 0.0,
            )
            cued[argument.index, entry, text] = found
        one, own, after, named, common = found
        now = entry.origin.text == message
        rows.append((one, own, after, 0.0, named, share, 0.0, now, common, after_it, *which))
    columns = np.array(rows, dtype=np.float32)
    columns[:, _CUE_BEHIND] = columns[:, _CUE] - columns[:, _CUE].max()
    columns[:, _WORDS_BEHIND] = columns[:, _WORDS] - columns[:, _WORDS].max()
    return columns


def _ends(candidates: list[Candidate]) -> dict[tuple[int, str], int]:
    """The last position of each slot in each message."""
    ends: dict[tuple[int, str], int] = {}
    for candidate in candidates:
        for entry in candidate.entries[:1]:
            key = (id(entry.origin), entry.slot)
            if entry.position > ends.get(key, -1):
                ends[key] = entry.position
    return ends


def _from_end(candidate: Candidate, ends: dict[tuple[int, str], int]) -> float:
    """How many stand after it in the list it comes from; -1 for what comes from none."""
    if not candidate.entries:
        return -1.0
    entry = candidate.entries[0]
    return ends[id(entry.origin), entry.slot] - entry.position


def _from_user(candidate: Candidate) -> Entry | None:
    """Where a user said it last; several places in one message: the first."""
    newest: Entry | None = None
    for entry in candidate.entries[:8]:
        if entry.origin.kind == "user_message" and (
            newest is None or entry.origin.event > newest.origin.event
        ):
            newest = entry
    return newest
