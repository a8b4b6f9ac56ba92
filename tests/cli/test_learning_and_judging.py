"""`learn`, `eval` and `try` on a small consistent agent: what they write, say and refuse."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from reflexarc.reflex import Reflex
from tests.cli.conftest import Run, shop_session

EVALUATION_KEYS = {
    "sessions", "tasks", "steps", "tool_steps", "calls", "name_accuracy", "call_exact_top1",
    "call_exact_top3", "read_only", "writes", "certified", "acting", "repeat_rate", "modal_share",
    "modal_share_left_out", "repeat_calls", "ece", "latency_ms",
}  # fmt: skip
CERTIFIED_KEYS = {
    "answered", "errors", "error", "error_ucb95", "coverage_calls", "coverage_steps",
    "tasks_touched_wrong",
}  # fmt: skip


def test_what_was_split_and_learned_is_judged(run: Run, shop: Path, tmp_path: Path) -> None:
    assert run("split", shop, "-o", tmp_path)[0] == 0
    reflex = tmp_path / "agent.reflex"
    code, told, _ = run("learn", tmp_path / "train.jsonl.gz", "-o", reflex, "--max-error", "0.1")
    assert code == 0
    assert "get_order" in told
    assert "'get' in the name" in told
    assert "'refund' in the name" in told
    assert "Certificates that act: over answers" in told
    card = Reflex.load(reflex).card
    assert (card.sessions, card.max_error) == (60, 0.1)

    figures = tmp_path / "out.json"
    code, told, cautions = run("eval", reflex, tmp_path / "test.jsonl.gz", "--json", figures)
    assert code == 0
    assert "careful" not in cautions
    assert "best call exact" in told
    found = json.loads(figures.read_text())
    assert set(found) == EVALUATION_KEYS
    assert set(found["read_only"]) == {"n", "top1", "top3"}
    assert set(found["writes"]) == {"n", "top1"}
    assert set(found["certified"]) == {"0.02", "0.05", "0.10"}
    assert all(set(level) == CERTIFIED_KEYS for level in found["certified"].values())
    assert set(found["latency_ms"]) == {"p50", "p99", "max"}
    assert (found["sessions"], found["tasks"], found["calls"]) == (30, 30, 90)
    code, told, cautions = run("eval", reflex, shop, "--json", "-")
    assert code == 0
    assert "60 of 90 tasks were learned from" in cautions
    assert "learned from" not in told  # the figures' keys stay what they are

    others = tmp_path / "others.jsonl"
    others.write_text(json.dumps(shop_session(0)).replace("_order", "_parcel").replace(
        "get_customer", "get_sender"
    ).replace('"t0"', '"other"') + "\n")  # fmt: skip
    code, _, cautions = run("eval", reflex, others)
    assert code == 0
    assert cautions.splitlines()[-1] == (
        "careful: none of the tools of this reflex occurs in these sessions"
    )

    # the agent always does the same: nearly everything is learned, and reads are certified
    assert found["call_exact_top1"] > 0.9
    assert found["certified"]["0.10"]["coverage_calls"] > 0.5


def test_try_says_it_all_and_keeps_nothing(run: Run, shop: Path, tmp_path: Path) -> None:
    before = sorted(tmp_path.iterdir())
    figures = tmp_path.parent / "trial.json"
    code, told, _ = run("try", shop, "--max-error", "0.1", "--json", figures)
    assert code == 0
    assert sorted(tmp_path.iterdir()) == before
    text = " ".join(told.split())
    assert "90 sessions of 90 tasks" in text
    assert "360 steps: 90 were free text, the others held 180 reads and 90 writes" in text
    assert "No task recurs here" in text
    assert "was already in the previous turn's" in text
    assert "Verdict: enable for reads" in text
    assert "Forecast at an error of at most 10%" in text
    assert "Assumed: a token is 4 characters" in text
    trial = json.loads(figures.read_text())
    verdicts = {tool["name"]: tool["verdict"] for tool in trial["learned"]["tools"]}
    assert verdicts["get_order"] == "enable for reads"
    assert verdicts["refund_order"] == "do not enable"
    forecast = trial["learned"]["forecast"]
    assert forecast["answered"] > 0
    assert forecast["after"]["model_s"] < forecast["before"]["model_s"]


def test_try_on_too_little_says_so_and_exits_well(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "few.jsonl"
    path.write_text("".join(json.dumps(shop_session(n)) + "\n" for n in range(3)))
    code, told, _ = run("try", path)
    assert code == 0
    assert "Verdict: do not enable" in told
    assert "in the learning part, 2 tasks in 2 sessions: at least 5 different tasks" in " ".join(
        told.split()
    )


def test_a_declared_effect_wins_over_the_guess(run: Run, shop: Path, tmp_path: Path) -> None:
    reflex = tmp_path / "agent.reflex"
    code, told, _ = run("learn", shop, "-o", reflex, "--effect", "get_order=write")
    assert code == 0
    assert "declared" in told
    rows = {row.name: row for row in Reflex.load(reflex).card.tools}
    assert (rows["get_order"].effect, rows["get_order"].why) == ("write", "declared")


@pytest.mark.parametrize(
    ("options", "status", "why"),
    [
        (["--effect", "get_ordr=write"], 1, "get_ordr"),
        (["--effect", "get_order=maybe"], 2, "TOOL=read"),
        (["--effect", "get_order"], 2, "TOOL=read"),
        (["--max-error", "0"], 2, "between 0 and 1"),
        (["--max-error", "1.5"], 2, "between 0 and 1"),
        (["--max-error", "0.00001"], 2, "too small"),
        (["--confidence", "high"], 2, "between 0 and 1"),
        (["--speed", "9"], 2, "No such option"),
    ],
)
def test_wrong_options_are_refused(
    run: Run, shop: Path, tmp_path: Path, options: list[str], status: int, why: str
) -> None:
    reflex = tmp_path / "agent.reflex"
    code, _, complaints = run("learn", shop, "-o", reflex, *options)
    assert code == status
    assert why in complaints
    assert not reflex.exists()


@pytest.mark.parametrize(
    ("target", "why"),
    [("", "is a folder"), ("absent/a.reflex", "there is no folder"), ("a" * 300, "too long")],
)
def test_what_cannot_be_written_to_is_refused_before_any_work(
    run: Run, shop: Path, tmp_path: Path, target: str, why: str
) -> None:
    # were a line read first, the absent file would be the complaint
    where = f"{tmp_path}/{target}"
    for command in (
        ["learn", "absent.jsonl", "-o", where],
        ["learn", "absent.jsonl", "-o", tmp_path / "a.reflex", "--json", where],
        ["eval", "absent.reflex", shop, "--json", where],
        ["try", "absent.jsonl", "--json", where],
        ["demo", "--json", where],
    ):
        code, _, complaints = run(*command)
        assert code == 2
        assert why in complaints
        assert "absent.jsonl" not in complaints


def test_a_device_is_never_replaced_by_a_reflex(run: Run, shop: Path) -> None:
    code, _, complaints = run("learn", shop, "-o", "/dev/null")
    assert code == 2
    assert "is no plain file" in complaints
    assert not Path("/dev/null").is_file()


def test_only_verified_keeps_sessions_with_full_reward(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "mixed.jsonl"
    lines = [shop_session(n, reward=float(n % 3 != 0)) for n in range(30)]
    path.write_text("".join(json.dumps(one) + "\n" for one in lines))
    reflex = tmp_path / "agent.reflex"
    code, _, said = run("learn", path, "-o", reflex, "--only-verified")
    assert code == 0
    assert "kept 20 of 30 sessions" in said
    assert Reflex.load(reflex).card.sessions == 20

    path.write_text("".join(json.dumps(shop_session(n, reward=0.0)) + "\n" for n in range(30)))
    code, _, complaints = run("learn", path, "-o", reflex, "--only-verified")
    assert code == 1
    assert "30 of 30 sessions record a reward, none of them a full one" in complaints


@pytest.mark.parametrize("content", [b"", b"not a reflex", b"\x80\x04pickled?"])
def test_a_file_that_is_no_reflex_is_named(
    run: Run, shop: Path, tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "bad.reflex"
    path.write_bytes(content)
    code, _, complaints = run("eval", path, shop)
    assert code == 1
    assert complaints.startswith("Error: ")
    assert "bad.reflex" in complaints
    code, _, complaints = run("eval", tmp_path / "absent.reflex", shop)
    assert code == 1
    assert "absent.reflex" in complaints


def test_without_lightgbm_learning_says_what_to_install(shop: Path, tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "sys.modules['lightgbm'] = None\n"  # importing it now fails as if it were not installed
        "from reflexarc.cli import main\n"
        "main(sys.argv[1:])\n"
    )
    for command in (["try", str(shop)], ["learn", str(shop), "-o", str(tmp_path / "a.reflex")]):
        done = subprocess.run(
            [sys.executable, "-c", program, *command], capture_output=True, text=True
        )
        assert done.returncode == 1
        assert "pip install 'reflexarc[learn]'" in done.stderr
        assert "Traceback" not in done.stderr


def test_try_gives_energy_a_task_for_a_service_of_known_power_alone(
    run: Run, shop: Path, tmp_path: Path
) -> None:
    figures = tmp_path / "try.json"
    code, told, _ = run(
        "try", shop, "--max-error", "0.1", "--profile", "jalapeno", "--json", figures
    )
    assert code == 0
    assert "System 2's energy a task (simulated):" in told
    assert "700 W while a request is read" in " ".join(told.split())
    forecast = json.loads(figures.read_text())["learned"]["forecast"]
    assert forecast["before"]["joules"] > forecast["after"]["joules"] > 0
    code, told, _ = run("try", shop, "--max-error", "0.1")
    assert code == 0
    assert "System 2's energy" not in told


def test_try_refuses_a_service_that_is_not_there_before_any_work(run: Run) -> None:
    code, _, complaint = run("try", "absent.jsonl", "--profile", "tpu")
    assert code == 2
    assert "no profile 'tpu'" in complaint


@pytest.mark.parametrize("command", ["eval", "try", "learn"])
def test_json_on_stdout_is_alone_there(command: str, run: Run, shop: Path, tmp_path: Path) -> None:
    reflex = tmp_path / "agent.reflex"
    assert run("learn", shop, "-o", reflex)[0] == 0
    given = {"eval": (reflex, shop), "try": (shop,), "learn": (shop, "-o", reflex)}[command]
    code, told, _ = run(command, *given, "--json", "-")
    assert code == 0
    assert isinstance(json.loads(told), dict)
