"""`reflexarc reflex list|promote|demote|rollback` and `relearn`: what they say, and refuse."""

import json
from pathlib import Path

import msgspec
import pytest

from reflexarc.lifecycle.standing_file import FILE
from reflexarc.reflex import Reflex, learn
from reflexarc.traces import read_sessions

from .conftest import Run, shop_session


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("shop") / "shop.jsonl"
    path.write_text("".join(json.dumps(shop_session(n)) + "\n" for n in range(90)))
    return learn(read_sessions([path]), max_error=0.1).to_bytes()


@pytest.fixture
def artifact(learned: bytes, tmp_path: Path) -> str:
    path = tmp_path / "shop.reflex"
    path.write_bytes(learned)
    return str(path)


def test_promoted_demoted_rolled_back_and_all_of_it_in_the_trail(artifact: str, run: Run) -> None:
    assert "no reflex was promoted" in run("reflex", "list")[1]
    status, out, _ = run("reflex", "promote", artifact, "--by", "ann", "--why", "seen", "--json")
    assert status == 0
    first = json.loads(out)["state"]["in_use"]
    other = Reflex.load(artifact)
    other.card = msgspec.structs.replace(other.card, items=other.card.items + 1)
    other.save(artifact)
    assert run("reflex", "promote", artifact, "--by", "ann")[0] == 0
    assert run("reflex", "demote", artifact, "--scope", "reads:get_order", "--by", "bob")[0] == 0
    status, out, _ = run("reflex", "rollback", artifact, "--by", "bob", "--json")
    assert (status, json.loads(out)["state"]["in_use"]) == (0, first)
    listed = json.loads(run("reflex", "list", "--json")[1])["reflexes"]
    assert [one["word"] for one in listed[0]["versions"][1]["scopes"]] == ["live"]
    assert "no gateway of this directory runs" in run("reflex", "demote", artifact)[1]
    assert "demoted" in run("reflex", "show", artifact)[1]
    trail = json.loads(run("audit", "show", "--json")[1])
    assert [(one["what"], one["who"]) for one in trail[:4]] == [
        ("promote", "ann"), ("promote", "ann"), ("demote", "bob"), ("rollback", "bob"),
    ]  # fmt: skip
    assert run("audit", "verify")[0] == 0


def test_what_cannot_be_is_refused_and_changes_nothing(
    artifact: str, run: Run, state_dir: Path
) -> None:
    for arguments, wanted in (
        (("promote", artifact, "--scope", "writes:refund_order"), "name who with --by"),
        (("promote", artifact, "--scope", "writes", "--by", "ann"), "is no scope"),
        (("promote", artifact, "--scope", "reads:unknown"), "knows no tool unknown"),
        (("promote", artifact, "--version", "abc"), "is kept"),
        (("demote", artifact, "--scope", "everything"), "is no scope"),
        (("rollback", artifact), "nothing to go back to"),
        (("promote", "none.reflex"), "does not exist"),
    ):
        status, _, err = run("reflex", *arguments)
        assert (status, wanted in err) == (2, True), (arguments, err)
    assert not (state_dir / FILE).exists()
    (state_dir / FILE).write_text("{")
    status, _, err = run("reflex", "list")
    assert (status, "nothing acts" in err) == (1, True)


def test_relearning_without_a_store_says_so(artifact: str, run: Run) -> None:
    status, _, err = run("relearn", artifact)
    assert (status, "there is no store" in err) == (1, True)
