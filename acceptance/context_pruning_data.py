"""Conversations for `context_pruning`: real ones, as chat requests that grow turn by turn, some
with images planted in them. Read from ../shared/data."""

import base64
import gzip
import itertools
import json
import random
import re
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import msgspec

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
_COMMAND = re.compile(r"```(?:bash|sh)\n(.*?)\n?```", re.DOTALL)
_ROLE = re.compile(r"(?:^|\n\n)(user|assistant|system): ")
_SHELL = {
    "type": "function",
    "function": {
        "name": "bash",
        "description": "Runs one command.",
        "parameters": {"type": "object", "properties": {"command": {"type": "string"}}},
    },
}


class Talk(msgspec.Struct, frozen=True):
    """`messages` as they stand at the end; `ends`: how many of them each request had; `gaps_s`: the
    time between each request and the one before it, the first 0."""

    task: str
    tools: list[dict[str, Any]]
    messages: list[dict[str, Any]]
    ends: list[int]
    gaps_s: list[float]

    def request(self, end: int) -> bytes:
        return json.dumps(
            {"model": "m", "tools": self.tools, "messages": self.messages[:end]},
            ensure_ascii=False, separators=(",", ":"),
        ).encode()  # fmt: skip


def shell_talks() -> list[Talk]:
    """mini-swe-agent's, with its commands as calls of a shell. What a model answered is the
    request's `output`; what followed stands in the next request."""
    return [
        _shell_talk(path.name, _rows(path))
        for path in sorted((DATA / "requests").glob("miniswe-*.jsonl.gz"))
    ]


def team_talks() -> list[Talk]:
    """magentic's: words between agents, which no tool gave; each longest chain of requests."""
    talks: list[Talk] = []
    for path in sorted((DATA / "requests").glob("magagent-*.jsonl.gz")):
        chain: list[list[dict[str, Any]]] = []
        times: list[float] = []
        for row in sorted(_rows(path), key=lambda one: one["timestamp"]):
            found = _ROLE.split(row["input"])[1:]
            messages = [
                {"role": role, "content": text}
                for role, text in zip(found[::2], found[1::2], strict=True)
            ]
            if not chain or messages[: len(chain[-1])] == chain[-1]:
                chain.append(messages)
                times.append(row["timestamp"] / 1e6)
        gaps = [0.0, *(max(0.0, b - a) for a, b in itertools.pairwise(times))]
        if chain and chain[-1]:
            talks.append(Talk(path.name, [], chain[-1], [len(one) for one in chain], gaps))
    return talks


def session_talks(
    name: str, gap_s: Callable[[], float], images: random.Random | None = None, most: int = 120
) -> list[Talk]:
    """Recorded sessions; with `images` half of the turns are followed by a screenshot."""
    talks: list[Talk] = []
    with gzip.open(DATA / "sessions" / f"{name}.jsonl.gz", "rt") as file:
        for line in file:
            session = json.loads(line)
            messages = _plain(session["messages"])
            if images is not None:
                messages = _planted(messages, images)
            ends = [
                at
                for at, message in enumerate(messages)
                if message["role"] == "assistant" and at and messages[at - 1]["role"] != "assistant"
            ]
            if len(ends) > 1:
                gaps = [0.0, *(gap_s() for _ in ends[1:])]
                talks.append(Talk(session["task"], session["tools"], messages, ends, gaps))
            if len(talks) == most:
                break
    return talks


def recorded_gaps(names: Callable[[str], bool]) -> list[float]:
    """Seconds between requests of coding sessions that people sat before."""
    gaps: list[float] = []
    for path in sorted((DATA / "weka").glob("*.json.gz")):
        if names(path.name):
            with gzip.open(path, "rt") as file:
                times = [one["t"] for one in json.load(file)["requests"] if "t" in one]
            gaps += [b - a for a, b in itertools.pairwise(times) if b >= a]
    return gaps


