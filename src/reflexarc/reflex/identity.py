"""What a reflex was learned for: tool schemas, the prompt's template, System 2's model.

While these hold, what was learned holds; where one changed, nothing learned about it acts.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from reflexarc.reflex.context import Context
from reflexarc.reflex.prompts import lines_hash, prompt_lines
from reflexarc.steps import Session, ToolSpec

_MAX_VARIANTS = 16
_TEMPLATE_SHARE = 0.95
UNRECORDED = "unrecorded"
"""Stands for the schema of a tool whose sessions did not record one: it equals no real schema."""


class PromptTemplate(msgspec.Struct, frozen=True):
    """The prompts a reflex was learned under.

    `variants` are the hashes of whole normalised prompts. Where sessions had more than a few
    (a prompt that lists the user's devices, say), `lines` are those nearly all of them shared
    and a prompt fits if it holds every one of them.
    """

    variants: tuple[str, ...]
    lines: tuple[str, ...] = ()

    def fits(self, lines: Sequence[str]) -> bool:
        if lines_hash(lines) in self.variants:
            return True
        return bool(self.lines) and set(self.lines) <= set(lines)


class Identity(msgspec.Struct, frozen=True):
    """Schema hashes by tool (several where sessions recorded several), prompt and models."""

    schemas: dict[str, tuple[str, ...]]
    prompt: PromptTemplate
    models: tuple[str, ...]

    def fault(self, context: Context, tools: Sequence[ToolSpec], model: str | None) -> str | None:
        """Why nothing learned may act on this request; None where all is as it was learned."""
        if model is not None and self.models and model not in self.models:
            return "model_changed"
        if not self.prompt.fits(context.prompt_lines):
            return "prompt_changed"
        if any(tool.name not in self.schemas for tool in tools):
            return "unseen_tools"
        return None

    def schema_fits(self, tool: ToolSpec) -> bool:
        return tool.schema_hash in self.schemas.get(tool.name, ())

    @classmethod
    def of(cls, sessions: Sequence[Session], called: Iterable[str]) -> "Identity":
        """The identity of recorded sessions; `called` names the tools they called."""
        schemas: dict[str, set[str]] = {name: set() for name in called}
        for session in sessions:
            for tool in session.tools:
                schemas.setdefault(tool.name, set()).add(tool.schema_hash)
            for message in session.messages if not session.tools else ():
                for call in message.tool_calls:
                    schemas.setdefault(call.name, set()).add(unrecorded(call.name).schema_hash)
        return cls(
            schemas={name: tuple(sorted(hashes)) for name, hashes in sorted(schemas.items())},
            prompt=_template(sessions),
            models=tuple(sorted({session.model for session in sessions if session.model})),
        )


def unrecorded(name: str) -> ToolSpec:
    """Stands in for a tool whose sessions recorded calls and no schemas."""
    return ToolSpec(name, UNRECORDED)


def offered_tools(session: Session) -> tuple[ToolSpec, ...]:
    """The tools of a session; where none were recorded, those it called."""
    if session.tools:
        return session.tools
    names = {call.name for message in session.messages for call in message.tool_calls}
    return tuple(unrecorded(name) for name in sorted(names))


def _template(sessions: Sequence[Session]) -> PromptTemplate:
    prompts: Counter[tuple[str, ...]] = Counter()
    for session in sessions:
        text = "\n".join(
            message.content
            for message in session.messages
            if message.role in ("system", "developer")
        )
        prompts[prompt_lines(text)] += 1
    variants = [lines_hash(lines) for lines, _ in prompts.most_common()]
    if len(variants) <= _MAX_VARIANTS:
        return PromptTemplate(tuple(sorted(variants)))
    shared: Counter[str] = Counter()
    for lines, count in prompts.items():
        shared.update(dict.fromkeys(lines, count))
    enough = _TEMPLATE_SHARE * len(sessions)
    return PromptTemplate(
        tuple(sorted(variants)),
        tuple(sorted(line for line, count in shared.items() if count >= enough)),
    )
