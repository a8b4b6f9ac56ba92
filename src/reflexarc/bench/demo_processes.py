"""The demo's child processes: simulators and a gateway, started ready and always stopped."""

import http.client
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from reflexarc.steps.errors import UpstreamUnreachableError

_REFLEXARC = (sys.executable, "-c", "from reflexarc.cli import main; main()")
_START_LIMIT_S = 60.0
_STOP_LIMIT_S = 5.0
_POLL_S = 0.05
_BANNER = re.compile(r"http://[\d.]+:\d+/v1")


@contextmanager
def simulator(
    profile: str, time_scale: float, log: Path, *, policy: str = "scripted:returns_desk"
) -> Generator[str]:
    """A simulated System 2 of its own, its prompt cache empty; gives its base URL."""
    command = ("sim", "--profile", profile, "--port", "0", "--time-scale", str(time_scale))
    with _child((*command, "--policy", policy), log) as process:
        for _ in _until_ready(process, log):
            found = _BANNER.search(log.read_text("utf-8", "replace"))
            if found is not None:
                yield found.group()
                return


@contextmanager
def gateway(upstream: str, reflex: Path, max_error: float, log: Path) -> Generator[str]:
    """The gateway in live mode before an upstream; gives its base URL once it is ready. What it
    keeps lies beside its log, not with the user's own; what its System 2 is asked is the agent's
    alone, without audits."""
    port = _free_port()
    command = ("serve", "--upstream", upstream, "--reflex", str(reflex), "--mode", "live")
    limits = ("--max-error", str(max_error), "--port", str(port))
    apart = ("--state", str(log.with_suffix(".state")), "--audit", "0")
    with _child((*command, *limits, *apart), log) as process:
        for _ in _until_ready(process, log):
            if _answers(port, "/readyz"):
                yield f"http://127.0.0.1:{port}/v1"
                return


@contextmanager
def _child(arguments: Sequence[str], log: Path) -> Generator["subprocess.Popen[bytes]"]:
    process: subprocess.Popen[bytes] | None = None
    with log.open("wb") as output:
        try:
            with _signals_later():
                # In a session of its own: Ctrl-C reaches only the parent, which then stops its
                # children.
                process = subprocess.Popen(
                    (*_REFLEXARC, *arguments),
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            yield process
        finally:
            if process is not None:
                _stop(process)


@contextmanager
def _signals_later() -> Generator[None]:
    """Ctrl-C and SIGTERM take effect at the end: one that came while a child is being started,
    before its process is known here, would leave it running."""
    if threading.current_thread() is not threading.main_thread():  # which alone gets signals
        yield
        return
    came: list[int] = []
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {
        number: signal.signal(number, lambda number, _: came.append(number)) for number in numbers
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for number in came:
            signal.raise_signal(number)


def _until_ready(process: "subprocess.Popen[bytes]", log: Path) -> Iterator[None]:
    """Time after time until the caller is content; raises where the child ended or takes long."""
    deadline = time.monotonic() + _START_LIMIT_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        yield
        time.sleep(_POLL_S)
    said = log.read_text("utf-8", "replace").strip()[-2000:] or "nothing"
    state = "is not ready" if process.poll() is None else f"ended with {process.returncode}"
    raise UpstreamUnreachableError(f"a process of the demo {state}; it said: {said}")


def _stop(process: "subprocess.Popen[bytes]") -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        if process.poll() is not None:
            return
        process.send_signal(number)
        try:
            process.wait(_STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            continue


def _answers(port: int, path: str) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
