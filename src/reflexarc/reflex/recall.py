"""Memory of whole situations: the same request and the same calls so far, in several runs.

On recurring work it beats any model: where every run of a situation went on alike, the next one
mostly does too. A *situation* is what users said (white space and case aside) and the calls made
so far; what tools answered and what System 2 wrote is no part of it, nor is the prompt, whose
changes stand against every call (`identity.py`).

What was done there is the whole next turn: where most runs made the same calls together, all of
them are remembered, else the first.

Nothing of a situation is kept in clear. Its entry stands under a hash of it, and says of each call
made there a tool and hashes of the values, salted by the situation: whoever does not know what was
said cannot try values out. A decision finds the values again among those its own context holds.

How many runs must agree is not decided here: a recollection has a score, and certificates of its
own say from which score on it may act. A single run is remembered too: where it does not score high
enough to act, it still comes first of what is ranked. Certificates are judged on sessions left out
of the memory one by one (jackknife: Quenouille, Biometrika 43, 1956): a session that meets what
exactly one other did stands for those to come that meet what exactly one recorded one did. The
memory that acts holds one session more than those that were judged; `acceptance/validity.py` tries
what that does.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import xxhash
from numpy.typing import NDArray

from reflexarc.provenance.words import plain_text
from reflexarc.reflex.context import Context
from reflexarc.steps import ToolCall

MIN_RUNS = 1
"""A situation is remembered from so many sessions on."""
TWO_AGREE = 2.5 / 3.0
"""The score of a situation that two runs agree on."""
MAX_SITUATIONS = 200_000
"""Kept at most, those of most runs first; about 40 bytes each."""
MAX_CALLS = 64
"""Calls of one turn that are remembered."""
ARRAYS = (
    "situation", "runs", "agreeing", "whole", "first_call", "tool", "call", "first", "argument",
    "value",
)  # fmt: skip


class RememberedCall(msgspec.Struct, frozen=True):
    """A call as memory keeps it: `call` is the hash of all of it, `values` those of its arguments,
    salted by the situation."""

    tool: str
    call: int
    values: Mapping[str, int]


class Recollection(msgspec.Struct, frozen=True):
    """What runs of one situation did next: `agreeing` of them made the first of `calls` first; none
    where they wrote a message. Of those, `whole` made the same calls together; further calls are
    held only where that is most of all runs."""

    runs: int
    agreeing: int
    whole: int
    calls: tuple[RememberedCall, ...]

    @property
    def tool(self) -> str | None:
        """The tool of the first call; None for a message."""
        return self.calls[0].tool if self.calls else None

    @property
    def score(self) -> float:
        """How far the runs agree, in (0, 1): the share of those that did this, shrunk by half a run
        each way."""
        return (self.agreeing + 0.5) / (self.runs + 1.0)

    @property
    def whole_score(self) -> float:
        """The same of all that was called together."""
        return (self.whole + 0.5) / (self.runs + 1.0)

    @property
    def agreed(self) -> bool:
        """Whether most runs did this; else nothing is recalled."""
        return 2 * self.agreeing > self.runs


def situation_of(context: Context) -> int:
    """What a context is remembered under."""
    return _hash(f"situation {context.situation:x}")


def salt_of(context: Context) -> str:
    """What hashes of values are salted with; not to be found from `situation_of`."""
    return f"value {context.situation:x} "


def value_hash(salt: str, argument: str, text: str) -> int:
    """The hash of one argument's value in a situation."""
    return _hash(f"{salt}{argument} {text}")


def call_hash(salt: str, key: str) -> int:
    """The hash of a whole call in a situation."""
    return _hash(f"{salt} {key}")


