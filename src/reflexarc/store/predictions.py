"""A prediction as a row of `decisions`: values where the route records in full, else hashes."""

from typing import Any

import msgspec

from reflexarc.steps.canonical import call_key
from reflexarc.store.lineage import Keyed
from reflexarc.store.records import Prediction


def decision_row(keyed: Keyed, step: int, one: Prediction, full: bool) -> dict[str, Any]:
    """Names of tools and of arguments are structure and stay."""
    recorded, proposed = one.recorded or {}, one.proposed or {}
    differing = sorted(
        name
        for name in recorded.keys() | proposed.keys()
        if name not in recorded
        or name not in proposed
        or keyed.value(recorded[name]) != keyed.value(proposed[name])
    )
    return {
        "step": step,
        "position": one.position,
        "recorded_tool": one.recorded_tool,
        "recorded": _text(one.recorded) if full else None,
        "recorded_hash": _hash(keyed, one.recorded_tool, one.recorded),
        "proposed_tool": one.proposed_tool,
        "proposed": _text(one.proposed) if full else None,
        "proposed_hash": _hash(keyed, one.proposed_tool, one.proposed),
        "differing": _text(differing),
        "effect": one.effect,
        "thought": one.thought,
        "named": one.named,
        "exact": one.exact,
        "among_three": one.among_three,
        "read_exact": one.read_exact,
        "read_among_three": one.read_among_three,
        "confidence": one.confidence,
        "reason": one.reason,
        "acted": _text(one.acted),
        "would_act": one.would_act,
        "cpu_ms": one.cpu_ms,
        "answer_right": one.right,
        "answer_calls": one.calls,
        "calls_made": one.made,
    }


def _hash(keyed: Keyed, tool: str | None, arguments: dict[str, Any] | None) -> str | None:
    if tool is None or arguments is None:
        return None
    return keyed.hash("call", call_key(tool, arguments))


def _text(value: Any) -> str | None:
    return None if value is None else msgspec.json.encode(value).decode()
