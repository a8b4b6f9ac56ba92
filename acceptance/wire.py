"""`make accept-wire`: every dialect, every stream, measured. Writes results/wire.json.

python -m acceptance.wire [--only PART]... [--fuzz-seconds N]

The exit status is 0 where every line holds and everything was measured.
"""

import argparse
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from acceptance import (
    wire_anthropic,
    wire_cpu,
    wire_faulty,
    wire_google,
    wire_groq,
    wire_llama,
    wire_node,
    wire_openai,
    wire_openai_responses,
    wire_pydantic_ai,
)
from acceptance.lines import Lines
from acceptance.wire_cells import Client, places, run

PARTS = ("matrix", "fuzz", "clients", "node", "llama", "faults", "cpu")
FUZZ_SECONDS = 600
_ROOT = Path(__file__).resolve().parents[1]
_CLIENTS: tuple[Client, ...] = (
    wire_openai.CHAT,
    wire_openai_responses.RESPONSES,
    wire_anthropic.ANTHROPIC,
    wire_groq.GROQ,
    wire_groq.CEREBRAS,
    wire_google.GOOGLE,
    *wire_pydantic_ai.PYDANTIC_AI,
)
_NODE_FROM, _LLAMA_FROM, _FAULTS_FROM = 11, 20, 40
_passed = re.compile(r"(\d+) passed")
_cases = re.compile(r"\b[1-9][\d,]* cases")
_not_passed = re.compile(r"\d+ (?:failed|errors?|skipped)")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m acceptance.wire")
    parser.add_argument("--only", action="append", choices=PARTS, help="measure this part only")
    parser.add_argument("--fuzz-seconds", type=int, default=FUZZ_SECONDS, metavar="N")
    arguments = parser.parse_args()
    fuzz_s: int = arguments.fuzz_seconds
    wanted = arguments.only or PARTS
    lines = Lines("wire", os.cpu_count() or 1)
    parts: dict[str, tuple[str, str, Callable[[], None]]] = {
        "matrix": ("1.1", "The golden matrix and the properties", lambda: _matrix(lines)),
        "fuzz": ("1.2", "Fuzzing", lambda: _fuzz(lines, fuzz_s)),
        "clients": ("2", "Real clients over every upstream dialect", lambda: _clients(lines)),
        "node": ("2", "The client for Node", lambda: _node(lines)),
        "llama": (
            "2", "Real clients before llama.cpp", lambda: wire_llama.measure(lines, _LLAMA_FROM)
        ),
        "faults": (
            "2", "Real clients over the fault upstream",
            lambda: wire_faulty.measure(lines, _FAULTS_FROM),
        ),
        "cpu": ("3", "CPU per streamed chunk", lambda: wire_cpu.measure(lines)),
    }  # fmt: skip
    for name, (identity, title, measured) in parts.items():
        if name not in wanted:
            lines.skip(name, asked=True)
        elif name == "llama" and importlib.util.find_spec("xllamacpp") is None:
            lines.skip("llama (the extra [local] is not installed)")
        else:
            lines.part(identity, title, measured)
    return lines.finish()


def _matrix(lines: Lines) -> None:
    """Line 1.1."""
    said = _ran([sys.executable, "-m", "pytest", "-q", "tests/wire", "-p", "no:cacheprovider"])
    last = said.text.rstrip().rsplit("\n", 1)[-1]
    passed = _passed.search(last)
    fits = said.status == 0 and passed is not None and _not_passed.search(last) is None
    if not fits:
        lines.say(said.text[-6000:])
    lines.add("1.1", "tests/wire: the matrix and the properties", "every test passes", last, fits)


def _fuzz(lines: Lines, seconds: int) -> None:
    """Line 1.2. A shorter run than asked for is none."""
    began = time.monotonic()
    said = _ran([sys.executable, "-m", "tests.wire.fuzzing", "--seconds", str(seconds)])
    took_s = time.monotonic() - began
    last = said.text.rstrip().rsplit("\n", 1)[-1][:200].rstrip(":")
    found = last if said.status == 0 else f"it ended with status {said.status}: {last}"
    short = f"; shortened to {seconds} s, which does not count" if seconds < FUZZ_SECONDS else ""
    tried = _cases.search(last) is not None
    fits = said.status == 0 and tried and took_s >= 0.98 * FUZZ_SECONDS and not short
    if said.status:
        lines.say(said.text[-6000:])
    lines.add(
        "1.2",
        "mutated requests, answers and streams, in every dialect",
        f"{FUZZ_SECONDS} s, and nothing is found",
        f"{took_s:.0f} s: {found}{short}",
        fits,
    )


def _clients(lines: Lines) -> None:
    """Lines 2.1 to 2.10."""
    with places() as wheres:
        for at, client in enumerate(_CLIENTS, 1):
            run(lines, f"2.{at}", client, wheres)


def _node(lines: Lines) -> None:
    """Lines 2.11 and 2.12."""
    missing = wire_node.missing()
    if missing is not None:
        lines.add(f"2.{_NODE_FROM}", "openai for Node", "every cell", f"none: {missing}", False)
        return
    with places() as wheres:
        for at, client in enumerate(wire_node.clients(), _NODE_FROM):
            run(lines, f"2.{at}", client, wheres)


class _Said:
    """What a command said, to a file so that no pipe of it fills, and its exit status."""

    def __init__(self, status: int, text: str) -> None:
        self.status = status
        self.text = text


def _ran(command: list[str]) -> _Said:
    with tempfile.TemporaryFile("w+") as said:
        done = subprocess.run(command, cwd=_ROOT, stdout=said, stderr=subprocess.STDOUT)
        said.seek(0)
        return _Said(done.returncode, said.read())


if __name__ == "__main__":
    raise SystemExit(main())
