"""Messages, tools, calls and sessions as immutable structs, whatever wire they came over."""

from functools import cached_property
from typing import Any, Literal

import msgspec
import xxhash

from reflexarc.steps.canonical import call_key, canonical_json

Role = Literal["system", "developer", "user", "assistant", "tool"]
Effect = Literal["read", "write", "think"]
"""What a call does to the world. `think` tools only record a thought: they always escalate."""


class ToolCall(msgspec.Struct, frozen=True):
    """One call an assistant made. `raw` is the arguments' text as it was written.

    `well_formed` is false where that text was not a JSON object; such a call equals no other.
    """

    id: str
    name: str
    arguments: dict[str, Any]
    raw: str = ""
    well_formed: bool = True

    @property
    def key(self) -> str:
        """Canonical form of name and arguments; equal keys mean the same call."""
        return (
            call_key(self.name, self.arguments) if self.well_formed else f"{self.name}!{self.raw}"
        )


class Message(msgspec.Struct, frozen=True):
    """One message of a conversation. `content` is its text, parts joined by a line feed.

    `opaque` is true where it carries something other than text (an image, a refusal): System 1
    does not read those and escalates. `thinking`: it carries a model's thinking, perhaps signed.
    `by_system1`: it was System 1's turn, which says nothing of what System 2 would have done.
    """

    role: Role
    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    name: str | None = None
    opaque: bool = False
    thinking: bool = False
    by_system1: bool = False


class ToolSpec(msgspec.Struct, frozen=True, dict=True):
    """One tool offered to the model. `parameters` is its JSON schema.

    `effect` is what its owner declared (an annotation or configuration), None where nobody did.
    """

    name: str
    description: str = ""
    parameters: dict[str, Any] = {}
    strict: bool | None = None
    effect: Effect | None = None

    @cached_property
    def schema_hash(self) -> str:
        """16 hex digits over name, description and parameters: what was learned holds for this."""
        text = "\x1f".join((self.name, self.description, canonical_json(self.parameters)))
        return xxhash.xxh3_64_hexdigest(text.encode("utf-8", "surrogatepass"))


class Session(msgspec.Struct, frozen=True):
    """One recorded conversation. `task` is the unit of splits and certificates; `began_s` is when
    it began (Unix time, seconds), None where that was not recorded."""

    id: str
    task: str
    tools: tuple[ToolSpec, ...]
    messages: tuple[Message, ...]
    model: str | None = None
    trial: int | None = None
    source: str | None = None
    reward: float | None = None
    family: str | None = None
    began_s: float | None = None
