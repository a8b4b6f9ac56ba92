"""What of a conversation may go: out of date, repeated, past a budget; and what never may."""

import pytest

from reflexarc.context.image_size import LEAST_TOKENS, MOST_TOKENS, UNKNOWN_TOKENS, image_tokens
from reflexarc.context.pruning_files import Touch, touched
from reflexarc.context.pruning_found import Candidate, Found, ImageBudget
from reflexarc.context.pruning_items import CallSaid, read_item
from reflexarc.wire.json import encode_json
from tests.context.talking import conversation, image_part, png, with_image

DIALECTS = ("chat", "messages", "responses", "gemini")


def found(
    dialect: str, items: list[dict[str, object]], budget: ImageBudget | None = None
) -> list[Candidate]:
    read = Found(budget or ImageBudget())
    for at, item in enumerate(items):
        read.add(at, read_item(dialect, encode_json(item)))
    return read.candidates()


def reads(path: str, text: str, identity: str) -> tuple[str, str, dict[str, object], str]:
    return identity, "read_file", {"path": path}, text


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_file_read_again_puts_the_earlier_text_out_of_date(dialect: str) -> None:
    items = conversation(
        dialect, reads("a.py", "old", "c1"), reads("b.py", "b", "c2"), reads("a.py", "new", "c3")
    )
    [one] = found(dialect, items)
    assert one.why == "read_again"
    assert b"old" in encode_json(items[one.at])


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_file_written_puts_what_was_read_out_of_date(dialect: str) -> None:
    wrote = ("c2", "edit_file", {"path": "./a.py", "text": "x"}, "done")
    items = conversation(dialect, reads("a.py", "old", "c1"), wrote)
    [one] = found(dialect, items)
    assert one.why == "written_since"
    assert b"old" in encode_json(items[one.at])


@pytest.mark.parametrize("dialect", DIALECTS)
def test_of_two_equal_results_the_later_may_go_and_the_earlier_stays(dialect: str) -> None:
    items = conversation(
        dialect,
        ("c1", "get_order", {"id": 1}, "shipped"),
        ("c2", "get_order", {"id": 1}, "shipped"),
    )
    [one] = found(dialect, items)
    assert one.why == "repeated"
    assert one.at == len(items) - 1


def test_an_unchanged_file_read_again_stays_once() -> None:
    items = conversation("chat", reads("a.py", "same", "c1"), reads("a.py", "same", "c2"))
    [one] = found("chat", items)
    assert (one.why, one.other) == ("repeated", "c1")


def test_a_text_that_came_back_does_not_refer_to_one_that_may_go() -> None:
    wrote = ("c2", "write_file", {"path": "a.py"}, "done")
    back = ("c3", "write_file", {"path": "a.py"}, "done again")
    items = conversation("chat", reads("a.py", "v1", "c1"), wrote, back, reads("a.py", "v1", "c4"))
    assert [(one.at, one.why) for one in found("chat", items)] == [(2, "written_since")]


def test_another_part_of_a_file_supersedes_nothing() -> None:
    first = ("c1", "read_file", {"path": "a.py", "offset": 0}, "one")
    second = ("c2", "read_file", {"path": "a.py", "offset": 100}, "two")
    assert found("chat", conversation("chat", first, second)) == []
    whole = reads("a.py", "all", "c3")
    assert len(found("chat", conversation("chat", first, second, whole))) == 2


def test_a_call_without_its_result_supersedes_nothing() -> None:
    items = conversation("chat", reads("a.py", "old", "c1"), reads("a.py", "new", "c2"))
    assert found("chat", items[:-1]) == []


def test_a_read_that_failed_supersedes_nothing_and_stays() -> None:
    items = conversation("messages", reads("a.py", "old", "c1"), reads("a.py", "no file", "c2"))
    items[-1]["content"][0]["is_error"] = True
    assert found("messages", items) == []


@pytest.mark.parametrize("dialect", DIALECTS)
def test_images_stay_newest_first_and_the_first_that_does_not_fit_ends_it(dialect: str) -> None:
    small, large = png(300, 300), png(1024, 1024)
    items = [*conversation(dialect), *(with_image(dialect, one) for one in (small, large, small))]
    one_small = image_tokens(small)
    kept = found(dialect, items, ImageBudget(tokens=one_small + image_tokens(large) - 1))
    # The oldest would fit in what the large one left, but retention ended there.
    assert [one.at for one in kept] == [1, 2]
    assert {one.why for one in kept} == {"image"}