class Recall:
    """Immutable; looked up by situation."""

    def __init__(self, entries: Mapping[int, Recollection]) -> None:
        self._entries = entries

    def __len__(self) -> int:
        return len(self._entries)

    def find(self, context: Context) -> Recollection | None:
        """What earlier runs did in this situation."""
        return self._entries.get(situation_of(context)) if self._entries else None

    def arrays(self) -> tuple[tuple[str, ...], tuple[str, ...], dict[str, NDArray[Any]]]:
        """The names of tools and of arguments, and the entries as flat arrays, by `ARRAYS`."""
        entries = sorted(self._entries.items())
        calls = [call for _, one in entries for call in one.calls]
        tools = sorted({call.tool for call in calls})
        names = sorted({name for call in calls for name in call.values})
        tool_at = {name: at for at, name in enumerate(tools)}
        name_at = {name: at for at, name in enumerate(names)}
        values = [
            (name_at[name], value) for call in calls for name, value in sorted(call.values.items())
        ]
        first_call = np.cumsum([0, *(len(one.calls) for _, one in entries)])
        first = np.cumsum([0, *(len(call.values) for call in calls)])
        return (
            tuple(tools),
            tuple(names),
            {
                "situation": np.array([key for key, _ in entries], np.uint64),
                "runs": np.array([one.runs for _, one in entries], np.uint32),
                "agreeing": np.array([one.agreeing for _, one in entries], np.uint32),
                "whole": np.array([one.whole for _, one in entries], np.uint32),
                "first_call": first_call.astype(np.uint32),
                "tool": np.array([tool_at[call.tool] for call in calls], np.uint32),
                "call": np.array([call.call for call in calls], np.uint64),
                "first": first.astype(np.uint32),
                "argument": np.array([at for at, _ in values], np.uint32),
                "value": np.array([value for _, value in values], np.uint64),
            },
        )

    @classmethod
    def from_arrays(
        cls, tools: Sequence[str], names: Sequence[str], arrays: Mapping[str, NDArray[Any]]
    ) -> "Recall":
        """The inverse of `arrays`. Raises ValueError where they do not fit each other."""
        _check(tools, names, arrays)
        lists: dict[str, list[int]] = {name: arrays[name].tolist() for name in ARRAYS}
        runs, agreeing, whole = (lists[name] for name in ("runs", "agreeing", "whole"))
        tool, call, first_call = (lists[name] for name in ("tool", "call", "first_call"))
        first, argument, value = (lists[name] for name in ("first", "argument", "value"))
        calls = [
            RememberedCall(
                tools[tool[at]],
                call[at],
                {names[argument[one]]: value[one] for one in range(first[at], first[at + 1])},
            )
            for at in range(len(tool))
        ]
        entries: dict[int, Recollection] = {}
        for at, key in enumerate(lists["situation"]):
            here = tuple(calls[first_call[at] : first_call[at + 1]])
            entries[key] = Recollection(runs[at], agreeing[at], whole[at], here)
        return cls(entries)


def _check(tools: Sequence[str], names: Sequence[str], arrays: Mapping[str, NDArray[Any]]) -> None:
    kinds = ("u8", "u4", "u4", "u4", "u4", "u4", "u8", "u4", "u4", "u8")
    for name, kind in zip(ARRAYS, kinds, strict=True):
        array = arrays[name]
        if array.ndim != 1 or array.dtype != np.dtype(kind):
            raise ValueError(f"{name} is no list of {kind}")
    count, calls = len(arrays["situation"]), len(arrays["tool"])
    values = len(arrays["value"])
    if count > MAX_SITUATIONS:
        raise ValueError(f"{count} situations, more than {MAX_SITUATIONS}")
    if any(len(arrays[name]) != count for name in ("runs", "agreeing", "whole")):
        raise ValueError("lists of different length")
    if not _parted(arrays["first_call"], count, calls, MAX_CALLS) or len(arrays["call"]) != calls:
        raise ValueError("calls that belong to no situation")
    if not _parted(arrays["first"], calls, values) or len(arrays["argument"]) != values:
        raise ValueError("values that belong to no call")
    ordered = arrays["situation"]
    if bool((ordered[1:] <= ordered[:-1]).any()):
        raise ValueError("a situation stands twice")
    tool, argument = arrays["tool"], arrays["argument"]
    if calls and int(tool.max()) >= len(tools):
        raise ValueError("a tool without a name")
    if values and int(argument.max()) >= len(names):
        raise ValueError("an argument without a name")
    runs, agreeing, whole = arrays["runs"], arrays["agreeing"], arrays["whole"]
    if bool((agreeing > runs).any() | (whole < 1).any() | (runs < MIN_RUNS).any()):
        raise ValueError("more runs agree than there were, or fewer than are remembered")
    if bool((whole > agreeing).any()):
        raise ValueError("more runs agree on all calls than on the first")