def image(rng: random.Random) -> dict[str, Any]:
    """A part of a message: a PNG by its head and size, of noise."""
    width, height = rng.choice([(1024, 768), (1280, 800), (800, 600), (640, 480)])
    head = b"\x89PNG\r\n\x1a\n" + struct.pack(
        ">I4sIIBBBBB", 13, b"IHDR", width, height, 8, 2, 0, 0, 0
    )
    data = base64.b64encode(head + rng.randbytes(rng.randrange(500, 3000))).decode()
    return {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}


def _planted(messages: list[dict[str, Any]], rng: random.Random) -> list[dict[str, Any]]:
    planted: list[dict[str, Any]] = []
    for at, message in enumerate(messages):
        planted.append(message)
        following = messages[at + 1]["role"] if at + 1 < len(messages) else ""
        if message["role"] == "tool" and following == "assistant" and rng.random() < 0.5:
            text = {"type": "text", "text": "This is what the screen shows now."}
            planted.append({"role": "user", "content": [text, image(rng)]})
    return planted


def _plain(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Ids that every API takes, each once."""
    plain: list[dict[str, Any]] = []
    waiting: list[str] = []
    for message in messages:
        kept = {
            key: value
            for key, value in message.items()
            if key in ("role", "content", "tool_calls", "tool_call_id") and value is not None
        }
        if kept.get("tool_calls"):
            calls = [
                {"id": f"call_{len(plain)}_{at}", "type": "function", "function": call["function"]}
                for at, call in enumerate(kept["tool_calls"])
            ]
            waiting = [call["id"] for call in calls]
            kept["tool_calls"] = calls
        elif kept["role"] == "tool":
            kept["tool_call_id"] = waiting.pop(0) if waiting else "call_none"
        else:
            kept.pop("tool_calls", None)
        plain.append(kept)
    return plain


def _shell_talk(task: str, rows: list[dict[str, Any]]) -> Talk:
    rows.sort(key=lambda row: len(row["input"]))
    messages: list[dict[str, Any]] = [{"role": "user", "content": rows[0]["input"]}]
    ends, gaps = [1], [0.0]
    for at, (row, after) in enumerate(itertools.pairwise(rows)):
        if not after["input"].startswith(row["input"]):
            break
        shown = after["input"][len(row["input"]) :].strip()
        found = _COMMAND.findall(row["output"])
        said: dict[str, Any] = {"role": "assistant", "content": row["output"]}
        if len(found) == 1:
            arguments = json.dumps({"command": found[0]})
            function = {"name": "bash", "arguments": arguments}
            said["tool_calls"] = [{"id": f"call_{at}", "type": "function", "function": function}]
            answer = {"role": "tool", "tool_call_id": f"call_{at}", "content": shown}
        else:
            answer = {"role": "user", "content": shown}
        messages += [said, answer]
        ends.append(len(messages))
        gaps.append(max(0.0, (after["timestamp"] - row["timestamp"]) / 1e6))
    return Talk(task, [_SHELL], messages, ends, gaps)


def _rows(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt") as file:
        return [cast("dict[str, Any]", json.loads(line)) for line in file]


def in_one_go(talks: list[Talk], many: int) -> list[Talk]:
    """So many talks after one another as one long one, of one system message."""
    joined: list[Talk] = []
    for first in range(0, len(talks) - many + 1, many):
        part = talks[first : first + many]
        messages: list[dict[str, Any]] = []
        ends: list[int] = []
        for number, talk in enumerate(part):
            skipped = number > 0 and talk.messages[0]["role"] == "system"
            ends += [end + len(messages) - skipped for end in talk.ends]
            messages += [_renamed(one, f"s{number}_") for one in talk.messages[skipped:]]
        gaps = [gap for talk in part for gap in talk.gaps_s]
        joined.append(Talk(part[0].task, part[0].tools, messages, ends, gaps))
    return joined


def _renamed(message: dict[str, Any], before: str) -> dict[str, Any]:
    if message.get("tool_calls"):
        calls = [{**call, "id": before + call["id"]} for call in message["tool_calls"]]
        return {**message, "tool_calls": calls}
    if "tool_call_id" in message:
        return {**message, "tool_call_id": before + message["tool_call_id"]}
    return message
