"""For all tests: an interrupt interrupts, what gateways keep stays apart, no example has a deadline
(a busy machine is no fault of the code).

A shell that starts a job in the background tells it to ignore interrupts, and every process below
inherits that. Tests of what Ctrl-C does must not depend on how the suite was started.
"""

import signal
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("without deadlines", deadline=None)
settings.load_profile("without deadlines")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def state_dir(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where everything that this test starts keeps its things."""
    directory = tmp_path_factory.mktemp("state")
    monkeypatch.setenv("REFLEXARC_STATE", str(directory))
    return directory
