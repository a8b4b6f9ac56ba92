"""`reflexarc try` on logs of any known format: the waste report, its JSON and its page."""

import json
import os
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from reflexarc.cli import try_
from tests.cli.conftest import Run, shop_session

VOID = {"meta", "br", "line", "rect"}


class Page(HTMLParser):
    """What stands on a page; complains of tags that do not match."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.text += f" {data}"


def trace(path: Path, name: str, *prompts: list[int], model: str = "claude-opus-4-5") -> Path:
    """A block trace: a request every minute, blocks of 1,000 tokens."""
    requests: list[dict[str, Any]] = [
        {"t": 60.0 * at, "type": "s", "model": model, "in": 1000 * len(ids), "out": 20,
         "hash_ids": ids, "api_time": 5.0}
        for at, ids in enumerate(prompts)
    ]  # fmt: skip
    whole = {"id": name, "models": [model], "block_size": 1000, "hash_id_scope": "local",
             "tool_tokens": 0, "system_tokens": 0, "requests": requests}  # fmt: skip
    path.write_text(json.dumps(whole))
    return path


def test_a_folder_of_several_formats_is_one_report(run: Run, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    trace(logs / "trace.json", "one", [1, 2, 3], [1, 2, 3, 4], [1, 9, 9, 9, 9])
    (logs / "few.jsonl").write_text(
        "".join(json.dumps(shop_session(number)) + "\n" for number in range(3))
    )
    (logs / "notes.txt").write_text("nothing of the kind")
    figures = tmp_path / "figures.json"
    code, told, _ = run("try", logs, "--json", figures)
    assert code == 0
    said = " ".join(told.split())
    assert said.startswith("What this log says - 15 requests")
    assert said.index("1 prefix break:") < said.index("Verdict: do not enable")
    found = json.loads(figures.read_text())
    assert found["totals"]["requests"] == 3 + 12
    assert found["totals"]["cache_read"] is None
    assert {Path(one["name"]).name: one["format"] for one in found["files"]} == {
        "few.jsonl": "sessions", "notes.txt": "", "trace.json": "weka",
    }  # fmt: skip
    assert found["breaks"][0]["lost_tokens"] == 3000
    assert found["facts"]["sessions"] == 3
    assert found["verdict"] == "do not enable"
    assert found["verdicts"][0] in said
    assert {one["way"] for one in found["savings"]} >= {"System 1", "stable prefixes"}


def test_the_trial_is_left_out_where_asked_and_where_there_are_no_sessions(
    run: Run, shop: Path, tmp_path: Path
) -> None:
    figures = tmp_path / "figures.json"
    traced = trace(tmp_path / "trace.json", "one", [1, 2], [1, 2, 3])
    for arguments in ([shop, "--no-system1"], [traced]):
        code, told, _ = run("try", *arguments, "--json", figures)
        assert code == 0
        assert "Verdict:" not in told
        found = json.loads(figures.read_text())
        assert "facts" not in found
        (system_1,) = [one for one in found["savings"] if one["way"] == "System 1"]
        assert (system_1["kind"], system_1["usd"]) == ("absent", None)


def test_what_system_1_would_save_is_one_of_the_ways(run: Run, shop: Path, tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    code, _, _ = run("try", shop, "--max-error", "0.1", "--json", figures)
    assert code == 0
    found = json.loads(figures.read_text())
    (system_1,) = [one for one in found["savings"] if one["way"] == "System 1"]
    forecast = found["learned"]["forecast"]
    saved_s = forecast["before"]["model_s"] - forecast["after"]["model_s"]
    assert system_1["seconds"] == pytest.approx(saved_s, abs=1e-3)
    assert system_1["assumptions"] == forecast["assumptions"]


def test_the_page_holds_all_it_needs_and_escapes_what_logs_say(run: Run, tmp_path: Path) -> None:
    evil = "<script>alert(1)</script>&\"'"
    traced = trace(tmp_path / "trace.json", evil, [1, 2, 3], [1, 2, 3, 4], [1, 9, 9, 9, 9])
    where = tmp_path / "page.html"
    code, _, _ = run("try", traced, "--html", where)
    assert code == 0
    text = where.read_text("utf-8")
    page = Page(text)
    assert evil in page.text
    names = {tag for tag, _ in page.tags}
    assert not names & {"script", "link", "img", "iframe", "object", "embed", "base", "form", "a"}
    outside = {"src", "href", "xlink:href", "action", "srcset", "style"}
    assert not any(outside & set(attributes) for _, attributes in page.tags)
    assert not any(name.startswith("on") for _, attributes in page.tags for name in attributes)
    assert "http" not in text.replace("http-equiv", "")
    assert "url(" not in text
    assert "@import" not in text
    (policy,) = [a["content"] for _, a in page.tags if a.get("http-equiv")]
    assert policy is not None
    assert policy.startswith("default-src 'none'")
    assert "prefers-color-scheme:dark" in text
    assert sum(tag == "svg" for tag, _ in page.tags) >= 3
    assert "1 prefix break" in page.text


def test_names_that_no_terminal_should_obey_are_shown_as_what_they_are(
    run: Run, tmp_path: Path
) -> None:
    folder = tmp_path / os.fsdecode(b"not \xff UTF-8")
    folder.mkdir()
    evil = "\x1b[2Jgone\u202e [bold]"
    trace(folder / "trace.json", evil, [1, 2, 3], [1, 9, 9, 9])
    trace(folder / "other.json", "another", [1, 2, 3])
    figures, page = tmp_path / "figures.json", tmp_path / "page.html"
    code, told, _ = run("try", folder, "--json", figures, "--html", page)
    assert code == 0
    for text in (told, figures.read_text("utf-8"), page.read_text("utf-8")):
        assert "\x1b" not in text
        assert "\u202e" not in text
    assert "[2Jgone\ufffd [bold]" in told
    sessions = json.loads(figures.read_text("utf-8"))["sessions"]
    assert {one["name"] for one in sessions} == {"\ufffd[2Jgone\ufffd [bold]", "another"}


def test_where_nothing_is_a_log_it_says_what_is_known(run: Run, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("nothing of the kind")
    code, _, complaint = run("try", tmp_path)
    assert code == 1
    assert "no log of a known format in" in complaint
    assert "sessions" in complaint


def test_a_path_that_there_is_not_is_named(run: Run) -> None:
    code, _, complaint = run("try", "absent.jsonl")
    assert code == 1
    assert "absent.jsonl: there is no such file or folder" in complaint


def test_a_page_that_cannot_be_written_is_refused_before_any_work(run: Run, tmp_path: Path) -> None:
    code, _, complaint = run("try", "absent.jsonl", "--html", tmp_path)
    assert code == 2
    assert "is a folder" in complaint


def test_what_is_interrupted_ends_cleanly(
    run: Run, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(try_, "waste", interrupted)
    code, _, complaint = run("try", shop, "--no-system1")
    assert code == 130
    assert complaint.splitlines()[-1] == "interrupted"


AGENT_VARIABLES = (
    "CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME",
    "APPDATA", "GOOSE_PATH_ROOT", "PI_CODING_AGENT_DIR", "COPILOT_HOME",
)  # fmt: skip


def test_without_a_path_what_agents_keep_on_this_machine_is_read(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in AGENT_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    code, _, complaint = run("try")
    assert code != 0
    assert "no agent that is known keeps sessions" in " ".join(complaint.split())
    sessions = tmp_path / ".pi" / "agent" / "sessions"
    sessions.mkdir(parents=True)
    usage = {"input": 1200, "output": 30, "cacheRead": 0, "cacheWrite": 0}
    answer = {"role": "assistant", "model": "claude-opus-4-5", "content": [], "usage": usage}
    lines = [
        {"type": "session", "id": "s", "cwd": "/x", "timestamp": "2026-08-01T10:00:00Z"},
        {"type": "message", "id": "a", "timestamp": "2026-08-01T10:00:05Z", "message": answer},
    ]
    (sessions / "s.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    figures = tmp_path / "figures.json"
    code, _, said = run("try", "--json", figures)
    assert code == 0
    assert f"reading pi: {sessions}" in said
    assert json.loads(figures.read_text())["totals"]["prompt"] == 1200


def test_what_is_unreadable_in_the_middle_makes_sums_at_least_and_the_exit_status_3(
    run: Run, tmp_path: Path
) -> None:
    def line(number: int) -> str:
        usage = {"input_tokens": 100, "cache_read_input_tokens": 0, "output_tokens": 20}
        message = {
            "id": f"msg_{number}", "model": "claude-opus-4-5", "role": "assistant", "usage": usage,
            "content": [{"type": "text", "text": "done"}],
        }  # fmt: skip
        return json.dumps(
            {
                "type": "assistant", "uuid": f"u{number}", "sessionId": "s", "message": message,
                "timestamp": f"2026-11-30T10:00:0{number}.000Z",
            }
        )  # fmt: skip

    path = tmp_path / "s.jsonl"
    path.write_text("\n".join((line(1), line(2)[:90], line(3))) + "\n")
    code, told, complaint = run("try", path)
    assert code == 3
    assert "something in 1 file was unreadable; exit status 3" in complaint
    assert "Something in 1 file was unreadable: totals are at least." in " ".join(told.split())
    path.write_text("\n".join((line(1), line(2), line(3)[:90])))
    code, told, _ = run("try", path)
    assert code == 0
    assert "2 requests: prompt tokens 200" in " ".join(told.split())
