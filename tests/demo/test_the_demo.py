"""The demo from end to end: real processes, a really learned reflex, nothing left behind."""

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from reflexarc.cli import main

DEMO = (sys.executable, "-c", "from reflexarc.cli import main; main()", "demo")
ARMS = ["gpu", "lpu", "lpu + baseline", "lpu + reflexarc"]


@pytest.fixture
def mark() -> Iterator[dict[str, str]]:
    """An environment that every process of one demo carries; none may be left at the end."""
    mark = uuid.uuid4().hex
    yield {**os.environ, "REFLEXARC_TEST_MARK": mark}
    assert marked(mark) == []


def marked(mark: str) -> list[str]:
    """Command lines of the running processes that carry a mark."""
    found: list[str] = []
    for folder in Path("/proc").iterdir():
        try:
            if mark.encode() in (folder / "environ").read_bytes():
                found.append((folder / "cmdline").read_bytes().decode().replace("\0", " "))
        except OSError:
            continue  # not a process, or gone meanwhile
    return found


def test_a_small_demo_compares_four_arms_and_hides_nothing(
    mark: dict[str, str], tmp_path: Path
) -> None:
    figures = tmp_path / "demo.json"
    sizes = ("--tasks", "4", "--learn-tasks", "15", "--time-scale", "0", "--tool-time-ms", "0")
    done = subprocess.run(
        (*DEMO, *sizes, "--json", str(figures)),
        env=mark,
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    report: dict[str, Any] = json.loads(figures.read_text())
    arms = {arm["arm"]: arm for arm in report["arms"]}
    assert list(arms) == ARMS
    for arm in arms.values():
        assert (arm["tasks"], arm["verified"]) == (4, 4), arm["faults"]
        assert arm["steps"] == arm["acted"] + len(arm["escalations"])
        assert arm["wrong"] == len(arm["wrong_acts"]) <= arm["acted"]
        assert float(arm["usd_per_task"]) > 0
    assert arms["gpu"]["acted"] == arms["lpu"]["acted"] == 0
    assert arms["gpu"]["steps"] == arms["lpu"]["steps"]
    assert arms["lpu + baseline"]["acted"] > 0
    assert float(arms["gpu"]["usd_per_task"]) > float(arms["lpu"]["usd_per_task"])
    assert all(one["reason"] for one in arms["lpu + reflexarc"]["escalations"])
    text = " ".join(done.stdout.split())
    assert "This System 2 is a script" in text
    assert "its latency is simulated" in text
    assert "With a real System 2" in text
    assert "by cross-fitting, each of the 15 tasks by a model" in text or "Nothing could" in text
    baseline, alone = arms["lpu + baseline"], arms["lpu"]
    assert "lpu + baseline has no certificate" in text
    assert f"{baseline['wrong']} of its {baseline['acted']} acts were wrong" in text
    assert f"({baseline['steps'] - alone['steps']:+})" in text
    for published in ("1,440.0 38.2 32.00 9.4", "580.0 18.4 14.50 6.8", "18.2 3.6 1.20 3.2"):
        assert published in text


def test_ctrl_c_stops_every_process(mark: dict[str, str], tmp_path: Path) -> None:
    log = (tmp_path / "log").open("wb")
    demo = subprocess.Popen(
        (*DEMO, "--tasks", "4", "--learn-tasks", "10"), env=mark, stdout=log, stderr=log
    )
    try:
        deadline = time.monotonic() + 100
        while not any("sim --profile" in line for line in marked(mark["REFLEXARC_TEST_MARK"])):
            assert demo.poll() is None, "the demo ended before it could be stopped"
            assert time.monotonic() < deadline, "no simulator was started"
            time.sleep(0.05)
        demo.send_signal(signal.SIGINT)
        assert demo.wait(30) == 130
    finally:
        demo.kill()
        demo.wait()
        log.close()


def test_a_real_system2_needs_its_model_named() -> None:
    done = subprocess.run(
        (*DEMO, "--upstream", "http://127.0.0.1:1/v1"), capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 2
    assert "--model" in done.stderr


@pytest.mark.parametrize(
    "upstream", ["foo", "localhost:9100/v1", "ftp://host/v1", "http://", "http://host:x/v1", ""]
)
def test_an_upstream_that_is_no_url_is_refused_first(upstream: str) -> None:
    result = CliRunner().invoke(main, ["demo", "--upstream", upstream])
    assert result.exit_code == 2
    assert f"--upstream must be a base URL such as https://HOST/v1, not {upstream!r}" in (
        result.stderr
    )


def test_a_real_system2_that_is_down_is_said_and_ends_the_demo() -> None:
    down = ("--upstream", "http://127.0.0.1:1/v1", "--model", "m", "--learn-tasks", "2")
    done = subprocess.run((*DEMO, *down), capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "no recorded task was finished" in done.stderr
