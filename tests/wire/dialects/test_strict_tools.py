"""Strictness goes on only where the schema bears it: other APIs refuse it elsewhere."""

from typing import Any

import pytest

from reflexarc.wire.dialects import dialect
from reflexarc.wire.dialects.strictness import is_closed
from reflexarc.wire.ids import IdMap
from reflexarc.wire.losses import Losses
from reflexarc.wire.turns import Ask, Settings, Text, ToolOffer, Turn

CLOSED: dict[str, Any] = {
    "type": "object",
    "properties": {"a": {"type": "string"}},
    "required": ["a"],
    "additionalProperties": False,
}


def _with(inner: Any) -> dict[str, Any]:
    return {**CLOSED, "properties": {"a": inner}}


@pytest.mark.parametrize(
    ("schema", "closed", "complete"),
    [
        (CLOSED, True, True),
        ({**CLOSED, "required": []}, True, False),
        ({**CLOSED, "additionalProperties": True}, False, False),
        ({"type": "object"}, False, False),
        (_with({"type": "object"}), False, False),
        (_with({"anyOf": [CLOSED, {"type": ["object", "null"]}]}), False, False),
        (_with({"type": "array", "items": {**CLOSED, "required": []}}), True, False),
        ({**CLOSED, "$defs": {"b": {"type": "object"}}}, False, False),
        (_with({"enum": [{"type": "object"}]}), True, True),
        (_with({"type": "string", "default": {"type": "object"}}), True, True),
        ({**_with(CLOSED), "properties": {"a": CLOSED}}, True, True),
    ],
)
def test_a_schema_is_closed_in_all_its_parts(schema: Any, closed: bool, complete: bool) -> None:
    assert is_closed(schema, complete=False) is closed
    assert is_closed(schema, complete=True) is complete


@pytest.mark.parametrize("target", ["chat", "messages"])
@pytest.mark.parametrize(("schema", "strict"), [(CLOSED, True), ({"type": "object"}, False)])
def test_what_is_strict_by_itself_elsewhere_is_so_where_it_can(
    target: str, schema: Any, strict: bool
) -> None:
    offers = (ToolOffer("f", parameters=schema, strict=True),)
    ask = Ask("responses", Settings("m"), (Turn("user", (Text("x"),)),), offers)
    losses = Losses(target)
    (tool,) = dialect(target).write_ask(ask, losses, IdMap(dialect(target).ids))["tools"]
    assert tool.get("function", tool).get("strict", False) is strict
    assert losses.names == (() if strict else ("tools.strict",))
