"""Real simulators on real ports of this machine, one server thread each."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import uvicorn

from reflexarc.bench.desk import ReturnsDeskSystem2
from reflexarc.sim import Policy, SimulatedSystem2, load_profiles

Start = Callable[..., str]


@pytest.fixture
def start() -> Iterator[Start]:
    """`start(policy, profile="gpu", time_scale=0)` gives the base URL of a running simulator."""
    running: list[tuple[uvicorn.Server, threading.Thread]] = []

    def start_one(policy: Policy | None = None, profile: str = "gpu", **more: Any) -> str:
        listener = socket.create_server(("127.0.0.1", 0))
        app = SimulatedSystem2(
            policy or ReturnsDeskSystem2(), load_profiles()[profile], **{"time_scale": 0, **more}
        )
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False))
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        running.append((server, thread))
        deadline = time.monotonic() + 20
        while not server.started:
            assert time.monotonic() < deadline, "the simulator did not start"
            time.sleep(0.01)
        return f"http://127.0.0.1:{listener.getsockname()[1]}/v1"

    yield start_one
    for server, thread in running:
        server.should_exit = True
        thread.join(20)
        assert not thread.is_alive()
