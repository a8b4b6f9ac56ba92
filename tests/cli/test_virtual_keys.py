"""`reflexarc keys`: made, shown, changed, revoked, and what they spent."""

import json
from pathlib import Path
from typing import Any

import pytest

from reflexarc.accounts.book import Book
from reflexarc.accounts.database import FILE
from reflexarc.accounts.keys import hash_of, is_secret, session_hash
from reflexarc.store.place import secret
from tests.accounts.booking import NOON, Clock, charge
from tests.cli.conftest import Run


def made(run: Run, name: str = "agent", *options: str) -> dict[str, Any]:
    status, out, err = run("keys", "create", name, *options, "--json")
    assert (status, err) == (0, "")
    found: dict[str, Any] = json.loads(out)
    return found


def shown(run: Run, name: str = "agent") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run("keys", "show", name, "--json")[1])["key"]
    return found


def test_a_secret_is_all_that_is_printed_and_only_once(run: Run, state_dir: Path) -> None:
    status, out, err = run("keys", "create", "agent")
    assert status == 0
    assert out.endswith("\n")
    assert is_secret(out.removesuffix("\n"))
    assert "agent" in err
    assert out.strip() not in err
    for command in ("list", "show agent", "list --json", "show agent --json", "usage"):
        again = run("keys", *command.split())
        assert again[0] == 0
        assert out.strip() not in again[1] + again[2]
    assert out.strip().encode() not in (state_dir / FILE).read_bytes()


def test_json_gives_key_and_secret_that_belong_together(run: Run, state_dir: Path) -> None:
    found = made(run)
    book = Book.open(state_dir / FILE, Clock())
    with book.database.reading() as connection:
        [(kept,)] = connection.exec_driver_sql("select hash from keys").all()
    book.close()
    assert kept == hash_of(secret(state_dir), found["secret"])
    assert found["key"]["name"] == "agent"


def test_a_key_is_what_its_options_say(run: Run) -> None:
    made(
        run, "agent", "--tenant", "team", "--budget", "5usd/month", "--budget", "session=0.5usd",
        "--requests-per-minute", "60", "--tokens-per-minute", "1000", "--parallel", "3",
        "--models", "coder, gpt-5*", "--tiers", "interactive,batch", "--default-tier", "batch",
        "--reflexes", "none", "--local-only", "--expires", "2027-01-01",
    )  # fmt: skip
    key = shown(run)
    assert key["budgets"] == [
        {"scope": "key", "micro_usd": 5_000_000, "renews": "monthly"},
        {"scope": "session", "micro_usd": 500_000, "renews": "never"},
    ]
    assert (key["tenant"], key["models"], key["reflexes"]) == ("team", ["coder", "gpt-5*"], [])
    assert (key["requests_per_minute"], key["tokens_per_minute"]) == (60, 1000)
    assert (key["max_parallel"], key["tiers"]) == (3, ["interactive", "batch"])
    assert (key["default_tier"], key["local_only"]) == ("batch", True)
    assert key["expires_unix_s"] == 1_798_761_600.0
    status, out, _ = run("keys", "show", "agent")
    assert status == 0
    for word in ("team", "coder, gpt-5*", "5usd/month", "$0.5", "2027-01-01", "stays local"):
        assert word in out


def test_set_changes_what_it_names_and_takes_limits_away(run: Run) -> None:
    made(run, "agent", "--budget", "5usd", "--parallel", "3", "--models", "coder", "--local-only")
    before = shown(run)
    assert run("keys", "set", "agent", "--parallel", "4")[0] == 0
    assert shown(run) == before | {"max_parallel": 4}
    status, _, _ = run(
        "keys", "set", "agent", "--budget", "none", "--parallel", "any", "--models", "any",
        "--not-local-only", "--tenant", "",
    )  # fmt: skip
    assert status == 0
    key = shown(run)
    assert (key["budgets"], key["max_parallel"], key["models"]) == ([], None, None)
    assert (key["local_only"], key["tenant"]) == (False, key["id"])


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--budget", "5eur"], "'5eur' is not a budget"),
        (["--budget", "5usd", "--budget", "6usd"], "two budgets bind the same"),
        (["--tiers", "fast"], "there is no tier 'fast'"),
        (["--tiers", "batch", "--default-tier", "interactive"], "none that the key may use"),
        (["--parallel", "0"], "'0' is not a whole number from 1 on"),
        (["--models", "a,,b"], "holds an empty name"),
        (["--expires", "soon"], "'soon' is not a date"),
    ],
)
def test_what_cannot_be_meant_is_refused_and_makes_no_key(
    run: Run, state_dir: Path, options: list[str], says: str
) -> None:
    status, out, err = run("keys", "create", "agent", *options)
    assert (status, out) == (2, "")
    assert says in err
    assert not (state_dir / FILE).exists()


