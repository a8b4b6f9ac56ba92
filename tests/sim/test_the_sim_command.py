"""`reflexarc sim` as a process: its banner, its policies, its faults, and Ctrl-C."""

import json
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import ProxyHandler, Request, build_opener

import pytest

from reflexarc.bench.desk.world import MODEL

SIM = (sys.executable, "-c", "from reflexarc.cli import main; main()", "sim", "--time-scale", "0")


class Running:
    def __init__(self, *options: str) -> None:
        self.process = subprocess.Popen(
            (*SIM, "--port", "0", *options), stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        self.banner = self.process.stdout.readline()
        found = re.search(r"http://\S+/v1", self.banner)
        assert found is not None, self.banner
        self.url = found.group()

    def ask(self, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        data = None if body is None else json.dumps(body).encode()
        request = Request(self.url + path, data, {"content-type": "application/json"})
        with build_opener(ProxyHandler({})).open(request, timeout=20) as answer:
            return json.loads(answer.read())


@pytest.fixture
def run() -> Iterator[Any]:
    running: list[Running] = []

    def start(*options: str) -> Running:
        running.append(Running(*options))
        return running[-1]

    yield start
    for one in running:
        one.process.kill()
        one.process.communicate()


def failed(*options: str) -> str:
    done = subprocess.run((*SIM, *options), capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    return done.stderr


def test_it_says_where_it_listens_and_ends_cleanly_on_ctrl_c(run: Any) -> None:
    sim = run("--profile", "lpu")
    assert "profile lpu, scripted:returns_desk" in sim.banner
    assert sim.ask("/models")["data"][0]["id"] == MODEL
    sim.process.send_signal(signal.SIGINT)
    assert sim.process.wait(20) == 0


def test_a_recorded_policy_and_another_model_name(run: Any, tmp_path: Path) -> None:
    opening = {"role": "user", "content": "Hello?"}
    session = {
        "id": "s",
        "task": "t",
        "tools": [],
        "messages": [opening, {"role": "assistant", "content": "Hi."}],
    }
    path = tmp_path / "s.jsonl"
    path.write_text(json.dumps(session) + "\n")
    sim = run("--policy", f"recorded:{path}", "--model", "mine")
    answer = sim.ask("/chat/completions", {"model": "mine", "messages": [opening]})
    assert answer["choices"][0]["message"]["content"] == "Hi."


def test_faults_are_said_in_one_line(tmp_path: Path) -> None:
    assert "there is no profile 'tpu'; there are gpu, lpu" in failed("--profile", "tpu")
    assert "must be scripted:returns_desk or recorded:FILE" in failed("--policy", "scripted:x")
    empty = tmp_path / "empty.jsonl"
    empty.write_text("")
    assert "holds no session" in failed("--policy", f"recorded:{empty}")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = failed("--port", str(port))
        assert said == f"Error: cannot listen on 127.0.0.1:{port}: Address already in use\n"
    assert "cannot listen on no-such-host.invalid:0: " in failed(
        "--host", "no-such-host.invalid", "--port", "0"
    )
