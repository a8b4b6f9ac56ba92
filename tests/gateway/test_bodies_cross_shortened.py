"""Of a request's body only what is new crosses to our processes, which have all of it."""

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reflexarc.gateway.frames import FrameReader, Observe, Ready, frame, frame_grown
from reflexarc.gateway.shortening import Lengthening, Shortening, is_long
from reflexarc.wire.growing import Bodies, Grown

HEAD = Observe(1, 200, "application/json", "")


def _body(session: int, turns: int) -> bytes:
    draw = random.Random(session)
    messages = [{"role": "user", "content": f"{session} {draw.random()}"} for _ in range(turns)]
    return json.dumps({"messages": messages, "tools": ["t" * 40]}).encode()


def _grown(bodies: Bodies, body: bytes) -> Grown:
    return bodies.read(b"t", "messages", body)


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(1, 40)), min_size=1, max_size=30),
    st.integers(500, 20_000),
    st.integers(1, 5_000),
)
def test_every_body_arrives_whole_in_any_order_and_cut_anywhere(
    asked: list[tuple[int, int]], max_bytes: int, cut: int
) -> None:
    bodies, shortening, reader = Bodies(), Shortening(max_bytes), FrameReader()
    reader._lengthening = Lengthening(max_bytes)
    stream, sent = b"", list[bytes]()
    for number, (session, turns) in enumerate(asked):
        body = _body(session, turns)
        grown = _grown(bodies, body)
        if number % 5 == 4:
            stream += b"".join(frame(HEAD, body))
            sent.append(body)
        else:
            stream += b"".join(frame_grown(shortening, HEAD, grown, b"answer %d" % number))
            sent.append(body + b"answer %d" % number)
    got = [
        body for at in range(0, len(stream), cut) for _, body in reader.feed(stream[at : at + cut])
    ]
    assert got == sent


def test_only_what_is_new_crosses() -> None:
    bodies, shortening = Bodies(), Shortening()
    sizes = [
        sum(map(len, frame_grown(shortening, HEAD, _grown(bodies, _body(1, turns)))))
        for turns in range(100, 160)
    ]
    assert sizes[0] > len(_body(1, 100))
    assert max(sizes[1:]) < 400


def test_two_that_go_on_from_one_both_arrive() -> None:
    bodies, shortening, lengthening = Bodies(), Shortening(), Lengthening()
    first = _body(1, 30)
    branches = [first.replace(b'], "tools"', b', {"x": %d}], "tools"' % n) for n in (1, 2)]
    for body in (first, *branches):
        plan, rest = shortening.plan(_grown(bodies, body))
        assert lengthening.body(plan, rest) == body


def test_a_body_that_was_changed_on_its_way_is_sent_whole() -> None:
    grown = _grown(Bodies(), _body(1, 200))
    assert is_long(grown, grown.body)
    assert not is_long(grown, bytes(bytearray(grown.body)))
    assert not is_long(None, grown.body)
    assert not is_long(_grown(Bodies(), b'{"messages":[{}]}'), b'{"messages":[{}]}')


def test_an_end_that_has_not_the_same_bodies_says_so() -> None:
    bodies, shortening = Bodies(), Shortening()
    shortening.plan(_grown(bodies, _body(1, 30)))
    plan, rest = shortening.plan(_grown(bodies, _body(1, 31)))
    with pytest.raises(KeyError):
        Lengthening().body(plan, rest)


def test_plain_frames_are_as_they_were() -> None:
    assert FrameReader().feed(b"".join(frame(Ready()))) == [(frame(Ready())[0][8:], b"")]
