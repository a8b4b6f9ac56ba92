"""`reflexarc explain`: what it shows and writes, and what it refuses."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run, shop_session


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A reflex of 60 tasks with one read declared, and sessions of 30 others."""
    from click.testing import CliRunner

    from reflexarc.cli import main

    folder = tmp_path_factory.mktemp("explain")
    parts = {"train": range(60), "test": range(60, 90)}
    for name, numbers in parts.items():
        lines = [json.dumps(shop_session(number)) for number in numbers]
        (folder / f"{name}.jsonl").write_text("\n".join(lines))
    reflex = folder / "agent.reflex"
    asked = ["learn", str(folder / "train.jsonl"), "-o", str(reflex), "--max-error", "0.1"]
    done = CliRunner().invoke(main, [*asked, "--effect", "get_order=read"])
    assert done.exit_code == 0, done.output
    return reflex, folder / "test.jsonl"


def test_an_act_is_explained(run: Run, learned: tuple[Path, Path]) -> None:
    code, told, cautions = run("explain", *learned, "--session", "s61-0", "--step", "0")
    assert code == 0
    assert cautions == ""
    text = " ".join(told.split())
    assert "Session s61-0, step 0 of 4, message 2" in text
    assert "System 2: the same call" in text
    assert "It would act, at an error of at most 10%." in text
    assert "it would escalate with a confidence below" in text
    assert "Why get_order rather than" in text
    assert "user message 1" in text


def test_escalations_are_explained_too(run: Run, learned: tuple[Path, Path]) -> None:
    code, told, _ = run("explain", *learned, "--session", "s61-0", "--step", "1")
    assert code == 0
    text = " ".join(told.split())
    assert "It escalates (unlabelled)" in text
    assert "`learn --effect get_customer=read`" in text
    assert "nothing else stood against it" in text
    assert "tool result 3: $.customer.id" in text
    _, told, _ = run("explain", *learned, "--session", "s61-0", "--step", "2")
    text = " ".join(told.split())
    assert "It escalates (side_effect)" in text
    assert "'refund' in the name" in text
    _, told, _ = run("explain", *learned, "--session", "s61-0", "--step", "3")
    assert "System 2: a message" in told


def test_all_of_it_as_json(run: Run, learned: tuple[Path, Path]) -> None:
    code, told, _ = run("explain", *learned, "--session", "s61-0", "--step", "1", "--json", "-")
    assert code == 0
    found = json.loads(told)
    assert (found["action"], found["reason"], found["learned_from"]) == (
        "escalate", "unlabelled", False,
    )  # fmt: skip
    assert found["proposed"]["name"] == "get_customer"
    assert found["recorded"]["agrees"]
    assert [gate["reason"] for gate in found["gates"] if not gate["passed"]] == ["unlabelled"]
    assert [level["max_error"] for level in found["levels"]] == [0.02, 0.05, 0.1]
    (argument,) = found["arguments"]
    assert argument["chosen"]["source"] == {
        "kind": "tool_result", "message": 3, "path": "$.customer.id",
    }  # fmt: skip
    assert found["why_tool"]["compared_with"] > 20


def test_a_task_that_was_learned_from_is_said_to_be(run: Run, learned: tuple[Path, Path]) -> None:
    reflex, test = learned
    train = test.with_name("train.jsonl")
    code, _, cautions = run("explain", reflex, train, "--session", "s3-0", "--step", "0")
    assert code == 0
    assert "careful: task t3 was learned from" in cautions


@pytest.mark.parametrize(
    ("options", "status", "why"),
    [
        (["--session", "s61", "--step", "0"], 1, "no session 's61' among 30: did you mean s61-0"),
        (["--session", "s61-0", "--step", "4"], 1, "has 4 steps: there is no step 4"),
        (["--session", "s61-0", "--step", "0", "--call", "1"], 1, "has 1 calls"),
        (["--session", "s61-0", "--step", "-1"], 2, "-1 is not in the range"),
        (["--session", "s61-0"], 2, "Missing option '--step'"),
        (["--step", "1"], 2, "Missing option '--session'"),
        (["--session", "s61-0", "--step", "0", "--max-error", "2"], 2, "between 0 and 1"),
        (["--session", "s61-0", "--step", "0", "--deep"], 2, "No such option"),
    ],
)
def test_what_cannot_be_explained_is_refused(
    run: Run, learned: tuple[Path, Path], options: list[str], status: int, why: str
) -> None:
    code, told, complaints = run("explain", *learned, *options)
    assert code == status
    assert why in complaints
    assert told == ""
