"""Addresses in a line, labelled lines and names with numbers give their fields by place."""

from reflexarc.provenance.runs import labelled, placed
from reflexarc.reflex import Context
from reflexarc.steps import Message


def fields(text: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for place, value in placed(text):
        found.setdefault(place, []).append(value)
    return found


def test_the_fields_of_an_address_in_a_sentence() -> None:
    for text in (
        "I would like to change it to 12 Elm Street, Port Alba, QC, 40210, Norland.",
        "Your new address:\n\n**12 Elm Street, Port Alba, QC, 40210, Norland**. Shall I go on?",
        "Send it to 12 Elm Street, Port Alba, QC, 40210, Norland and tell me",
    ):
        found = fields(text)
        assert found["run:0of5"] == ["12 Elm Street"], text
        assert found["run:1of5"] == found["run:-4"] == ["Port Alba"]
        assert found["run:-2"] == ["40210"]
        assert found["run:-1"] == ["Norland"]


def test_a_clause_is_no_field() -> None:
    assert not fields("so i went there, then i came back, and that was all")
    assert not fields("Two, three")  # fewer than three parts


def test_names_that_begin_with_a_number() -> None:
    found = fields("it should be 445 Maple Drive, not 443 please, order A-12 Plus 3.5 Gold")
    assert found["numbered"] == ["445 Maple Drive"]


def test_labelled_lines() -> None:
    text = (
        "Here:\n- **Street:** 12 Elm Street  \n2. City: Port Alba\n   Ship to: **Bo Vik**\nDone: "
    )
    assert list(labelled(text)) == [
        ("label:street", "12 Elm Street"),
        ("label:city", "Port Alba"),
        ("label:ship to", "Bo Vik"),
    ]


def test_both_sides_of_a_talk_are_read() -> None:
    context = Context()
    context.extend(
        [
            Message("user", "My address is 12 Elm Street, Port Alba, Norland"),
            Message(
                "assistant", "So it is:\n- City: Port Alba\nthat is 12 Elm Street, Port Alba, NO?"
            ),
        ]
    )
    assert [entry.value for entry in context.slots["usr:run:1of3"]] == ["Port Alba"]
    assert [entry.value for entry in context.slots["ast:run:-1"]] == ["NO"]
    assert [entry.value for entry in context.slots["kv:assistant:label:city"]] == ["Port Alba"]


def test_what_is_read_is_bounded() -> None:
    for text in ("1 A, B, C. " * 9_000, "- a: b\n" * 9_000, "12 Elm Street " * 9_000):
        assert len(list(placed(text))) + len(list(labelled(text))) <= 200
