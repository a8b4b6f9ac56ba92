"""Line 1, in four parts: what `reflexarc try` says of logs whose right figures are known. Block
traces, full-text requests of two agents, sample files of many formats, sessions."""

import gzip
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple, cast

from acceptance.lines import Lines

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
WEKA, REQUESTS, LOGS, SESSIONS = (DATA / one for one in ("weka", "requests", "logs", "sessions"))
MAX_CPU_S, MAX_RSS_MB = 20.0, 500.0
SESSIONS_WITHIN_S, SESSIONS_TRIED = 60.0, 50
SPREAD = {"8k-16k": (0.970, 0.01), "over 100k": (0.995, 0.003)}
"""Medians of the whole set of 710 sessions, and how far the 48 of them here may be from them."""
EXPIRY = {300.0: (0.10, 0.03), 3600.0: (0.04, 0.02)}
FEW_TURNS, MOST_TOKENS = (0.02, 0.01), (0.53, 0.10)

FIGURES = ("requests", "prompt", "cache_read", "output")
RIGHT: dict[str, tuple[int | None, ...]] = {
    "claude-code/tracelab_claude.jsonl": (10, 418_193, 394_068, 9_423),
    "codex/tracelab_codex.jsonl": (9, 95_819, 79_488, 1_912),
    "inspect_ai/2025-02-11T15-18-04-05-00_popularity_mj7khqpMM4GBCfVQozKgzB.eval": (
        10, 620, None, 20,
    ),
    "inspect_ai/log_streaming.eval": (4, 252, None, 6),
    "langfuse/langgraph-2025-08-22.json": (2, 168, 0, 66),
    "langfuse/openai-agents-2025-09-30.json": (2, 140, 0, 44),
    "langfuse/pydantic-ai-tools-2025-12-04.json": (4, 1_315, None, 209),
    "openhands/events.jsonl": (4, 107_458, 68_193, 1_347),
    "openinference/openai.otlp.json": (2, 2_472, 1_152, 30),
    "otel-genai/pydantic_ai_v2.otlp.json": (2, 2_472, 1_152, 30),
    "otel-genai/pydantic_ai_v5.otlp.json": (2, 2_472, 1_152, 30),
    "pydantic-ai/all_messages.json": (2, 2_472, 1_152, 30),
    "swe-agent/6e44b9__sweagenttestrepo-1c2844.traj": (5, 7_141, None, 243),
    "swe-agent/marshmallow-1867_function_calling.traj": (11, None, None, None),
}  # fmt: skip
"""As the files' own totals have it, or the sum of their calls of models, added up by hand."""
NO_LOGS = {"SOURCES.md", "EXPECTED.json"}


class Ran(NamedTuple):
    """One call of the command: its report, its CPU seconds, its peak of memory."""

    code: int
    report: dict[str, Any]
    cpu_s: float
    rss_mb: float
    said: str


def measure(lines: Lines) -> None:
    if not all(folder.is_dir() for folder in (WEKA, REQUESTS, LOGS)):
        lines.skip("logs (the public data is not beside this checkout)")
        return
    with lines.within("1"):
        _weka(lines)
        _requests(lines)
        _samples(lines)
        if SESSIONS.is_dir():
            _sessions(lines)
        else:
            lines.skip("sessions (the public recordings are not beside this checkout)")


def _weka(lines: Lines) -> None:
    ran = _try(WEKA, one_core=True)
    bands = {one["context"]: one for one in ran.report["redundancy_by_context"]}
    for number, (name, (middle, spread)) in enumerate(SPREAD.items(), 1):
        band = bands[name]
        what = f"block traces, {name} tokens: median share equal to the previous turn's prompt"
        _near(lines, f"1.{number}", f"{what} ({band['n']} turns)", band["median"], middle, spread)
    for number, one in enumerate(ran.report["cache_expiry"], 3):
        middle, spread = EXPIRY[one["ttl_s"]]
        what = f"a cache that forgets after {one['ttl_s']:g} s misses, of all prompt tokens"
        _near(lines, f"1.{number}", what, one["share"], middle, spread)
    few = ran.report["concentration"]
    _near(lines, "1.5", "turns that reuse less than half", few["share_of_turns"], *FEW_TURNS)
    what = "of the tokens that the previous turn did not hold, they cause"
    _near(lines, "1.6", what, few["share_of_recomputed"], *MOST_TOKENS)
    totals = ran.report["totals"]
    what = "requests read; cached tokens, which these traces do not tell"
    told = f"{totals['requests']:,}; {totals['cache_read']}"
    lines.add("1.7", what, "2,208; None", told, told == "2,208; None")
    what = f"CPU for {totals['prompt']:,} tokens of {totals['requests']:,} prompts, on one core"
    lines.at_most("1.8", what, ran.cpu_s, MAX_CPU_S, " s")
    lines.at_most("1.9", "peak memory of that", ran.rss_mb, MAX_RSS_MB, " MB")


def _requests(lines: Lines) -> None:
    """Two agents: one whose prompts only grow, one that goes back and forth."""
    ran = _try(REQUESTS)
    medians: dict[str, list[dict[str, Any]]] = {"magagent": [], "miniswe": []}
    for one in ran.report["files"]:
        for agent, rows in medians.items():
            if Path(one["name"]).name.startswith(agent):
                rows.append(one)
    going = [one for one in medians["magagent"] if one["reused_previous"] < 0.5]
    least = min((one["reused_earlier"] for one in going), default=0.0)
    lines.at_least(
        "2.1", "sessions of an orchestrator that reuse under half of a turn", len(going), 4
    )
    lines.at_least("2.2", "of any earlier prompt those reuse, median, at least", least, 0.9)
    said = [one for one in ran.report["verdicts"] if "back and forth between conversations" in one]
    lines.add("2.3", "and the report says so", "1 verdict", f"{len(said)} verdict", len(said) == 1)
    named = [one["name"] for one in medians["miniswe"] if one["reused_previous"] < 0.9]
    what = "sessions of a coding agent with less than 90% from the previous turn"
    lines.add("2.4", what, "none", ", ".join(named) or "none", not named)


