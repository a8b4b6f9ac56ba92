"""An answer as every dialect can say it, whole (`Reply`) and as a stream of events. No dialect.

A stream is `Began`, then per part `PartBegan`, any number of `PartGrew` (and `PartNoted`), perhaps
`PartSigned`, and `PartEnded`, then `Ended` or `Failed`; nothing follows these. Parts are numbered
in the order they begin. Calls may stay open beside one another and need not be ended by a reader;
all other parts are. `wire.assembling` puts them one after the other for dialects that want it so.
"""

from typing import Any, Literal

import msgspec

from reflexarc.wire.faults import Fault
from reflexarc.wire.turns import Call, Foreign, Media, Refusal, Text, Thinking
from reflexarc.wire.usage import Usage

Stop = Literal["end", "calls", "length", "stop_sequence", "filter", "refusal", "pause", "truncated"]
"""Why a model stopped. `pause`: a hosted tool's long turn, to be gone on with; `truncated`: the
provider never said why, so the answer may be cut, which is told as such and never as `end`."""

ReplyPart = Text | Thinking | Call | Refusal | Media | Foreign


class Reply(msgspec.Struct, frozen=True):
    """A whole answer: one assistant turn. `usage` is None where the provider told none: it is
    never made up. `created_s` is Unix time, 0 where unknown. `origin` is the dialect it came in:
    the writer of that one alone may use `more` and `Foreign`."""

    id: str
    model: str
    parts: tuple[ReplyPart, ...]
    stop: Stop
    stop_sequence: str | None = None
    usage: Usage | None = None
    created_s: int = 0
    service_tier: str | None = None
    more: dict[str, Any] = {}
    origin: str = ""

    @property
    def calls(self) -> tuple[Call, ...]:
        return tuple(part for part in self.parts if isinstance(part, Call))


class Began(msgspec.Struct, frozen=True):
    """`origin` as for a reply."""

    id: str
    model: str
    created_s: int = 0
    usage: Usage | None = None
    service_tier: str | None = None
    origin: str = ""


class PartBegan(msgspec.Struct, frozen=True):
    """`part` as far as it is known: text and arguments are empty and grow. What comes whole
    (`Media`, `Foreign`, redacted thinking) is all there."""

    at: int
    part: ReplyPart


class PartGrew(msgspec.Struct, frozen=True):
    """More of a part's text, or of a call's arguments."""

    at: int
    text: str


class PartSigned(msgspec.Struct, frozen=True):
    """The signature of thinking, or of a call."""

    at: int
    signature: str
    origin: str


class PartNoted(msgspec.Struct, frozen=True):
    """What only its own dialect knows of a text, while it grows: one more of the list `name` in
    the part's `more`, a citation say."""

    at: int
    name: str
    value: Any


class PartEnded(msgspec.Struct, frozen=True):
    at: int


class Ended(msgspec.Struct, frozen=True):
    """`usage` counts the whole answer, once."""

    stop: Stop
    stop_sequence: str | None = None
    usage: Usage | None = None
    service_tier: str | None = None


class Failed(msgspec.Struct, frozen=True):
    fault: Fault


Event = Began | PartBegan | PartGrew | PartSigned | PartNoted | PartEnded | Ended | Failed


def is_content(event: Event) -> bool:
    """Whether an event binds an answer to its giver: anything but that it began, or that a text
    did of which there is nothing yet."""
    if isinstance(event, PartBegan):
        return not isinstance(event.part, Text | Thinking | Refusal) or bool(event.part.text)
    if isinstance(event, PartGrew):
        return bool(event.text)
    return not isinstance(event, Began | PartEnded)


def stop_of(stop: Stop, parts: "tuple[ReplyPart, ...] | list[ReplyPart]") -> Stop:
    """What a stop is when the parts are known: a turn that ends with calls made ends for them,
    whatever word its provider used, and one that ends with a refusal for that."""
    if stop != "end":
        return stop
    if any(isinstance(part, Call) for part in parts):
        return "calls"
    return "refusal" if any(isinstance(part, Refusal) for part in parts) else stop