def test_nothing_to_change_and_no_such_key_are_said(run: Run) -> None:
    made(run)
    for command, says in (
        ("set agent", "say what to change"),
        ("set other --parallel 1", "there is no key 'other'"),
        ("show other", "there is no key 'other'"),
        ("revoke other", "there is no key 'other'"),
        ("create agent", "there is a key 'agent' already"),
        ("usage --key other", "there is no key 'other'"),
        ("usage --by shoe", "'shoe' is none of key, tenant"),
    ):
        status, _, err = run("keys", *command.split())
        assert status == 2
        assert says in err


@pytest.mark.parametrize("command", ["list", "show agent", "usage", "revoke agent"])
def test_where_no_key_was_ever_made_nothing_is_made_up(
    run: Run, state_dir: Path, command: str
) -> None:
    status, _, err = run("keys", *command.split())
    assert status == 1
    assert "no key was made yet" in err
    assert not (state_dir / FILE).exists()


def test_another_state_directory_has_other_keys(run: Run, tmp_path: Path) -> None:
    made(run)
    made(run, "elsewhere", "--state", str(tmp_path / "other"))
    [key] = json.loads(run("keys", "list", "--json", "--state", tmp_path / "other")[1])
    assert key["name"] == "elsewhere"


def test_a_revoked_key_stays_known(run: Run) -> None:
    made(run)
    status, out, _ = run("keys", "revoke", "agent")
    assert (status, out.startswith("revoked: agent")) == (0, True)
    assert shown(run)["revoked"]
    assert "revoked" in run("keys", "list")[1]


@pytest.fixture
def spent(run: Run, state_dir: Path) -> str:
    """A key's id; it spent 30 micro-dollars at two providers, another 5 cent."""
    identity: str = made(run, "agent", "--budget", "0.0001usd")["key"]["id"]
    hashed = session_hash(secret(state_dir), "Ada")
    book = Book.open(state_dir / FILE, Clock())
    book.settle(None, [
        charge(10, key=identity, session=hashed, provider="groq"),
        charge(20, key=identity, provider="openai", partial=True, estimated=True),
        charge(50_000, key="", tenant="t2", provider="openai", at_unix_s=NOON + 86_400),
        charge(None, key="", provider="vllm"),
    ])  # fmt: skip
    book.close()
    return identity


def test_usage_says_what_was_spent_and_what_of_it_is_not_sure(run: Run, spent: str) -> None:
    found = json.loads(run("keys", "usage", "--by", "key,provider", "--json")[1])
    assert [(one["group"], one["micro_usd"], one["unpriced"]) for one in found] == [
        ({"key": "", "provider": "openai"}, 50_000, 0),
        ({"key": spent, "provider": "openai"}, 20, 0),
        ({"key": spent, "provider": "groq"}, 10, 0),
        ({"key": "", "provider": "vllm"}, 0, 1),
    ]
    assert (found[1]["partial_micro_usd"], found[1]["estimated_micro_usd"]) == (20, 20)
    status, out, _ = run("keys", "usage", "--by", "key,provider")
    assert status == 0
    for word in ("agent", "$0.05", "$0.00002", "estimated", "cut off", "price"):
        assert word in out
    assert spent not in out  # a key is told by its name


@pytest.mark.parametrize(
    ("options", "micro_usd"),
    [
        ([], 50_030),
        (["--key", "agent"], 30),
        (["--session", "Ada"], 10),
        (["--tenant", "t2"], 50_000),
        (["--since", "2026-12-01"], 50_000),
        (["--until", "2026-12-01"], 30),
    ],
)
@pytest.mark.usefixtures("spent")
def test_usage_of_a_part(run: Run, options: list[str], micro_usd: int) -> None:
    [one] = json.loads(run("keys", "usage", "--by", "", *options, "--json")[1])
    assert one["micro_usd"] == micro_usd


@pytest.mark.usefixtures("spent")
def test_nothing_spent_is_said(run: Run) -> None:
    assert run("keys", "usage", "--since", "2030-01-01")[1] == "nothing was spent\n"
    assert run("keys", "usage", "--since", "2030-01-01", "--json")[1] == "[]\n"


@pytest.mark.usefixtures("spent")
def test_show_says_what_is_left(run: Run) -> None:
    [budget] = json.loads(run("keys", "show", "agent", "--json")[1])["budgets"]
    assert (budget["spent_micro_usd"], budget["left_micro_usd"]) == (30, 70)
