"""What a reflex was learned for: tool schemas, the prompt's template, System 2's model.

While these hold, what was learned holds; where one changed, nothing learned about it acts.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from reflexarc.reflex.context import Context
from reflexarc.reflex.prompts import lines_hash, prompt_lines
from reflexarc.steps import Session, ToolSpec

_MAX_VARIANTS = 16
_TEMPLATE_SHARE = 0.95
_LEAST_TEMPLATE = 3
_GAP_SLACK = 2
UNRECORDED = "unrecorded"
"""Stands for the schema hash of a tool whose sessions did not record one; no schema has it."""


class PromptTemplate(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The prompts a reflex was learned under.

    `variants` are the hashes of whole normalised prompts. Where sessions had more than a few
    (a prompt that lists the user's devices, say), `lines` are those nearly all of them shared, in
    order, and `gaps` the most further lines that stood before each of them and after the last. A
    prompt then fits if it holds these lines in this order, and others only where others stood,
    about as many. What changes within such a gap cannot be told from what varies there.
    """

    variants: tuple[str, ...]
    lines: tuple[str, ...] = ()
    gaps: tuple[int, ...] = ()

    def fits(self, lines: Sequence[str], whole: str) -> bool:
        """`whole` is the hash of all the lines."""
        if whole in self.variants:
            return True
        if len(self.lines) < _LEAST_TEMPLATE:
            return False
        found = _gaps(self.lines, lines)
        return found is not None and all(
            gap <= _GAP_SLACK * most for gap, most in zip(found, self.gaps, strict=True)
        )


def _gaps(template: Sequence[str], lines: Sequence[str]) -> tuple[int, ...] | None:
    """How many further lines stand before each line of a template and after the last; None where
    the template is not there in order."""
    gaps = [0] * (len(template) + 1)
    at = 0
    for line in lines:
        if at < len(template) and line == template[at]:
            at += 1
        else:
            gaps[at] += 1
    return tuple(gaps) if at == len(template) else None


class Identity(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Schema hashes by tool (several where sessions recorded several), prompt and models."""

    schemas: dict[str, tuple[str, ...]]
    prompt: PromptTemplate
    models: tuple[str, ...]

    def faults(
        self, context: Context, tools: Sequence[ToolSpec], model: str | None
    ) -> Iterator[str]:
        """Why nothing learned may act on this request; nothing where all is as it was learned.

        `model` is None where the caller does not say what System 2 is, and so vouches for it."""
        if model is not None and self.models and model not in self.models:
            yield "model_changed"
        if not self.prompt.fits(context.prompt_lines, context.prompt_hash):
            yield "prompt_changed"
        names = {tool.name for tool in tools}
        if len(names) < len(tools) or not names <= self.schemas.keys():
            yield "unseen_tools"

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
                    schemas.setdefault(call.name, set()).add(UNRECORDED)
        return cls(
            schemas={name: tuple(sorted(hashes)) for name, hashes in sorted(schemas.items())},
            prompt=_template(sessions),
            models=tuple(sorted({session.model for session in sessions if session.model})),
        )


def offered_tools(session: Session) -> tuple[ToolSpec, ...]:
    """The tools of a session; where none were recorded, those it called, by name alone."""
    if session.tools:
        return session.tools
    names = {call.name for message in session.messages for call in message.tool_calls}
    return tuple(ToolSpec(name) for name in sorted(names))


def _template(sessions: Sequence[Session]) -> PromptTemplate:
    prompts: Counter[tuple[str, ...]] = Counter()
    for session in sessions:
        lines: list[str] = []
        for message in session.messages:
            if message.role in ("system", "developer"):
                lines += prompt_lines(message.role, message.content)
        prompts[tuple(lines)] += 1
    variants = [lines_hash(lines) for lines, _ in prompts.most_common()]
    if len(variants) <= _MAX_VARIANTS:
        return PromptTemplate(tuple(sorted(variants)))
    shared: Counter[str] = Counter()
    for prompt, count in prompts.items():
        shared.update(dict.fromkeys(prompt, count))
    enough = _TEMPLATE_SHARE * len(sessions)
    usual: list[str] = []
    for prompt, _ in prompts.most_common():
        usual = [line for line in dict.fromkeys(prompt) if shared[line] >= enough]
        if usual:
            break
    found = [gaps for prompt in prompts if (gaps := _gaps(usual, prompt)) is not None]
    most = tuple(max(column) for column in zip(*found, strict=True)) if found else ()
    return PromptTemplate(tuple(sorted(variants)), tuple(usual) if most else (), most)
