"""`reflexarc reflex scan` and `show`: what can be read in an artifact, or in any file."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from reflexarc.cli.reflex_ import command
from reflexarc.reflex import Reflex
from reflexarc.reflex.scan import scan_values, texts_of
from reflexarc.steps.errors import InputError


@pytest.fixture
def saved(parcel_reflex: Reflex, tmp_path: Path) -> Path:
    path = tmp_path / "agent.reflex"
    parcel_reflex.save(path)
    return path


def run(*arguments: str | Path) -> tuple[int, str]:
    done = CliRunner().invoke(command, [str(argument) for argument in arguments])
    return done.exit_code, done.output


def test_every_text_of_an_artifact_is_read(saved: Path) -> None:
    texts = {text for _, text in texts_of(saved)}
    assert {"get_order", "carrier", "lost", "parcel-model"} <= texts


def test_a_value_is_found_in_what_is_packed(saved: Path) -> None:
    assert b"bluepost" not in saved.read_bytes()
    assert {one.where for one in scan_values(saved, ["REFUND_order"])} == {"header"}


def test_a_clean_artifact_exits_with_zero(saved: Path) -> None:
    assert run("scan", saved) == (0, "nothing personal or secret in 1 file\n")
    assert run("scan", saved, "--value", "flibbertigibbet")[0] == 0


def test_a_find_exits_with_one_and_does_not_repeat_it(saved: Path, tmp_path: Path) -> None:
    values = tmp_path / "values.txt"
    values.write_text("not there\nrefund_order\n\n")
    status, text = run("scan", saved, "--values-file", values, "--json", "-")
    assert status == 1
    assert [one["where"] for one in json.loads(text)["found"]] == ["header"]
    assert "refund_order" not in text


def test_other_files_are_scanned_as_bytes(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    path.write_bytes(b"\x00\x01write to ann@example.org\x00" + b'"M\\u00fcller"' + b"\xff")
    assert run("scan", path)[0] == 1
    assert [one.where for one in scan_values(path, ["Müller"])] == ["bytes"]
    path.write_bytes(b"\x00nothing here\x00")
    assert run("scan", path)[0] == 0


def test_a_value_too_short_to_mean_anything_is_refused(saved: Path) -> None:
    with pytest.raises(InputError, match="too short"):
        scan_values(saved, ["a"])


def test_a_damaged_artifact_is_not_called_clean(saved: Path) -> None:
    saved.write_bytes(saved.read_bytes()[:-1])
    assert run("scan", saved)[0] != 0


def test_show_names_certificates_tools_and_constants(saved: Path) -> None:
    status, text = run("show", saved, "--json", "-")
    shown = json.loads(text)
    assert status == 0
    constants = [(one["argument"], one["value"]) for one in shown["constants"]]
    assert ("refund_order.reason", "lost") in constants
    levels = {(one["certificate_class"], one["max_error"])
              for one in shown["card"]["certificates"] if one["scope"] == "reads"}  # fmt: skip
    assert levels == {(name, x) for name in ("exact", "model-based") for x in (0.02, 0.05, 0.1)}
    status, text = run("show", saved)
    assert status == 0
    assert "get_order" in text
