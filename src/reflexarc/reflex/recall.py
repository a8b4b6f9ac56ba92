"""Memory of whole situations: the same request and the same calls so far, in several runs.

On recurring work it beats any model: where every run of a situation went on alike, the next one
mostly does too. A *situation* is what users said (white space and case aside) and the calls made
so far; what tools answered and what System 2 wrote is no part of it, nor is the prompt, whose
changes stand against every call (`identity.py`).

Nothing of a situation is kept in clear. Its entry stands under a hash of it, and says of the call
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
MAX_SITUATIONS = 200_000
"""Kept at most, those of most runs first; about 40 bytes each."""
ARRAYS = ("situation", "runs", "agreeing", "tool", "call", "first", "argument", "value")


class Recollection(msgspec.Struct, frozen=True):
    """What runs of one situation did next. `tool` is None where they wrote a message. `call` is the
    hash of the whole call, `values` those of its arguments, all salted by the situation."""

    runs: int
    agreeing: int
    tool: str | None
    call: int
    values: Mapping[str, int]

    @property
    def score(self) -> float:
        """How far the runs agree, in (0, 1): the share of those that did this, shrunk by half a run
        each way."""
        return (self.agreeing + 0.5) / (self.runs + 1.0)

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
        tools = sorted({one.tool for _, one in entries if one.tool is not None})
        names = sorted({name for _, one in entries for name in one.values})
        tool_at = {name: at for at, name in enumerate(tools)}
        name_at = {name: at for at, name in enumerate(names)}
        values = [
            (name_at[name], value)
            for _, one in entries
            for name, value in sorted(one.values.items())
        ]
        first = np.cumsum([0, *(len(one.values) for _, one in entries)])
        return (
            tuple(tools),
            tuple(names),
            {
                "situation": np.array([key for key, _ in entries], np.uint64),
                "runs": np.array([one.runs for _, one in entries], np.uint32),
                "agreeing": np.array([one.agreeing for _, one in entries], np.uint32),
                "tool": np.array(
                    [-1 if one.tool is None else tool_at[one.tool] for _, one in entries], np.int32
                ),
                "call": np.array([one.call for _, one in entries], np.uint64),
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
        runs, agreeing, tool, call = (lists[name] for name in ("runs", "agreeing", "tool", "call"))
        first, argument, value = (lists[name] for name in ("first", "argument", "value"))
        entries: dict[int, Recollection] = {}
        for at, key in enumerate(lists["situation"]):
            here = range(first[at], first[at + 1])
            entries[key] = Recollection(
                runs=runs[at],
                agreeing=agreeing[at],
                tool=None if tool[at] < 0 else tools[tool[at]],
                call=call[at],
                values={names[argument[one]]: value[one] for one in here},
            )
        return cls(entries)


def _check(tools: Sequence[str], names: Sequence[str], arrays: Mapping[str, NDArray[Any]]) -> None:
    kinds = ("u8", "u4", "u4", "i4", "u8", "u4", "u4", "u8")
    for name, kind in zip(ARRAYS, kinds, strict=True):
        array = arrays[name]
        if array.ndim != 1 or array.dtype != np.dtype(kind):
            raise ValueError(f"{name} is no list of {kind}")
    count, values = len(arrays["situation"]), len(arrays["value"])
    if count > MAX_SITUATIONS:
        raise ValueError(f"{count} situations, more than {MAX_SITUATIONS}")
    if any(len(arrays[name]) != count for name in ("runs", "agreeing", "tool", "call")):
        raise ValueError("lists of different length")
    first = arrays["first"].astype(np.int64)
    bounds = len(first) == count + 1 and first[0] == 0 and first[-1] == values
    if not bounds or bool((np.diff(first) < 0).any()) or len(arrays["argument"]) != values:
        raise ValueError("values that belong to no situation")
    ordered = arrays["situation"]
    if bool((ordered[1:] <= ordered[:-1]).any()):
        raise ValueError("a situation stands twice")
    tool, argument = arrays["tool"], arrays["argument"]
    if count and not (int(tool.min()) >= -1 and int(tool.max()) < len(tools)):
        raise ValueError("a tool without a name")
    if values and int(argument.max()) >= len(names):
        raise ValueError("an argument without a name")
    runs, agreeing = arrays["runs"], arrays["agreeing"]
    if bool((agreeing > runs).any() | (agreeing < 1).any() | (runs < MIN_RUNS).any()):
        raise ValueError("more runs agree than there were, or fewer than are remembered")


class _Done(msgspec.Struct, frozen=True):
    tool: str | None
    call: int
    values: dict[str, int]


class RecallLearner:
    """Counts what runs did, by situation. `observe` every item of every session, then ask."""

    def __init__(self) -> None:
        self._runs: defaultdict[int, dict[int, _Done]] = defaultdict(dict)

    def observe(self, context: Context, call: ToolCall | None, session: int) -> None:
        """One item: the call made, None for a message or a thought. `session` is its number; of a
        situation met twice in a session the first time counts."""
        key = situation_of(context)
        runs = self._runs[key]
        if session not in runs:
            runs[session] = _done(salt_of(context), call)

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
                if one.tool is None or nameable(one.tool, one.values)
            ),
            key=lambda pair: (-pair[1].runs, pair[0]),
        )
        return Recall(dict(kept[:MAX_SITUATIONS]))


def _done(salt: str, call: ToolCall | None) -> _Done:
    if call is None:
        return _Done(None, 0, {})
    values = {
        name: value_hash(salt, name, plain_text(value)) for name, value in call.arguments.items()
    }
    return _Done(call.name, call_hash(salt, call.key), values)


def _recollection(runs: Sequence[_Done]) -> Recollection:
    counts = Counter((done.tool or "", done.call) for done in runs)
    # Of outcomes equally frequent the one of the smallest hash: the order of sessions says nothing.
    best = min(counts, key=lambda outcome: (-counts[outcome], outcome))
    done = next(one for one in runs if (one.tool or "", one.call) == best)
    return Recollection(len(runs), counts[best], done.tool, done.call, done.values)


def _hash(text: str) -> int:
    return xxhash.xxh3_64_intdigest(text.encode("utf-8", "surrogatepass"))
