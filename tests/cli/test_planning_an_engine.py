"""`reflexarc engines`: what it prints, what it writes, how it exits."""

import json
from pathlib import Path

from tests.cli.conftest import Run


def test_a_plan_has_its_command_its_reasons_and_says_it_was_not_run(run: Run) -> None:
    code, told, _ = run(
        "engines", "plan", "--engine", "vllm", "--gpu", "h100", "--model", "Qwen/Qwen3-32B"
    )
    assert code == 0
    assert "vllm serve Qwen/Qwen3-32B --host 127.0.0.1" in told
    assert "Estimated" in told
    assert "cache_salt" in told
    assert "This command was not run here, and nothing was measured" in told


def test_a_plan_is_written_as_json(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    code, told, _ = run(
        "engines", "plan", "--engine", "sglang", "--gpu", "mi300x", "--model", "me/mine",
        "--parameters", "30B", "--layers", "48", "--kv-heads", "4", "--head-dim", "128",
        "--json", path,
    )  # fmt: skip
    assert code == 0
    made = json.loads(path.read_text())
    assert made["was_run"] is False
    assert " ".join(made["command"]) in told
    assert {"option", "value", "why", "page"} == set(made["flags"][0])


def test_what_does_not_fit_ends_with_status_1_and_a_wrong_wish_with_2(run: Run) -> None:
    wish = ["engines", "plan", "--engine", "vllm", "--model", "deepseek-ai/DeepSeek-V3.1"]
    code, told, complaint = run(*wish, "--gpu", "l4")
    assert (code, told) == (1, "")
    assert "does not fit on 8 of NVIDIA L4" in complaint
    code, _, complaint = run(*wish, "--gpu", "l5")
    assert code == 2
    assert "there is no GPU 'l5'" in complaint


def test_what_is_known_is_listed(run: Run, tmp_path: Path) -> None:
    code, told, _ = run("engines", "list", "--json", tmp_path / "known.json")
    assert code == 0
    for name in ("llamacpp", "rtx-4090", "openai/gpt-oss-120b"):
        assert name in told
    assert set(json.loads((tmp_path / "known.json").read_text())) == {"engines", "gpus", "models"}
