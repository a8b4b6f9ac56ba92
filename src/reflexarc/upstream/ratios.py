"""Tokens estimated from bytes, by a ratio per model that is learned from what upstreams report.

The ratio is the median of the last ones seen, so that a few answers unlike the rest (an image, a
report that counts otherwise) do not move it. Where nothing is known, four bytes are a token. How
far off an estimate is depends on how much a model's traffic varies; the tests state it for traffic
that varies by a tenth. Images and audio are not estimated: their bytes say nothing of tokens.
"""

from collections import OrderedDict, deque
from collections.abc import Iterator
from typing import Any, cast

DEFAULT_BYTES = 4.0
"""Bytes of a token where nothing is known of a model: English text and JSON are near it."""
LEAST_BYTES, MOST_BYTES = 0.5, 40.0
"""A ratio outside these is no text's: hidden reasoning, base64, or a report that is wrong."""
KEPT = 31
"""So many last ratios count."""
MAX_NAMES = 512
"""The models least recently used are forgotten past so many."""

_PROMPT, _GENERATED = "prompt", "generated"


class _Learned:
    """Ratios of one model, in the order they came, and their median."""

    def __init__(self, seen: Iterator[float] | None = None) -> None:
        self._seen = deque(seen or (), maxlen=KEPT)
        self._middle = self._median()

    def learn(self, ratio: float) -> None:
        self._seen.append(ratio)
        self._middle = self._median()

    @property
    def bytes_of_a_token(self) -> float:
        return self._middle

    @property
    def seen(self) -> list[float]:
        return [round(ratio, 4) for ratio in self._seen]

    def _median(self) -> float:
        held = sorted(self._seen)
        return (held[(len(held) - 1) // 2] + held[len(held) // 2]) / 2 if held else DEFAULT_BYTES


class Ratios:
    """For names of (provider, model), as the caller writes them; prompts apart from what was
    generated, for the former hold markup that is no token and the latter does not."""

    def __init__(self) -> None:
        self._known: dict[str, OrderedDict[str, _Learned]] = {
            _PROMPT: OrderedDict(),
            _GENERATED: OrderedDict(),
        }

    def tokens(self, name: str, size_bytes: int, *, generated: bool = False) -> int:
        """How many tokens so many bytes are: at least 1 where there are any."""
        if size_bytes <= 0:
            return 0
        learned = self._known[_GENERATED if generated else _PROMPT].get(name)
        ratio = DEFAULT_BYTES if learned is None else learned.bytes_of_a_token
        return max(1, round(size_bytes / ratio))

    def knows(self, name: str) -> bool:
        """Whether anything was learned of this name's prompts."""
        return name in self._known[_PROMPT]

    def learn(self, name: str, size_bytes: int, tokens: int, *, generated: bool = False) -> None:
        """What an upstream counted for so many bytes. What cannot be text is passed over."""
        if tokens <= 0 or not LEAST_BYTES <= size_bytes / tokens <= MOST_BYTES:
            return
        known = self._known[_GENERATED if generated else _PROMPT]
        learned = known.get(name)
        if learned is None:
            learned = known[name] = _Learned()
            if len(known) > MAX_NAMES:
                known.popitem(last=False)
        known.move_to_end(name)
        learned.learn(size_bytes / tokens)

    def snapshot(self) -> dict[str, dict[str, list[float]]]:
        """All that was learned, for JSON."""
        return {
            kind: {name: learned.seen for name, learned in known.items()}
            for kind, known in self._known.items()
        }

    def restore(self, given: Any) -> None:
        """Takes a snapshot in place of what is known. What is none, or has parts that are none,
        is passed over: an estimate that starts afresh harms nobody."""
        for kind, known in self._known.items():
            known.clear()
            names = _fields(_fields(given).get(kind))
            for name, seen in list(names.items())[-MAX_NAMES:]:
                ratios = list(_ratios(seen))
                if ratios:
                    known[name] = _Learned(iter(ratios))


def _fields(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _ratios(value: Any) -> Iterator[float]:
    for ratio in cast("list[Any]", value) if isinstance(value, list) else []:
        if isinstance(ratio, int | float) and LEAST_BYTES <= ratio <= MOST_BYTES:
            yield float(ratio)
