"""Claude Code transcripts: `projects/<slug>/<session>.jsonl`, subagents' beside or below them.

A response stands in several lines, in resumed and forked copies, in sidechains: it is counted once,
by its message's id, across all files, with the greatest usage that any of its lines tells.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from reflexarc.traces.documents import tally
from reflexarc.traces.formats.claude_code_chain import Chain
from reflexarc.traces.formats.claude_code_lines import Line, Result, lines_of
from reflexarc.traces.logs import Head
from reflexarc.traces.loose import Table, amount, table, tables, text
from reflexarc.traces.peek import top_of
from reflexarc.traces.requests import (
    ABSENT,
    Counts,
    Figure,
    FileReport,
    RecordedRequest,
    RecordedTool,
    derived,
    estimated,
    measured,
)

_KEYS = frozenset({"sessionId", "uuid", "parentUuid", "isSidechain", "leafUuid"})
_TYPES = frozenset(
    {
        "user", "assistant", "system", "attachment", "summary", "ai-title", "custom-title",
        "last-prompt", "mode", "permission-mode", "file-history-snapshot", "queue-operation",
        "progress", "agent-name", "agent-setting",
    }
)  # fmt: skip
_HALF = 0.5
_PASSES = {"advisor_message": "advisor", "compaction": "compaction"}
"""Kinds of passes inside one request that are billed beside it, and what each is called."""


class ClaudeCode:
    name = "claude-code"

    def recognises(self, head: Head) -> bool:
        fields = table(head.first)
        if fields:
            keys = frozenset(fields)
            if text(fields.get("type")) in _TYPES:
                return bool(_KEYS & keys) or "snapshot" in keys
            return keys >= {"type", "uuid", "parentUuid", "sessionId"}
        keys = top_of(head).keys
        return "type" in keys and len(_KEYS & keys) >= 2

    def read(self, paths: Sequence[Path], reports: dict[Path, FileReport]) -> list[RecordedRequest]:
        lines = _lines(paths, reports)
        groups = _groups(lines, reports)
        chain = Chain(lines, groups)
        results = {called: result for line in lines for called, result in line.answers.items()}
        found: list[RecordedRequest] = []
        for group in groups.values():
            found += _requests(group, chain, results)
        if chain.cut:
            for path in paths:
                reports[path].notes.append(chain.cut)
        tally(found, reports)
        for path in paths:
            if reports[path].requests:
                reports[path].notes.append(_MISSING)
        return found


_MISSING = (
    "not in these logs: system prompt, schemas of tools, side calls (titles, web search, "
    "compaction); times are when a line was complete on the client"
)


class Group(msgspec.Struct):
    """The lines of one response; `best` tells its usage, `first` its place in the chain."""

    key: str
    lines: list[Line]
    best: Line
    first: Line


def _lines(paths: Sequence[Path], reports: dict[Path, FileReport]) -> list[Line]:
    """Of all files, the oldest transcript first; of copies the one they were made of."""
    files: list[tuple[tuple[bool, float, float, str], list[Line]]] = []
    for path in sorted(paths):
        lines = list(lines_of(path, reports[path]))
        times = [line.at_s for line in lines if line.at_s is not None]
        copied = any(line.copied for line in lines)
        span = (min(times), max(times)) if times else (float("inf"), float("inf"))
        files.append(((copied, *span, str(path)), lines))
    files.sort(key=lambda one: one[0])
    every = [line for _, lines in files for line in lines]
    seen: set[str] = set()
    kept: list[Line] = []
    for line in every:
        if line.uuid and line.uuid in seen and line.kind != "assistant":
            reports[Path(line.file)].duplicate("the same line in an older file")
            continue
        seen.add(line.uuid)
        line.order = len(kept)
        kept.append(line)
    return kept


def _groups(lines: Iterable[Line], reports: dict[Path, FileReport]) -> dict[str, Group]:
    groups: dict[str, Group] = {}
    for line in lines:
        if line.kind != "assistant":
            continue
        key = _key(line, groups)
        line.group = key
        known = groups.get(key)
        if known is None:
            groups[key] = Group(key, [line], line, line)
            continue
        known.lines.append(line)
        if _rank(line) > _rank(known.best):
            known.best = line
        if line.file != known.first.file:
            reports[Path(line.file)].duplicate("the same response in an older file")
        elif line.usage:
            reports[Path(line.file)].duplicate("several lines of one response")
    return groups


def _key(line: Line, groups: dict[str, Group]) -> str:
    """The id of its message; where that was used for another model, or for a prompt that is much
    shorter, it is another response, unless it goes on from a line of that one."""
    key = line.group
    number = 1
    while (known := groups.get(key)) is not None and not _same(known, line):
        number += 1
        key = f"{line.group}#{number}"
    return key


def _same(group: Group, other: Line) -> bool:
    one = group.best
    if one.failed != other.failed or (one.model and other.model and one.model != other.model):
        return False
    if other.parent and any(line.uuid == other.parent for line in group.lines):
        return True
    prompts = sorted((_prompt(one.usage) or 0.0, _prompt(other.usage) or 0.0))
    # A placeholder tells nothing of the prompt.
    return prompts[0] <= 1 or prompts[0] >= _HALF * prompts[1]


def _rank(line: Line) -> tuple[float, bool, int, bool]:
    output = amount(line.usage.get("output_tokens")) or 0.0
    return output, line.stopped, line.order if not line.sidechain else -1, not line.sidechain


def _requests(group: Group, chain: Chain, results: dict[str, Result]) -> list[RecordedRequest]:
    best, first = group.best, group.first
    if best.failed:
        return [
            RecordedRequest(
                id=group.key, session=first.session, agent=first.agent, file=first.file,
                ended_s=measured(best.at_s), failed=True,
            )
        ]  # fmt: skip
    usage = best.usage
    place = chain.place(first)
    ended = [line.at_s for line in group.lines if line.at_s is not None]
    model = best.model or first.model
    request = RecordedRequest(
        id=group.key,
        session=first.session,
        agent=first.agent,
        file=first.file,
        model=model,
        provider="anthropic" if model.startswith("claude") else "",
        service_tier="fast" if usage.get("speed") == "fast" else text(usage.get("service_tier")),
        began_s=estimated(place.asked_s),
        ended_s=measured(max(ended) if ended else None),
        gap=True,
        counts=_counts(usage),
        cost_usd=measured(best.cost_usd),
        tools=_tools(group, results),
        prompt=place.prompt,
        output_text="\n".join(text(block.get("text")) for block in _blocks(group)).strip(),
        starts=place.starts,
        notes=("message id used for more than one response",) if "#" in group.key else (),
    )
    return [request, *_beside(request, usage)]


def _counts(usage: Table) -> Counts:
    written = amount(usage.get("cache_creation_input_tokens"))
    by_life = table(usage.get("cache_creation"))
    passes = [one for one in tables(usage.get("iterations")) if one.get("type") == "message"]
    prompt = _prompt(usage)
    context = _prompt(passes[-1]) if passes else None
    return Counts(
        prompt=derived(prompt),
        cache_read=measured(amount(usage.get("cache_read_input_tokens"))),
        cache_write=measured(written),
        cache_write_1h=measured(amount(by_life.get("ephemeral_1h_input_tokens"))),
        output=measured(amount(usage.get("output_tokens"))),
        context=ABSENT if context is None or context == prompt else derived(context),
    )


def _prompt(usage: Table) -> float | None:
    parts = [
        amount(usage.get(name))
        for name in ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    ]
    known = [part for part in parts if part is not None]
    return sum(known) if known else None


def _beside(request: RecordedRequest, usage: Table) -> list[RecordedRequest]:
    """Passes that the usage does not hold: another model that was asked on the way, and what a
    provider's own compaction read. Requests of their own, in no conversation."""
    found: list[RecordedRequest] = []
    passes = tables(usage.get("iterations"))
    for number, one in enumerate(passes):
        kind = text(one.get("type"))
        if kind not in _PASSES or (kind == "compaction" and _holds(usage, passes)):
            continue
        model = text(one.get("model")) or (request.model if kind == "compaction" else "")
        found.append(
            RecordedRequest(
                id=f"{request.id}:{_PASSES[kind]}{number}",
                session=request.session,
                agent=f"{request.agent}/{_PASSES[kind]}".lstrip("/"),
                file=request.file,
                model=model,
                provider="anthropic" if model.startswith("claude") else "",
                ended_s=_as_estimate(request.ended_s),
                counts=_counts(one),
                starts="session",
            )
        )
    return found


