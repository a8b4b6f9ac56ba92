"""Notes of a text and the origin of an answer stay with it, as a stream and as a whole."""

from reflexarc.wire.assembling import Assembler, Sequencer, events_of
from reflexarc.wire.replies import Began, Ended, PartBegan, PartEnded, PartGrew, PartNoted
from reflexarc.wire.turns import Call, Text


def test_a_note_becomes_one_more_of_the_parts_list() -> None:
    assembler = Assembler()
    for event in (
        Began("m", "model", origin="messages"),
        PartBegan(0, Text("", more={"citations": [{"n": 1}]})),
        PartGrew(0, "cited"),
        PartNoted(0, "citations", {"n": 2}),
        PartNoted(0, "others", 3),
        PartEnded(0),
        Ended("end"),
    ):
        assembler.take(event)
    reply = assembler.reply()
    assert reply.parts == (Text("cited", more={"citations": [{"n": 1}, {"n": 2}], "others": [3]}),)
    assert reply.origin == "messages"
    again = Assembler()
    for event in events_of(reply):
        again.take(event)
    assert again.reply() == reply


def test_a_note_of_a_part_that_waits_waits_with_it() -> None:
    sequencer = Sequencer()
    note = PartNoted(1, "citations", {})
    began = PartBegan(1, Text(""))
    assert sequencer.take(PartBegan(0, Call("c", "f", ""))) != []
    assert sequencer.take(began) == []
    assert sequencer.take(note) == []
    assert sequencer.take(PartEnded(0)) == [PartEnded(0), began, note]
