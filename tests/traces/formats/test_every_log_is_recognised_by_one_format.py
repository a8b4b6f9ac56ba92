"""Every public sample is taken by exactly the format it is of, and by no other."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from reflexarc.traces.formats import FORMATS
from reflexarc.traces.logs import Head, Logs, head_of
from tests.traces.formats.measures import totals

NOTHING = ""

# by folder and beginning of the name, the first that fits
SAMPLES = {
    "logs/SOURCES.md": NOTHING,
    "logs/synthetic/EXPECTED.json": NOTHING,
    "logs/synthetic/cc_": "claude-code",
    "logs/synthetic/codex_": "codex",
    "logs/claude-code/": "claude-code",
    "logs/codex/": "codex",
    "logs/inspect_ai/": "inspect-ai",
    "logs/mini-swe-agent/": "mini-swe-agent",
    "logs/openhands/": "openhands",
    "logs/pydantic-ai/": "pydantic-ai",
    "logs/swe-agent/": "swe-agent",
    "weka/": "weka",
    "sessions/": "sessions",
    "requests/": "request-logs",
}


# the last one takes whatever holds a request, when no other has
LAST = "request-logs"


def recognising(head: Head) -> list[str]:
    found = [format.name for format in FORMATS if format.recognises(head)]
    return found[:-1] if found[:-1] and found[-1] == LAST else found


def test_every_public_sample_is_recognised_by_its_format_alone(data: Path) -> None:
    wrong: dict[str, list[str]] = {}
    seen: set[str] = set()
    for folder in ("logs", "requests", "weka", "sessions"):
        for path in sorted((data / folder).rglob("*")):
            if not path.is_file():
                continue
            name = path.relative_to(data).as_posix()
            found = recognising(head_of(path))
            of = next((start for start in SAMPLES if name.startswith(start)), None)
            if of is None:
                # a sample of an export: one format at most, and none of the ones above
                if len(found) > 1 or set(found) & set(SAMPLES.values()):
                    wrong[name] = found
                continue
            seen.add(of)
            if found != ([SAMPLES[of]] if SAMPLES[of] else []):
                wrong[name] = found
    assert wrong == {}
    assert seen == set(SAMPLES)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n\n",
        "{}",
        "[]",
        "[1, 2]",
        "null",
        '"text"',
        '{"messages": []}',
        '{"messages": "none", "task": "x"}',
        '{"model": "m", "messages": [{"role": "user", "content": "x"}], "temperature": 0}',
        '[{"role": "user", "content": "x"}]',
        '{"name": "package", "version": "1.0.0", "scripts": {}}',
        '{"history": [], "info": {}}',
        "PK\x03\x04 no archive",
        "a,b,c\n1,2,3\n",
    ],
)
def test_what_is_no_log_of_a_run_is_left_alone(
    tmp_path: Path, read: Callable[..., Logs], text: str
) -> None:
    path = tmp_path / "file.json"
    path.write_bytes(text.encode("latin-1"))
    runs = set(SAMPLES.values()) - {NOTHING, LAST, "claude-code", "codex"}
    assert not set(recognising(head_of(path))) & runs
    assert {report.format for report in read(path).files} <= {NOTHING, LAST}


RUNS = ("inspect_ai", "swe-agent", "mini-swe-agent", "openhands", "pydantic-ai")


@pytest.mark.parametrize("folder", RUNS)
def test_copies_count_once_and_the_order_of_files_changes_nothing(
    data: Path, tmp_path: Path, read: Callable[..., Logs], folder: str
) -> None:
    once = totals(read(data / "logs" / folder).requests)
    for copy in ("a", "b"):
        shutil.copytree(data / "logs" / folder, tmp_path / copy / folder)
    files = sorted(path for path in tmp_path.rglob("*") if path.is_file())
    forward, backward = read(*files), read(*reversed(files))
    assert totals(forward.requests) == once
    assert forward.requests == backward.requests
    assert sum(sum(report.duplicates.values()) for report in forward.files) > 0