def _holds(usage: Table, passes: Sequence[Table]) -> bool:
    """Whether the usage is the sum of a compaction's tokens too, not of the messages' alone."""
    own = [one for one in passes if one.get("type") in ("message", "compaction")]
    return _read_and_made(usage) == sum(_read_and_made(one) for one in own)


def _read_and_made(usage: Table) -> float:
    return (_prompt(usage) or 0.0) + (amount(usage.get("output_tokens")) or 0.0)


def _as_estimate(moment: Figure) -> Figure:
    return estimated(moment.value)


def _blocks(group: Group) -> list[Table]:
    """Those of all its lines, each once: a call by its id, a text by its words."""
    found: dict[tuple[str, str], Table] = {}
    for line in sorted(group.lines, key=lambda one: one.order):
        for block in line.blocks:
            told = text(block.get("id")) or text(block.get("text")) or text(block.get("thinking"))
            found.setdefault((text(block.get("type")), told), block)
    return list(found.values())


def _tools(group: Group, results: dict[str, Result]) -> tuple[RecordedTool, ...]:
    called_s: dict[str, float | None] = {}
    for line in group.lines:
        for block in line.blocks:
            called_s.setdefault(text(block.get("id")), line.at_s)
    tools: list[RecordedTool] = []
    for block in _blocks(group):
        if text(block.get("type")) not in ("tool_use", "server_tool_use"):
            continue
        identity = text(block.get("id"))
        result = results.get(identity)
        tools.append(
            RecordedTool(
                text(block.get("name")),
                identity,
                began_s=measured(called_s.get(identity)),
                ended_s=ABSENT if result is None else measured(result.at_s),
                own_s=ABSENT if result is None else measured(result.own_s),
                failed=result is not None and result.failed,
            )
        )
    return tuple(tools)
