"""Files of any kind are found, told apart and read, whatever the order in which they are given."""

import gzip
import json
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from reflexarc.steps.errors import InputError
from reflexarc.traces.logs import Head, read_logs
from reflexarc.traces.requests import ABSENT, FileReport, RecordedRequest, measured


class Lines:
    """A request a line: `{kind, session, id, at?}`."""

    def __init__(self, name: str) -> None:
        self.name = name

    def recognises(self, head: Head) -> bool:
        return isinstance(head.first, dict) and head.first.get("kind") == self.name

    def read(self, paths: Sequence[Path], reports: dict[Path, FileReport]) -> list[RecordedRequest]:
        found = []
        for path in paths:
            opened = gzip.open if path.suffix == ".gz" else open
            with opened(path, "rt") as file:
                for line in file:
                    one = json.loads(line)
                    reports[path].lines += 1
                    found.append(
                        RecordedRequest(
                            id=one["id"], session=one["session"], file=str(path),
                            began_s=measured(one["at"]) if "at" in one else ABSENT,
                        )
                    )  # fmt: skip
        return found


def _write(path: Path, kind: str, *requests: tuple[str, str] | tuple[str, str, float]) -> Path:
    names = ("session", "id", "at")
    lines = [json.dumps({"kind": kind, **dict(zip(names, one, strict=False))}) for one in requests]
    data = ("\n".join(lines) + "\n").encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def test_a_folder_of_several_formats_is_read_whole(tmp_path: Path) -> None:
    _write(tmp_path / "b.jsonl", "one", ("s", "2", 2.0))
    (tmp_path / "deep").mkdir()
    _write(tmp_path / "deep" / "a.jsonl.gz", "other", ("s", "1", 1.0))
    (tmp_path / "notes.txt").write_text("nothing of the kind")
    logs = read_logs([tmp_path], [Lines("one"), Lines("other")])
    assert [request.id for request in logs.requests] == ["1", "2"]
    formats = {Path(report.file).name: report.format for report in logs.files}
    assert formats == {"b.jsonl": "one", "a.jsonl.gz": "other", "notes.txt": ""}
    (unknown,) = [report for report in logs.files if not report.format]
    assert unknown.notes == ["not a log of a known format"]


def test_the_order_of_files_changes_nothing(tmp_path: Path) -> None:
    first = _write(tmp_path / "a.jsonl", "one", ("s", "10"), ("s", "9"), ("t", "1", 5.0))
    second = _write(tmp_path / "b.jsonl", "other", ("s", "8"), ("t", "0", 5.0))
    formats = [Lines("one"), Lines("other")]
    one = read_logs([first, second], formats).requests
    assert one == read_logs([second, first], formats).requests


def test_requests_without_times_stay_in_the_order_in_which_they_stand(tmp_path: Path) -> None:
    path = _write(tmp_path / "a.jsonl", "one", *(("s", str(number)) for number in range(8, 12)))
    logs = read_logs([path], [Lines("one")])
    assert [request.id for request in logs.requests] == ["8", "9", "10", "11"]


def test_a_path_that_there_is_not_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"absent\.jsonl: there is no such file or folder"):
        read_logs([tmp_path / "absent.jsonl"], [Lines("one")])


@pytest.mark.skipif(
    not Path("/proc/self/mem").exists(), reason="no file here that fails to be read"
)
def test_a_file_in_a_folder_that_cannot_be_read_takes_nothing_from_the_others(
    tmp_path: Path,
) -> None:
    _write(tmp_path / "b.jsonl", "one", ("s", "1"))
    closed = tmp_path / "a.jsonl"
    closed.symlink_to("/proc/self/mem")

    logs = read_logs([tmp_path], [Lines("one")])

    assert [request.id for request in logs.requests] == ["1"]
    (report,) = [one for one in logs.files if one.file == str(closed)]
    assert report.at_least
    assert "cannot be read" in report.notes[0]
    with pytest.raises(InputError, match=r"a\.jsonl: cannot be read"):
        read_logs([closed], [Lines("one")])


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is closed to root")
def test_a_folder_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    _write(tmp_path / "b.jsonl", "one", ("s", "1"))
    closed = tmp_path / "closed"
    closed.mkdir(mode=0)

    logs = read_logs([tmp_path], [Lines("one")])

    assert {one.file: one.at_least for one in logs.files}[str(closed)]


def test_what_is_read_once_alone_is_refused_and_an_empty_file_is_called_that(
    tmp_path: Path,
) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="pipe: neither a file nor a folder"):
        read_logs([tmp_path / "pipe"], [Lines("one")])
    (tmp_path / "empty.jsonl").touch()

    (report,) = read_logs([tmp_path], [Lines("one")]).files

    assert report.notes == ["an empty file"]
