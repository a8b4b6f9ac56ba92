"""The scripts under examples/returns_desk run as its README says, with the unmodified SDK."""

import gzip
import json
import subprocess
import sys
from pathlib import Path

from reflexarc.bench.demo_processes import simulator

EXAMPLES = Path(__file__).parents[2] / "examples" / "returns_desk"


def run(script: str, *options: str) -> str:
    command = (sys.executable, str(EXAMPLES / script), *options)
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_an_sdk_agent_works_a_queue_against_the_simulator(tmp_path: Path) -> None:
    with simulator("lpu", 0.0, tmp_path / "log") as url:
        said = run("agent.py", "--base-url", url)
    assert "next_request" in said
    assert "verified" in said


def test_recorded_sessions_are_the_same_bytes_for_the_same_seed(tmp_path: Path) -> None:
    for name in ("one.jsonl.gz", "two.jsonl.gz"):
        assert "5 sessions, 5 verified" in run(
            "record.py", "--tasks", "5", "-o", str(tmp_path / name)
        )
    one, two = ((tmp_path / name).read_bytes() for name in ("one.jsonl.gz", "two.jsonl.gz"))
    assert one == two
    sessions = [json.loads(line) for line in gzip.decompress(one).splitlines()]
    assert {"id", "task", "trial", "source", "model", "reward", "tools", "messages"} == set(
        sessions[0]
    )
    assert len({session["task"] for session in sessions}) == 5
