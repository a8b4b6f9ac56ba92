"""The demo's children are stopped whatever moment Ctrl-C comes at."""

import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from reflexarc.bench import demo_processes


def test_ctrl_c_while_a_child_is_being_started_stops_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    started: list[subprocess.Popen[bytes]] = []

    class Interrupted(subprocess.Popen):  # type: ignore[type-arg]
        """Runs, and Ctrl-C comes before its caller knows of it."""

        def __init__(self, *arguments: Any, **more: Any) -> None:
            super().__init__(*arguments, **more)
            started.append(self)
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(subprocess, "Popen", Interrupted)
    before = signal.getsignal(signal.SIGINT)
    with (
        pytest.raises(KeyboardInterrupt),
        demo_processes.simulator("gpu", 0.0, tmp_path / "log"),
    ):
        raise AssertionError("the interrupt was lost")
    assert len(started) == 1
    assert started[0].poll() is not None
    assert signal.getsignal(signal.SIGINT) is before
