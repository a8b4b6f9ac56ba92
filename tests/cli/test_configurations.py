"""`reflexarc config check` and `show`: what is wrong with its line, what a file comes to."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from reflexarc.cli import main

TEXT = """
[[route]]
upstream = "models"
tier = "interactive"

[provider.groq]
kind = "groq"
key_env = "GROQ_API_KEY"

[provider.here]
kind = "vllm"

[model.coder]
standard = [
    { provider = "groq", model = "llama-3.3-70b-versatile" },
    { provider = "here", model = "qwen" },
]

[alias]
"gpt-4o" = "coder"
"""


def run(tmp_path: Path, text: str, *arguments: str, **environment: str) -> Result:
    path = tmp_path / "reflexarc.toml"
    path.write_text(text)
    command, *more = arguments
    return CliRunner().invoke(main, ["config", command, str(path), *more], env=environment)


def test_a_file_that_can_be_meant_is_fine(tmp_path: Path) -> None:
    result = run(tmp_path, TEXT, "check", GROQ_API_KEY="gsk")
    assert (result.exit_code, "1 routes, 1 models: fine" in result.output) == (0, True)
    told = json.loads(run(tmp_path, TEXT, "check", "--json", GROQ_API_KEY="gsk").output)
    assert told["ok"]


def test_a_key_that_is_not_there_is_told_unless_nobody_asks(tmp_path: Path) -> None:
    result = run(tmp_path, TEXT, "check", GROQ_API_KEY="")
    assert result.exit_code == 2
    assert "GROQ_API_KEY is not set" in result.output
    assert run(tmp_path, TEXT, "check", "--no-keys", GROQ_API_KEY="").exit_code == 0


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        ('kind = "groq"', 'kind = "grok"', 7, "did you mean groq?"),
        ('kind = "vllm"', 'knid = "vllm"', 11, "did you mean kind?"),
        ('provider = "here"', 'provider = "hree"', 14, "did you mean here?"),
        ('"gpt-4o" = "coder"', '"gpt-4o" = "codre"', 20, "did you mean coder?"),
        ('tier = "interactive"', 'tier = "fast"', 4, "fast"),
        ('kind = "vllm"', 'kind = "vllm"\nmax_parallel = "8"', 12, "provider.here.max_parallel"),
        ('kind = "vllm"', 'url = "http://10.0.0.1/v1"', 11, "private = true"),
        ('kind = "vllm"', 'url = "http://models.example.com/v1"\nlocal = true', 0, ""),
        ('kind = "groq"', 'kind = "groq"\nurl = "ftp://h/v1"', 8, "must be a URL"),
        ('model = "qwen" }', 'model = "qwen", service_tier = "flex" }', 14, "no service tiers"),
        (
            'key_env = "GROQ_API_KEY"\n\n[provider.here]\nkind = "vllm"',
            '[provider.here]\nkind = "openai"',
            11,
            "groq and here would both be sent the client's own key",
        ),
        ("[model.coder]", "[tier.interactive]\nattempts = 0\n[model.coder]", 14, "from 1 to 20"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(
    tmp_path: Path, old: str, new: str, line: int, said: str
) -> None:
    result = run(tmp_path, TEXT.replace(old, new), "check", GROQ_API_KEY="gsk")
    if not said:  # a name may be anybody's: only its address tells, once it is asked
        assert result.exit_code == 0
        return
    assert result.exit_code == 2, result.output
    assert said in result.output
    assert f"reflexarc.toml:{line}" in result.output or f"line {line}:" in result.output


def test_show_prints_deployments_with_prices_and_no_key(tmp_path: Path) -> None:
    result = run(tmp_path, TEXT, "show", GROQ_API_KEY="gsk-secret", COLUMNS="200")
    assert result.exit_code == 0, result.output
    assert "groq/llama-3.3-70b-versatile" in result.output
    told = json.loads(run(tmp_path, TEXT, "show", "--json", GROQ_API_KEY="gsk-secret").output)
    assert told["provider"]["groq"]["url"] == "https://api.groq.com/openai/v1"
    assert told["timeouts"]["connect_s"] == 5.0
    assert "gsk-secret" not in result.output + json.dumps(told)
