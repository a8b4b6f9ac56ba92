"""The scripts in examples/in_process run as a reader would run them."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.beside import test_openai_agents, test_pydantic_ai
from tests.beside.conftest import DONE, Desk, ask_for, learned_through
from tests.gateway.upstream import MODEL

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "in_process"


@pytest.fixture(
    scope="module",
    params=[
        ("with_pydantic_ai.py", test_pydantic_ai.run_plainly),
        ("with_openai_agents.py", test_openai_agents.run_plainly),
    ],
    ids=lambda param: param[0],
)
def example(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Path]:
    """A script and a reflex of its agent."""
    script, run_plainly = request.param
    path = tmp_path_factory.mktemp("example") / "desk.reflex"
    learned_through(run_plainly).save(path)
    return script, path


async def test_an_example_answers_its_reads_itself(desk: Desk, example: tuple[str, Path]) -> None:
    script, reflex = example
    options: list[Any] = ["--reflex", reflex, "--url", desk.url, "--model", MODEL, ask_for(40_001)]
    process = await asyncio.create_subprocess_exec(
        sys.executable, EXAMPLES / script, *options,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, err = await process.communicate()
    assert (process.returncode, err.decode()) == (0, "")
    assert out.decode().splitlines() == [DONE, "2 of 4 turns were System 1's"]
    assert len(desk.requests) == 2
