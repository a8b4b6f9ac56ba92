"""The supervisor, before small processes that serve, die, hang or never get so far."""

import itertools
import os
import signal
import subprocess
import sys
import textwrap
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

from reflexarc.steps.errors import ConfigError
from reflexarc.upstream.embedded import Embedded, EmbeddedLimits

pytest.importorskip("xllamacpp", reason="the extra [local] is not installed")

QUICK = EmbeddedLimits(start_s=20, look_s=0.05, hang_s=0.5, first_pause_s=0.05)
SERVING = """
    import http.server, os, socket, sys, threading

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            body = str(os.getpid()).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler, bind_and_activate=False)
    server.socket.close()
    server.socket = socket.socket(fileno=int(sys.argv[1]))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    os.write(1, b"ready\\n")
    while os.read(0, 100):
        pass
"""


def program(folder: Path, text: str) -> list[str]:
    path = folder / "process.py"
    path.write_text(textwrap.dedent(text))
    return [sys.executable, str(path)]


def asked(engine: Embedded) -> int:
    with urllib.request.urlopen(f"{engine.base_url}/x", timeout=5) as response:
        return int(response.read())


def until(holds: Callable[[], bool]) -> None:
    for _ in range(600):
        if holds():
            return
        time.sleep(0.02)
    raise AssertionError("it did not come about within 12 s")


@pytest.mark.parametrize("sign", [signal.SIGKILL, signal.SIGSTOP], ids=["dies", "hangs"])
def test_a_process_that_dies_or_hangs_is_replaced_behind_its_address(
    sign: int, tmp_path: Path
) -> None:
    with Embedded(QUICK, command=program(tmp_path, SERVING)) as engine:
        first = asked(engine)
        assert first == engine.pid
        os.kill(first, sign)
        until(lambda: engine.restarts == 1 and engine.state == "up")
        second = asked(engine)
        assert second not in (first, os.getpid())
    assert not Path(f"/proc/{first}").exists()
    assert not Path(f"/proc/{second}").exists()
    assert engine.state == "off"


def test_while_there_is_none_requests_are_told_when_to_come_back(tmp_path: Path) -> None:
    once = f"import pathlib, time\nif pathlib.Path({str(tmp_path / 'done')!r}).exists():\n"
    once += f"    time.sleep(60)\npathlib.Path({str(tmp_path / 'done')!r}).touch()\n"
    with Embedded(QUICK, command=program(tmp_path, once + textwrap.dedent(SERVING))) as engine:
        os.kill(asked(engine), signal.SIGKILL)
        until(lambda: engine.state == "restarting")
        with pytest.raises(urllib.error.HTTPError) as refused:
            asked(engine)
        with refused.value as answer:
            assert (answer.code, answer.headers["retry-after"]) == (503, "1")
            assert b"engine_restarting" in answer.read()
            assert answer.headers["x-reflexarc-engine"] == "embedded; plumbing-grade"


def test_pauses_grow_while_it_keeps_dying(tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    dying = f"""
        import os, pathlib, time
        with open({str(marks)!r}, "a") as file:
            file.write(f"{{time.monotonic()}}\\n")
    """
    text = textwrap.dedent(dying) + "import sys\n"
    text += f"if len(open({str(marks)!r}).readlines()) > 1: sys.exit(1)\n" + textwrap.dedent(
        SERVING
    )
    with Embedded(QUICK, command=program(tmp_path, text)) as engine:
        os.kill(asked(engine), signal.SIGKILL)
        until(lambda: len(marks.read_text().split()) >= 5)
    times = [float(mark) for mark in marks.read_text().split()][1:5]
    waits = [later - earlier for earlier, later in itertools.pairwise(times)]
    # Each pause is twice the one before; starting an interpreter adds to all of them alike.
    assert waits[0] >= 0.1
    assert waits[1] >= 0.2
    assert waits[2] >= 0.4


@pytest.mark.parametrize("text", ["", "import sys; sys.exit(3)", "print('other')"])
def test_one_that_never_serves_is_an_error_that_says_so(text: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="was not ready"):
        Embedded(QUICK, command=program(tmp_path, text)).start()


def test_it_ends_with_its_gateway_even_when_that_is_killed(tmp_path: Path) -> None:
    program(tmp_path, SERVING)
    keeper = (
        "import sys, time\nfrom reflexarc.upstream.embedded import Embedded\n"
        f"engine = Embedded(command=[sys.executable, {str(tmp_path / 'process.py')!r}])\n"
        "engine.start()\nprint(engine.pid, flush=True)\ntime.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", keeper], stdout=subprocess.PIPE, text=True) as own:
        assert own.stdout is not None
        child = int(own.stdout.readline())
        own.kill()
    until(lambda: not Path(f"/proc/{child}").exists())


def test_keys_of_other_upstreams_stay_with_the_gateway(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SYSTEM_2_KEY", "sk-secret")
    checking = "import os, sys\nif 'SYSTEM_2_KEY' in os.environ: sys.exit(1)\n"
    command = program(tmp_path, checking + textwrap.dedent(SERVING))
    with Embedded(QUICK, command=command, hidden_variables=["SYSTEM_2_KEY"]) as engine:
        assert asked(engine) == engine.pid


def test_without_the_extra_it_says_what_to_install() -> None:
    absent = (
        "import sys\nsys.modules['xllamacpp'] = None\n"
        "import importlib.util, importlib.machinery\n"
        "find = importlib.util.find_spec\n"
        "from reflexarc.upstream.embedded import installed\n"
        "installed.find_spec = lambda name: None if name == 'xllamacpp' else find(name)\n"
        "from reflexarc.cli import main\n"
        "sys.argv = ['reflexarc', 'serve', '--local', '--port', '0']\nmain()\n"
    )
    done = subprocess.run([sys.executable, "-c", absent], capture_output=True, text=True)
    assert done.returncode == 2, done.stderr
    assert "needs xllamacpp: pip install 'reflexarc[local]'" in done.stderr
    assert "Traceback" not in done.stderr
