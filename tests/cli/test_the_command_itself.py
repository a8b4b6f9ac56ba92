"""The command as a process: it starts fast and light, and an interrupt ends it cleanly."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import reflexarc

REFLEXARC = [sys.executable, "-m", "reflexarc"]


def test_help_and_version_import_neither_numpy_nor_the_web() -> None:
    program = (
        "import sys\n"
        "from reflexarc.cli import main\n"
        "for argument in ('--version', '--help'):\n"
        "    try: main([argument])\n"
        "    except SystemExit as end: assert end.code == 0\n"
        "heavy = {'numpy', 'aiohttp', 'uvicorn', 'starlette', 'lightgbm', 'rich'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stderr == ""
    assert reflexarc.__version__ in done.stdout
    assert done.stdout.splitlines()[-1] == "[]"


def test_an_unknown_command_is_wrong_usage() -> None:
    done = subprocess.run([*REFLEXARC, "fly"], capture_output=True, text=True)
    assert done.returncode == 2
    assert "No such command 'fly'" in done.stderr


def test_an_interrupt_ends_with_130_and_one_word(tmp_path: Path) -> None:
    fifo = tmp_path / "endless.jsonl"

    os.mkfifo(fifo)
    process = subprocess.Popen(
        [*REFLEXARC, "split", str(fifo), "-o", str(tmp_path / "out")],
        stderr=subprocess.PIPE,
        text=True,
    )
    with fifo.open("w") as pipe:  # opening waits until the command reads
        pipe.write("\n")
        pipe.flush()
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        _, complaints = process.communicate(timeout=20)
    assert process.returncode == 130
    assert complaints.strip() == "interrupted"
