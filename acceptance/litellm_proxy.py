"""A real LiteLLM proxy on a free port, from the environment that `make setup-litellm` makes."""

import os
import secrets
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple
from urllib.error import URLError
from urllib.request import urlopen

_ROOT = Path(__file__).resolve().parents[1]
RECIPES = _ROOT / "examples" / "recipes"
LITELLM = _ROOT / ".venv-litellm" / "bin" / "litellm"
ABSENT = "LiteLLM is not here: make setup-litellm"
_START_S = 180.0  # 20 seconds are usual on two cores
_MOST_MEMORY_BYTES = 4 * 1024**3  # of address space; it uses 350 MB


class LiteLLM(NamedTuple):
    """`url` with its /v1, the `key` that its clients show, the file of what it `said`."""

    url: str
    key: str
    said: Path


@contextmanager
def litellm(recipe: str, changes: Mapping[str, str], folder: Path) -> Generator[LiteLLM]:
    """Run a recipe as it stands but for `changes` of its addresses, each of which must be in it."""
    text = (RECIPES / recipe).read_text("utf-8")
    for old, new in changes.items():
        if old not in text:
            raise ValueError(f"{recipe} does not name {old}")
        text = text.replace(old, new)
    config = folder / recipe
    config.write_text(text)
    shutil.copy(RECIPES / "litellm_retry_after.py", folder)
    said = folder / "litellm.log"
    key = f"sk-{secrets.token_hex(16)}"
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("PYTHON")},
        "LITELLM_MASTER_KEY": key,
        "MODEL_KEY": "key-of-system-2",
        # Prices from its package: nothing is fetched from elsewhere.
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    }
    port = _free_port()
    command = (
        "sh", "-c", f'ulimit -v {_MOST_MEMORY_BYTES // 1024}; exec "$@"', "litellm", str(LITELLM),
        "--config", str(config), "--host", "127.0.0.1", "--port", str(port), "--telemetry", "False",
        "--keepalive_timeout", "75",
    )  # fmt: skip
    with said.open("wb") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, cwd=folder,
            start_new_session=True,
        )  # fmt: skip
    try:
        _until_alive(process, port, said)
        yield LiteLLM(f"http://127.0.0.1:{port}/v1", key, said)
    finally:
        _end(process)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _until_alive(process: "subprocess.Popen[bytes]", port: int, said: Path) -> None:
    until = time.monotonic() + _START_S
    while time.monotonic() < until:
        if process.poll() is not None:
            break
        try:
            with urlopen(f"http://127.0.0.1:{port}/health/liveliness", timeout=5) as answer:
                if answer.status == 200:
                    return
        except (URLError, OSError):
            time.sleep(0.2)
    tail = said.read_text("utf-8", "replace")[-2000:]
    raise RuntimeError(f"litellm did not start in {_START_S:.0f} s:\n{tail}")


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End it and all that it started: they are a process group of their own."""
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(timeout=15)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