def _parted(first: NDArray[Any], of: int, items: int, most: int | None = None) -> bool:
    """Whether bounds share out all items, at most so many each."""
    bounds = first.astype(np.int64)
    if len(bounds) != of + 1 or bounds[0] != 0 or bounds[-1] != items:
        return False
    sizes = np.diff(bounds)
    return not bool((sizes < 0).any()) and (most is None or not bool((sizes > most).any()))


_Done = tuple[RememberedCall, ...]
"""What one run did."""


class RecallLearner:
    """Counts what runs did, by situation. `observe` every item of every session, then ask."""

    def __init__(self) -> None:
        self._runs: defaultdict[int, dict[int, _Done]] = defaultdict(dict)

    def observe(self, context: Context, calls: Sequence[ToolCall], session: int) -> None:
        """One item: the calls made there together, none for a message or a thought. `session` is
        its number; of a situation met twice in a session the first time counts."""
        key = situation_of(context)
        runs = self._runs[key]
        if session not in runs:
            salt = salt_of(context)
            runs[session] = tuple(_remembered(salt, call) for call in calls[:MAX_CALLS])

    def find(self, context: Context, without: int) -> Recollection | None:
        """What the other sessions did in this situation, as a memory learned without one would
        say."""
        runs = self._runs.get(situation_of(context))
        if runs is None or len(runs) - (without in runs) < MIN_RUNS:
            return None
        return _recollection([done for session, done in runs.items() if session != without])

    def finish(self, nameable: Callable[[str, Collection[str]], bool]) -> Recall:
        """What is remembered, of messages and of calls whose tool and arguments may be named."""
        entries = {
            key: _recollection(list(runs.values()))
            for key, runs in self._runs.items()
            if len(runs) >= MIN_RUNS
        }
        kept = sorted(
            (
                (key, one)
                for key, one in entries.items()
                if all(nameable(call.tool, call.values) for call in one.calls)
            ),
            key=lambda pair: (-pair[1].runs, pair[0]),
        )
        return Recall(dict(kept[:MAX_SITUATIONS]))


def _remembered(salt: str, call: ToolCall) -> RememberedCall:
    values = {
        name: value_hash(salt, name, plain_text(value)) for name, value in call.arguments.items()
    }
    return RememberedCall(call.name, call_hash(salt, call.key), values)


def _recollection(runs: Sequence[_Done]) -> Recollection:
    first, agreeing = _most(runs, _first)
    like = [done for done in runs if _first(done) == first]
    together, whole = _most(like, _together)
    done = next(one for one in like if _together(one) == together)
    kept = done if 2 * whole > len(runs) else done[:1]
    return Recollection(len(runs), agreeing, whole, kept)


def _most(runs: Sequence[_Done], outcome: Callable[[_Done], Any]) -> tuple[Any, int]:
    """The most frequent outcome, and of how many runs it is. Of outcomes equally frequent the one
    of the smallest hash: the order of sessions says nothing."""
    counts = Counter(outcome(done) for done in runs)
    best = min(counts, key=lambda one: (-counts[one], one))
    return best, counts[best]


def _first(done: _Done) -> tuple[str, int]:
    return (done[0].tool, done[0].call) if done else ("", 0)


def _together(done: _Done) -> tuple[int, ...]:
    return tuple(sorted(call.call for call in done))


def _hash(text: str) -> int:
    return xxhash.xxh3_64_intdigest(text.encode("utf-8", "surrogatepass"))
