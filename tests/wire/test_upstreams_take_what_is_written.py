"""What the matrix's requests become is taken by an upstream as strict as the APIs are."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from reflexarc.sim.faulty import chat_checks, gemini_checks, messages_checks, responses_checks
from tests.wire.matrix.cells import Input, inputs, told


def _known(signature: str) -> bool:
    """Signatures of the matrix are made up."""
    return bool(signature)


CHECKS: dict[str, Callable[[dict[str, Any]], None]] = {
    "chat": chat_checks.check,
    "responses": lambda body: responses_checks.check(body, _known),
    "messages": lambda body: messages_checks.check(body, _known),
    "gemini": lambda body: gemini_checks.check(body, _known),
}


@pytest.mark.parametrize("given", list(inputs("requests")), ids=lambda given: given.name)
def test_every_converted_request_is_taken(given: Input) -> None:
    for target, check in CHECKS.items():
        made = json.loads(told(given, target))
        if target != given.origin and "body" in made:
            check(made["body"])
