"""Whether a model fetches again what was cut: the embedded engine behind the real gateway, asked
for its next calls with the whole history and with the pruned one."""

import json
import tempfile
from pathlib import Path
from typing import Any, NamedTuple
from urllib.request import Request, urlopen

import msgspec

from acceptance.lines import Lines
from acceptance.processes import process

_TIMEOUT_S = 300.0
_FILES = ("prices.py", "orders.py", "stock.py")
_CONFIG = """
[[route]]
path = "/whole/v1"
upstream = "embedded"
mode = "off"

[[route]]
path = "/pruned/v1"
upstream = "embedded"
mode = "off"
price = { input = 1.0, output = 1.0 }
[route.prune]
keep_turns = 1
least_step_tokens = 64

[engine]
slots = 2
context_tokens = 4096
"""
# Only the first asks for what was cut: any more of it is a loop.
_WORDS = (
    "Read the file {name} once more.",
    "Run all tests again.",
    "Read a file.",
    "Go on.",
)
_PATH = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
_EDIT = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "line": {"type": "integer"}},
    "required": ["path", "line"],
}
_NONE: dict[str, Any] = {"type": "object", "properties": {}}


class Repeats(NamedTuple):
    """Of one arm: calls that were made, those that fetch again what was cut (in the other arm: what
    would have been), and requests that something was cut of."""

    calls: int
    again: int
    pruned: int


def measure(lines: Lines, conversations: int = 3, steps: int = 4) -> None:
    whole, pruned = repeats(conversations, steps)
    lines.add(
        "4",
        f"calls of the embedded engine's in {conversations} conversations, of {steps} steps each, "
        "that fetch again what was cut, beside as many with the whole history",
        "no more than with the whole history; every prompt was cut",
        f"{pruned.again} of {pruned.calls} pruned, {whole.again} of {whole.calls} whole; "
        f"{pruned.pruned} prompts cut",
        pruned.again <= whole.again and pruned.pruned == pruned.calls > 0 == whole.pruned,
    )


def repeats(conversations: int, steps: int) -> tuple[Repeats, Repeats]:
    """With the whole history, and with the pruned one."""
    with tempfile.TemporaryDirectory(prefix="reflexarc-loop-") as folder:
        path = Path(folder) / "reflexarc.toml"
        path.write_text(_CONFIG)
        with process("serve", "--config", str(path), "--port", "0", "--state", folder) as gateway:
            whole, pruned = (
                [_going_on(f"{gateway.base}/{arm}/v1", name, steps) for name in chosen]
                for chosen in [_FILES[:conversations]]
                for arm in ("whole", "pruned")
            )
    return _sum(whole), _sum(pruned)


def _sum(many: list[Repeats]) -> Repeats:
    return Repeats(*(sum(column) for column in zip(*many, strict=True)))


def _going_on(base: str, name: str, steps: int) -> Repeats:
    """A file was read, changed and read again; the model goes on from there."""
    messages = _history(name)
    calls = again = pruned = 0
    for step in range(steps):
        messages.append({"role": "user", "content": _WORDS[step % len(_WORDS)].format(name=name)})
        body = {
            "model": "local", "messages": messages, "tools": _tools(), "tool_choice": "required",
            "temperature": 0, "max_tokens": 60,
        }  # fmt: skip
        answer, header = _asked(base, body)
        pruned += header is not None
        said = answer["choices"][0]["message"]
        for call in said.get("tool_calls") or ():
            calls += 1
            function = call["function"]
            wanted = json.loads(function["arguments"])
            again += function["name"] == "read_file" and wanted.get("path") == name
            result = _file(name, 2) if wanted.get("path") == name else f"done ({step})"
            messages += [
                {"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": call["id"], "content": result},
            ]
    return Repeats(calls, again, pruned)


def _history(name: str) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "You mend programs. Use the tools, one at a time."},
        {
            "role": "user",
            "content": f"The totals in {name} are wrong. Mend them, run the tests.",
        },
    ]
    for number, (tool, arguments, result) in enumerate(
        (
            ("read_file", {"path": name}, _file(name, 1)),
            ("edit_file", {"path": name, "line": 3}, "changed"),
            ("read_file", {"path": name}, _file(name, 2)),
            ("run_tests", {}, "2 passed, 1 failed: test_rounding"),
        )
    ):
        function = {"name": tool, "arguments": json.dumps(arguments)}
        call = {"id": f"call_{number}", "type": "function", "function": function}
        messages += [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"call_{number}", "content": result},
        ]
    return messages


def _file(name: str, version: int) -> str:
    lines = [f"# {name}, version {version}", "from decimal import Decimal", ""]
    lines += [f"def part_{at}(x):\n    return x * {at + version}\n" for at in range(24)]
    return "\n".join(lines)


def _tools() -> list[dict[str, Any]]:
    return [
        {"type": "function", "function": {"name": one, "description": says, "parameters": schema}}
        for one, says, schema in (
            ("read_file", "Read a file.", _PATH),
            ("edit_file", "Change a line of a file.", _EDIT),
            ("run_tests", "Run all tests.", _NONE),
        )
    ]


def _asked(base: str, body: dict[str, Any]) -> tuple[Any, str | None]:
    request = Request(
        f"{base}/chat/completions",
        msgspec.json.encode(body),
        {"content-type": "application/json"},
    )
    with urlopen(request, timeout=_TIMEOUT_S) as response:
        return msgspec.json.decode(response.read()), response.headers.get("x-reflexarc-pruned")