def _samples(lines: Lines) -> None:
    ran = _try(LOGS)
    rows = {str(Path(one["name"]).relative_to(LOGS)): one for one in ran.report["files"]}
    lines.add(
        "3.1", "a folder of all formats in one call: exit status", "0", str(ran.code), not ran.code
    )
    unknown = sorted(
        name for name, one in rows.items() if not one["format"] and Path(name).name not in NO_LOGS
    )
    what = f"of {len(rows) - len(NO_LOGS)} sample files, of no known format"
    lines.add("3.2", what, "none", ", ".join(unknown) or "none", not unknown)
    for number, (name, right) in enumerate(RIGHT.items(), 3):
        found = tuple(rows[name][one] for one in FIGURES)
        _equal(lines, f"3.{number}", f"{name}: {', '.join(FIGURES)}", found, right)
    _synthetic(lines, rows, 3 + len(RIGHT))


def _synthetic(lines: Lines, rows: dict[str, Any], number: int) -> None:
    """The traps: right totals stand beside the files. Several files in one entry are one sum."""
    expected = json.loads((LOGS / "synthetic" / "EXPECTED.json").read_text())
    for at, (names, right) in enumerate(cast("dict[str, Any]", expected).items(), number):
        of = [rows[f"synthetic/{name}"] for name in names.split(" + ")]
        wanted = _wanted(right)
        found = {name: _sum(of, name) for name in wanted}
        _equal(lines, f"3.{at}", f"{names}: {', '.join(wanted)}", found, wanted)


def _wanted(right: dict[str, Any]) -> dict[str, int]:
    """The figures of an entry, by the report's names. An entry for a main model and another one has
    them apart: together they are what the file holds."""
    if "billed_main" in right:
        others = right["extra_model"].values()
        whole = dict(right["billed_main"])
        for other in others:
            for name, tokens in other.items():
                whole[name] = whole.get(name, 0) + tokens
        return {"requests": right["responses"] + len(others), **whole}
    known = {"cached": "cache_read"}
    names = ("requests", "prompt", "cache_read", "cache_write", "output", "reasoning", "errors",
             "total")  # fmt: skip
    renamed = {known.get(name, name): value for name, value in right.items()}
    return {name: value for name, value in renamed.items() if name in names or name == "tool_calls"}


def _sum(rows: list[dict[str, Any]], name: str) -> int:
    if name == "errors":
        return sum(one["report"]["errors"] for one in rows)
    if name == "total":
        return _sum(rows, "prompt") + _sum(rows, "output")
    return sum(one[name] or 0 for one in rows)


def _sessions(lines: Lines) -> None:
    with (
        gzip.open(SESSIONS / "tau1_retail_fork.jsonl.gz", "rb") as file,
        tempfile.TemporaryDirectory() as folder,
    ):
        few = Path(folder) / "few.jsonl"
        few.write_bytes(
            b"".join(line for _, line in zip(range(SESSIONS_TRIED), file, strict=False))
        )
        ran = _try(few)
    what = f"reflexarc try on {SESSIONS_TRIED} sessions, System 1 included: CPU"
    lines.at_most("4.1", what, ran.cpu_s, SESSIONS_WITHIN_S, " s")
    both = "verdict" in ran.report and bool(ran.report["verdicts"])
    lines.add("4.2", "its report holds the trial and the waste", "both", str(both), both)


def _try(path: Path, *, one_core: bool = False) -> Ran:
    with tempfile.TemporaryDirectory() as folder:
        figures, page, said = (Path(folder) / name for name in ("a.json", "a.html", "said"))
        command = [sys.executable, "-m", "reflexarc", "try", str(path)]
        command += ["--json", str(figures), "--html", str(page)]
        with said.open("wb") as output:
            running = subprocess.Popen(
                command, stdout=output, stderr=subprocess.STDOUT,
                preexec_fn=(lambda: os.sched_setaffinity(0, {0})) if one_core else None,
            )  # fmt: skip
            _, status, used = os.wait4(running.pid, 0)
        running.returncode = os.waitstatus_to_exitcode(status)
        told = said.read_text("utf-8", "replace")
        if not figures.exists():
            raise RuntimeError(f"reflexarc try {path} wrote nothing: {told[-500:]}")
        return Ran(
            running.returncode,
            json.loads(figures.read_text("utf-8")),
            used.ru_utime + used.ru_stime,
            used.ru_maxrss / 1024,
            told,
        )


def _near(
    lines: Lines, identity: str, what: str, found: float, middle: float, spread: float
) -> None:
    is_near = abs(found - middle) <= spread
    lines.add(identity, what, f"{middle:g} +- {spread:g}", f"{found:.4f}", is_near)


def _equal(lines: Lines, identity: str, what: str, found: Any, right: Any) -> None:
    told, required = (_told(one) for one in (found, right))
    lines.add(identity, what, required, told, found == right)


def _told(figures: Any) -> str:
    values = cast("dict[str, Any]", figures).values() if isinstance(figures, dict) else figures
    return ", ".join("not in it" if one is None else f"{one:,}" for one in values)
