"""Where the public samples lie, and reading a few files through the front door."""

from collections.abc import Callable
from pathlib import Path

import pytest

from reflexarc.traces.formats import FORMATS
from reflexarc.traces.logs import Logs, read_logs

DATA = Path(__file__).resolve().parents[3].parent / "shared" / "data"


@pytest.fixture
def data() -> Path:
    if not DATA.is_dir():
        pytest.skip("the public samples are not beside this checkout (../shared/data)")
    return DATA


@pytest.fixture
def read() -> Callable[..., Logs]:
    def read_all(*paths: Path) -> Logs:
        return read_logs(paths, FORMATS)

    return read_all
