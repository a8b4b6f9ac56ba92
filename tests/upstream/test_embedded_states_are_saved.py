"""States of slots as files: whole, private, bounded, and never loaded where they do not fit."""

import stat
from collections.abc import Generator
from pathlib import Path

import msgspec
import pytest

from reflexarc.upstream.embedded import forget_states
from reflexarc.upstream.embedded.saved import DIRECTORY, Fit, Saved

FIT = Fit("model", "engine 1", "f16")
MIB = 2**20


class Clock:
    now_s = 1_000_000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def saved(tmp_path: Path, clock: Clock) -> Generator[Saved]:
    made = Saved(tmp_path / DIRECTORY, FIT, MIB, 3600, clock)
    assert made.own()
    yield made
    made.close()


def keep(saved: Saved, name: str, data: bytes = b"state") -> bool:
    draft = saved.draft(name, len(data))
    assert draft is not None
    (saved.directory / draft).write_bytes(data)
    return saved.keep(name, draft, 5)


def found(saved: Saved, name: str) -> bytes | None:
    manifest = saved.begin(name)
    if manifest is None:
        return None
    data = (saved.directory / manifest.file).read_bytes()
    saved.end(name, loaded=True)
    return data


def files(saved: Saved, *suffixes: str) -> list[str]:
    return sorted(p.name for p in saved.directory.iterdir() if p.suffix in suffixes)


def again(saved: Saved, clock: Clock, fit: Fit = FIT) -> Saved:
    """The same directory after a restart."""
    saved.close()
    return Saved(saved.directory, fit, MIB, 3600, clock)


def test_what_was_kept_is_found_as_often_as_it_is_asked_for(saved: Saved) -> None:
    assert keep(saved, "a", b"one")
    assert [found(saved, "a"), found(saved, "a"), found(saved, "b")] == [b"one", b"one", None]


def test_a_newer_state_takes_the_place_of_the_older(saved: Saved) -> None:
    keep(saved, "a", b"one")
    keep(saved, "a", b"two")
    assert found(saved, "a") == b"two"
    assert len(files(saved, ".state", ".part")) == 1


def test_files_are_their_owners_alone(saved: Saved) -> None:
    keep(saved, "a")
    assert stat.S_IMODE(saved.directory.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in saved.directory.iterdir()} == {0o600}


@pytest.mark.parametrize("cut", ["shorter", "other bytes", "gone", "manifest"])
def test_a_torn_state_is_removed_and_never_loaded(saved: Saved, cut: str, clock: Clock) -> None:
    keep(saved, "a", b"one two three")
    (state,) = files(saved, ".state")
    path = saved.directory / state
    if cut == "shorter":
        path.write_bytes(b"one two")
    elif cut == "other bytes":
        path.write_bytes(b"one two\0\0\0\0\0\0")
    elif cut == "gone":
        path.unlink()
    else:
        (saved.directory / "a.json").write_bytes(b'{"file": "')
    assert saved.begin("a") is None
    with_restart = again(saved, clock)
    assert with_restart.own()
    assert files(saved, ".state", ".json") == []
    with_restart.close()


@pytest.mark.parametrize(
    "other", [Fit("other", "engine 1", "f16"), Fit("model", "engine 2", "f16"),
              Fit("model", "engine 1", "q8_0"), Fit("model", "engine 1", "f16", layout=2)],
    ids=["model", "engine", "cache", "layout"],
)  # fmt: skip
def test_a_state_made_under_other_settings_is_refused(
    saved: Saved, clock: Clock, other: Fit
) -> None:
    keep(saved, "a")
    later = again(saved, clock, other)
    assert later.own()
    assert later.begin("a") is None
    assert files(saved, ".state", ".json") == []
    later.close()


def test_a_manifest_names_no_file_elsewhere(saved: Saved, tmp_path: Path) -> None:
    keep(saved, "a")
    outside = tmp_path / "outside.state"
    outside.write_bytes(b"state")
    manifest = msgspec.json.decode((saved.directory / "a.json").read_bytes())
    manifest["file"] = "../outside.state"
    (saved.directory / "a.json").write_bytes(msgspec.json.encode(manifest))
    assert saved.begin("a") is None
    assert outside.exists()


def test_the_oldest_go_so_that_all_stay_within_the_bound(saved: Saved, clock: Clock) -> None:
    for name in "abcde":
        clock.now_s += 1
        keep(saved, name, bytes(MIB // 4))
        assert saved.size_bytes() <= MIB
        assert found(saved, "a") is not None
        clock.now_s += 1
    # Each time "a" was used last before the next one came.
    kept = [name for name in "abcde" if (saved.directory / f"{name}.json").exists()]
    assert kept == ["a", "d", "e"]


def test_one_larger_than_the_bound_is_not_kept(saved: Saved) -> None:
    keep(saved, "a")
    assert saved.draft("b", MIB) is None
    draft = saved.draft("b", 10)
    assert draft is not None
    (saved.directory / draft).write_bytes(bytes(MIB + 1))
    assert not saved.keep("b", draft, 5)
    assert found(saved, "b") is None
    assert found(saved, "a") is not None


def test_what_was_not_used_for_too_long_goes(saved: Saved, clock: Clock) -> None:
    keep(saved, "a")
    keep(saved, "b")
    clock.now_s += 3000
    assert found(saved, "a") is not None
    clock.now_s += 3000
    assert found(saved, "b") is None
    assert found(saved, "a") is not None
    clock.now_s += 4000
    later = again(saved, clock)
    assert later.own()
    assert files(saved, ".state", ".json") == []
    later.close()


def test_a_state_that_the_engine_died_of_is_not_tried_again(saved: Saved, clock: Clock) -> None:
    keep(saved, "a")
    assert saved.begin("a") is not None  # and here it ended
    later = again(saved, clock)
    assert later.own()
    assert later.begin("a") is None
    assert files(saved, ".state", ".trying", ".json") == []
    later.close()


def test_a_state_that_could_not_be_loaded_goes(saved: Saved) -> None:
    keep(saved, "a")
    assert saved.begin("a") is not None
    saved.end("a", loaded=False)
    assert files(saved, ".state", ".trying", ".json") == []


def test_drafts_that_were_left_behind_go_at_the_next_start(saved: Saved, clock: Clock) -> None:
    draft = saved.draft("a", 3)
    assert draft is not None
    (saved.directory / draft).write_bytes(b"one")
    later = again(saved, clock)
    assert later.own()
    assert files(saved, ".part") == []
    later.close()


def test_one_process_at_a_time_has_the_directory(saved: Saved, clock: Clock) -> None:
    second = Saved(saved.directory, FIT, MIB, 3600, clock)
    assert not second.own()
    saved.close()
    assert second.own()
    second.close()


def test_all_states_can_be_forgotten(saved: Saved, tmp_path: Path) -> None:
    keep(saved, "a")
    keep(saved, "b")
    assert forget_states(tmp_path) == 2
    assert files(saved, ".state", ".json") == []
    assert found(saved, "a") is None
    assert forget_states(tmp_path / "nowhere") == 0
