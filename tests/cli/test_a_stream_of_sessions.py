"""`reflexarc stream`: what it shows and writes, and what it refuses."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run, shop_session


def test_a_stream_is_told(run: Run, shop: Path, tmp_path: Path) -> None:
    figures = tmp_path / "stream.json"
    code, told, _ = run(
        "stream", shop, "--block", "30", "--max-error", "0.1", "--json", figures
    )  # fmt: skip
    assert code == 0
    text = " ".join(told.split())
    assert "90 sessions of 90 tasks, as they stand in the files, in blocks of 30" in text
    assert "learned 2 times, always from the past alone" in text
    assert "hold with probability 0.9" in text
    assert "No task recurs here" in text
    assert "within" in text
    found = json.loads(figures.read_text())
    assert [block["learned_from"] for block in found["blocks"]] == [0, 30, 60]
    last = found["blocks"][-1]["so_far"]["all"]
    assert last["exact"] == pytest.approx(2 / 3, abs=0.05)  # the first third had nothing
    assert last["levels"]["0.10"]["answered"] > 0
    assert f"({last['levels']['0.10']['errors']}/{last['levels']['0.10']['answered']})" in told
    assert found["repeats"]["repeat_rate"] is None


def test_sessions_are_taken_as_they_began(run: Run, shop: Path, tmp_path: Path) -> None:
    lines = [json.loads(line) for line in shop.read_text().splitlines()[:24]]
    timed = tmp_path / "timed.jsonl"
    timed.write_text(
        "".join(
            json.dumps({**line, "began_unix_s": 1.7e9 - at}) + "\n" for at, line in enumerate(lines)
        )
    )
    code, told, _ = run("stream", timed, "--block", "12")
    assert code == 0
    assert "as they began" in " ".join(told.split())


def test_files_sorted_by_task_are_cautioned_about(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "sorted.jsonl"
    lines = [json.dumps(shop_session(n, again)) for n in range(8) for again in range(3)]
    path.write_text("".join(f"{line}\n" for line in lines))
    code, told, _ = run("stream", path, "--block", "8")
    assert code == 0
    assert "seem sorted by task" in " ".join(told.split())
    code, told, _ = run("stream", path, "--block", "8", "--order", "rounds", "--json", "-")
    assert code == 0
    found = json.loads(told)
    assert found["order"] == "rounds"
    assert found["blocks"][-1]["so_far"]["recurring"]["sessions"] == 16


@pytest.mark.parametrize(
    ("options", "status", "why"),
    [
        (["--block", "0"], 2, "0 is not in the range"),
        (["--block", "90"], 1, "90 sessions are one block of 90"),
        (["--order", "time"], 1, "90 of 90 sessions do not tell when they began"),
        (["--order", "trial"], 2, "'trial' is not one of"),
        (["--every", "0"], 2, "0 is not in the range"),
        (["--effect", "get_ordr=read"], 1, "get_ordr"),
        (["--seed", "3"], 2, "No such option"),
    ],
)
def test_what_cannot_be_a_stream_is_refused(
    run: Run, shop: Path, options: list[str], status: int, why: str
) -> None:
    code, told, complaints = run("stream", shop, *options)
    assert code == status
    assert why in complaints
    assert told == ""