def test_images_are_bounded_by_bytes_too() -> None:
    items = [*conversation("chat"), *(with_image("chat", png(10, 10, 3000)) for _ in range(3))]
    assert [one.at for one in found("chat", items, ImageBudget(bytes=9_000))] == [1]
    assert len(found("chat", items, ImageBudget(bytes=4_000))) == 3
    assert found("chat", items, ImageBudget(bytes=20_000)) == []


def test_a_result_that_shows_an_image_is_not_called_repeated() -> None:
    shown = [image_part("messages", png(500, 500))]
    calls = [(f"c{at}", "screenshot", {}, shown) for at in range(2)]
    items = conversation("messages", *calls)
    assert found("messages", items) == []
    [one] = found("messages", items, ImageBudget(tokens=400))
    assert one.value.path == ("content", 0, "content", 0)


def test_what_holds_a_cache_mark_is_left() -> None:
    marked = [{"type": "text", "text": "old", "cache_control": {"type": "ephemeral"}}]
    items = conversation("messages", ("c1", "read", {"path": "a"}, marked), reads("a", "new", "c2"))
    assert found("messages", items) == []


@pytest.mark.parametrize(
    "raw", [b"null", b"[]", b"{", b'{"role":"tool","content":7}', b'{"a":1,"a":2}']
)
def test_items_of_any_kind_are_read_without_an_error(raw: bytes) -> None:
    for dialect in DIALECTS:
        item = read_item(dialect, raw)
        assert item.outputs == item.images == item.calls == ()


SHELL = [
    ("cat src/a.py", [Touch("read", "src/a.py")]),
    ("cd /repo && cat a.py", [Touch("read", "/repo/a.py")]),
    ("sed -n '1,40p' a.py", [Touch("read", "a.py", "sed -n 1,40p")]),
    ("nl -ba a.py | sed -n '5,9p'", [Touch("read", "a.py", "nl -ba a.py | sed -n 5,9p")]),
    ("sed -i 's/a/b/' a.py", [Touch("write", "a.py")]),
    ("echo hi > a.py", [Touch("write", "a.py")]),
    ("cat <<'EOF' > a.py\ncat b.py\nEOF", [Touch("write", "a.py")]),
    ("tail -n 5", []),
    ("head -5 a.py\necho b.py", []),
    ("sed -i s/a/b/ a.py\ncat b.py", [Touch("write", "a.py")]),
    ("cat a.py > b.py", [Touch("write", "b.py")]),
    ("cat a.py b.py", []),
    ("cat a.py; cat b.py", []),
    ("cat a.py && pytest", []),
    ("cat a.py | grep x", []),
    ("ls", []),
    ("cat 'unclosed", []),
    ("", []),
]


@pytest.mark.parametrize(("command", "expected"), SHELL)
def test_shell_commands_touch_the_files_they_name(command: str, expected: list[Touch]) -> None:
    assert list(touched(CallSaid("c", "bash", {"command": command}))) == expected


def test_an_editor_of_several_commands_is_read_by_its_command() -> None:
    def does(command: str) -> list[str]:
        arguments = {"command": command, "path": "a.py"}
        return [
            one.kind for one in touched(CallSaid("c", "str_replace_based_edit_tool", arguments))
        ]

    assert does("view") == ["read"]
    assert does("str_replace") == does("create") == does("insert") == ["write"]
    assert does("frobnicate") == []


def test_tools_that_name_no_file_touch_none() -> None:
    assert touched(CallSaid("c", "read_inbox", {"folder": "a"})) == ()
    assert touched(CallSaid("c", "ready_check", {"path": "a"})) == ()
    assert touched(CallSaid("c", "read_file", None)) == ()


def test_images_cost_by_their_pixels_within_bounds() -> None:
    assert image_tokens(png(750, 750)) == 750
    assert image_tokens(png(8000, 8000)) == MOST_TOKENS
    assert image_tokens(png(1, 1)) == LEAST_TOKENS
    for unknown in ("", "AAAA", "no base64!", png(0, 5), png(5, 5)[:20]):
        assert image_tokens(unknown) == UNKNOWN_TOKENS
