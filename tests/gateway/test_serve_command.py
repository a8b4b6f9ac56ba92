"""`reflexarc serve`: one command to start, Ctrl-C to stop, clear words when it cannot start."""

import http.client
import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path
from typing import Any

import pytest


def _start(*arguments: str, **more: Any) -> subprocess.Popen[str]:
    command = [sys.executable, "-u", "-m", "reflexarc", "serve", *arguments]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more
    )


def _fails(*arguments: str) -> str:
    process = _start(*arguments)
    try:
        said, complained = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 2, (said, complained)
    assert "Traceback" not in complained
    return complained


def _until_ready(process: subprocess.Popen[str]) -> tuple[str, int]:
    """What it said, and its port."""
    assert process.stdout is not None
    said = ""
    for line in process.stdout:
        said += line
        if "Ctrl-C" in line:
            break
    return said, int(re.search(r"http://[0-9.]+:(\d+)", said).group(1))  # type: ignore[union-attr]


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_it_says_where_it_listens_and_stops_cleanly(sign: int, reflex_path: Path) -> None:
    process = _start(
        "--upstream", "http://127.0.0.1:9/v1", "--port", "0", "--reflex", str(reflex_path)
    )
    said, port = _until_ready(process)
    assert f"listens on http://127.0.0.1:{port}" in said
    assert "[shadow]" in said
    workers = _children(process.pid)
    assert workers
    process.send_signal(sign)
    _, complained = process.communicate(timeout=30)
    assert (process.returncode, complained) == (0, "")
    assert not any(Path(f"/proc/{worker}").exists() for worker in workers)


def test_requests_in_flight_are_finished_when_it_stops() -> None:
    with socket.create_server(("127.0.0.1", 0)) as upstream:
        process = _start(
            "--upstream", f"http://127.0.0.1:{upstream.getsockname()[1]}/v1", "--port", "0"
        )
        _, port = _until_ready(process)
        answered: list[tuple[int, bytes]] = []

        def ask() -> None:
            client = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
            client.request("POST", "/v1/chat/completions", b"{}")
            response = client.getresponse()
            answered.append((response.status, response.read()))
            client.close()

        asking = threading.Thread(target=ask)
        asking.start()
        connection, _ = upstream.accept()
        with connection:
            assert connection.recv(65536)
            process.send_signal(signal.SIGINT)
            # It no longer takes new work, but the old is still going on.
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(0.5)
            connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")
            asking.join(30)
        process.communicate(timeout=30)
    assert answered == [(200, b"{}")]
    assert process.returncode == 0


def test_its_processes_end_even_if_the_gateway_is_killed(reflex_path: Path) -> None:
    process = _start(
        "--upstream", "http://127.0.0.1:9/v1", "--port", "0", "--reflex", str(reflex_path)
    )
    _until_ready(process)
    children = _children(process.pid)
    assert len(children) == 2  # System 1 and the recorder
    handles = [os.pidfd_open(child) for child in children]
    process.kill()
    process.communicate(timeout=30)
    for handle in handles:
        ended, _, _ = select.select([handle], [], [], 10)
        os.close(handle)
        assert ended


def test_a_configuration_file_serves(tmp_path: Path) -> None:
    path = tmp_path / "reflexarc.toml"
    path.write_text(
        'port = 0\n[[route]]\nupstream = "http://127.0.0.1:9/v1"\npath = "/agents/a/v1"\n'
        '[[route]]\nupstream = "http://127.0.0.1:9/v1"\nmode = "off"\n'
    )
    process = _start("--config", str(path))
    said, _ = _until_ready(process)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert "/agents/a/v1 -> http://127.0.0.1:9/v1  [shadow]" in said
    assert "[off]" in said


def test_a_reflex_that_cannot_be_used_is_said_and_done_without(
    tmp_path: Path, reflex_path: Path
) -> None:
    corrupt = tmp_path / "bad.reflex"
    corrupt.write_bytes(reflex_path.read_bytes()[:-100])
    process = _start(
        "--upstream", "http://127.0.0.1:9/v1", "--port", "0", "--reflex", str(corrupt),
        "--mode", "live",
    )  # fmt: skip
    said, port = _until_ready(process)
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz") as answer:
        ready = json.loads(answer.read())
    process.send_signal(signal.SIGINT)
    _, complaints = process.communicate(timeout=30)
    assert "WITHOUT SYSTEM 1" in said
    assert str(corrupt) in complaints
    assert ready["status"] == "ready"
    assert ready["degraded"]
    assert str(corrupt) in ready["unusable"]["/v1"]


def test_what_cannot_start_says_why(tmp_path: Path) -> None:
    upstream = ("--upstream", "http://127.0.0.1:9/v1", "--port", "0")
    assert "--upstream" in _fails()
    missing = tmp_path / "none.reflex"
    assert str(missing) in _fails(*upstream, "--reflex", str(missing))
    assert "there is no dialect 'respones'; did you mean responses?" in _fails(
        *upstream, "--dialect", "respones"
    )
    assert "needs a reflex" in _fails(*upstream, "--mode", "live")
    assert "between 0 and 1" in _fails(*upstream, "--max-error", "5")
    assert "NO_SUCH_KEY" in _fails(*upstream, "--api-key-env", "NO_SUCH_KEY")
    config = tmp_path / "x.toml"
    config.write_text("prot = 1\n")
    assert f"{config}:1: prot is not known; did you mean port?" in _fails("--config", str(config))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert "cannot listen" in _fails("--upstream", "http://127.0.0.1:9/v1", "--port", port)


def _children(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(child) for child in text.split()]
