"""Real clients, unmodified, over each upstream dialect: `make accept-wire` in small.

A case of a client asserts on what its user is given, and a scripted upstream on what it is sent.
"""

from collections.abc import Iterator

import pytest
from acceptance.wire_anthropic import ANTHROPIC
from acceptance.wire_cells import DIALECTS, Client, Place, places
from acceptance.wire_google import GOOGLE
from acceptance.wire_openai import CHAT
from acceptance.wire_openai_responses import RESPONSES

CASES: list[tuple[Client, str]] = [
    (CHAT, "streamed"),
    (CHAT, "parallel tools, by stream()"),
    (CHAT, "thinking there and back, by stream()"),
    (RESPONSES, "streamed"),
    (RESPONSES, "parallel tools, by stream()"),
    (RESPONSES, "thinking there and back, by stream()"),
    (ANTHROPIC, "parallel tools, by stream()"),
    (ANTHROPIC, "parallel tools, by tool_runner"),
    (ANTHROPIC, "thinking there and back, by stream()"),
    (GOOGLE, "streamed"),
    (GOOGLE, "parallel tools, streamed"),
    (GOOGLE, "thinking there and back, in a chat"),
]


@pytest.fixture(scope="module")
def wheres() -> Iterator[dict[str, Place]]:
    with places() as found:
        yield found


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    ("client", "case"), [pytest.param(c, case, id=f"{c.name}: {case}") for c, case in CASES]
)
def test_its_user_gets_what_the_upstream_said(
    client: Client, case: str, dialect: str, wheres: dict[str, Place]
) -> None:
    client.cases[case](wheres[dialect])
