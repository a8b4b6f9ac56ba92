"""Commands of ours as real processes, for the programs that measure them."""

import ctypes
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import msgspec

REFLEXARC = (sys.executable, "-m", "reflexarc")
_BASE = re.compile(r"https?://127\.0\.0\.1:\d+")


def cpu_s(pid: int) -> float:
    """User and system time of all threads of a process since it began."""
    clock = ctypes.c_int()
    if ctypes.CDLL(None).clock_getcpuclockid(pid, ctypes.byref(clock)):
        raise RuntimeError(f"process {pid} has no CPU clock: it is gone, or this is no Linux")
    return time.clock_gettime(clock.value)


class Process:
    """A running command of ours, at `base`; `said` grows by what it prints."""

    def __init__(self, process: "subprocess.Popen[str]", base: str, said: list[str]) -> None:
        self.process = process
        self.base = base
        self.said = said

    def children(self) -> dict[str, int]:
        """Its own processes by the last word of their module."""
        pid = self.process.pid
        found: dict[str, int] = {}
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            command = Path(f"/proc/{child}/cmdline").read_bytes().decode().split("\0")
            if "-m" in command:
                found[command[command.index("-m") + 1].rsplit(".", 1)[-1]] = int(child)
        return found

    def metrics(self) -> dict[str, float]:
        with urlopen(f"{self.base}/metrics", timeout=10) as response:
            lines = response.read().decode().splitlines()
        pairs = [line.rsplit(" ", 1) for line in lines if not line.startswith("#")]
        return {name: float(value) for name, value in pairs}

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        request = Request(
            f"{self.base}{path}", msgspec.json.encode(body), {"content-type": "application/json"}
        )
        with urlopen(request, timeout=10) as response:
            return msgspec.json.decode(response.read())


@contextmanager
def process(*arguments: str, environment: Mapping[str, str] | None = None) -> Generator[Process]:
    """A command of ours on a free port, once it says where it listens. In the end it is asked to
    stop, so that it writes what it has; killed only if it does not."""
    running = subprocess.Popen(
        (*REFLEXARC, *arguments), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env={**os.environ, **(environment or {})},
    )  # fmt: skip
    said: list[str] = []
    reader: threading.Thread | None = None
    try:
        assert running.stdout is not None
        for line in running.stdout:
            said.append(line)
            if (found := _BASE.search(line)) is not None:
                break
        else:
            raise RuntimeError(f"reflexarc {arguments[0]} did not start: {''.join(said)[-1000:]}")
        # read on what it says, or a full pipe would stop it
        reader = threading.Thread(target=said.extend, args=(running.stdout,), daemon=True)
        reader.start()
        yield Process(running, found.group(), said)
    finally:
        running.send_signal(signal.SIGCONT)
        running.terminate()
        try:
            running.wait(timeout=30)
        except subprocess.TimeoutExpired:
            running.kill()
            running.wait()
        if reader is not None:
            reader.join(timeout=5)
        if running.stdout is not None:
            running.stdout.close()
