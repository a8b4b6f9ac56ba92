"""What a chat request has no place for is left out and named, wherever it stands."""

from typing import Any

import pytest

from reflexarc.wire.dialects.chat import DIALECT
from reflexarc.wire.ids import IdMap
from reflexarc.wire.losses import Losses
from reflexarc.wire.turns import Ask, Call, Media, Settings, Text, Thinking, Turn


@pytest.mark.parametrize(
    ("part", "lost"),
    [
        (Call("c", "f", "{}"), "content.call"),
        (Thinking("hm"), "content.thinking"),
        (Media("image", file="file-1"), "content.image"),
        (Media("document", "application/pdf", file="files/abc"), "content.document"),
        (Media("video", url="https://example.com/a.mp4"), "content.video"),
    ],
)
@pytest.mark.parametrize("role", ["user", "system"])
def test_a_part_without_a_place_is_named(role: Any, part: Any, lost: str) -> None:
    ask = Ask("messages", Settings("m"), (Turn(role, (part, Text("x"))),))
    losses = Losses("chat")
    body = DIALECT.write_ask(ask, losses, IdMap(DIALECT.ids))
    assert body["messages"] == [{"role": role, "content": "x"}]
    assert losses.names == (lost,)


def test_metadata_is_for_what_is_stored_here() -> None:
    settings = Settings("m", metadata={"a": "b"}, store=True)
    ask = Ask("responses", settings, (Turn("user", (Text("x"),)),))
    losses = Losses("chat")
    body = DIALECT.write_ask(ask, losses, IdMap(DIALECT.ids))
    assert "metadata" not in body
    assert losses.names == ("metadata",)
