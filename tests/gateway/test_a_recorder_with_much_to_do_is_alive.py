"""However much waits for it, the recorder gives its gateway a sign of life every few hundred steps:
one that gave none for long would be replaced, and what it had not written be lost."""

import socket
import threading
from typing import Any, cast

from reflexarc.gateway.frames import frame_of
from reflexarc.gateway.recorder_process import _Process
from reflexarc.store.records import StepEnded

WAITING = 4000
BODY = b"x" * 2000


class Counting:
    """A recording that counts what it is given."""

    def __init__(self) -> None:
        self.taken = 0

    def step(self, step: StepEnded, request: bytes, answer: bytes) -> None:
        del step
        assert (request, answer) == (BODY, b"")
        self.taken += 1


def step(number: int) -> StepEnded:
    return StepEnded(
        number=number, gateway="g", request_id="", route="/v1", mode="off", record="none",
        tenant="", session=None, task=None, began_unix_s=0.0, decided_by="system2", status=200,
        content_type="", content_encoding="", complete=True, request_bytes=len(BODY), timings_ms={},
    )  # fmt: skip


def test_it_takes_no_more_than_some_hundreds_at_once_and_loses_none() -> None:
    here, there = socket.socketpair()
    process, counting = _Process(there), Counting()
    process._recording = cast("Any", counting)

    def send() -> None:
        here.sendall(b"".join(part for n in range(WAITING) for part in frame_of(step(n), BODY)))
        here.close()

    sending = threading.Thread(target=send)
    sending.start()
    most, before, open_ = 0, 0, True
    while open_:
        open_ = process._read()
        most, before = max(most, counting.taken - before), counting.taken
    sending.join()
    there.close()
    assert counting.taken == WAITING
    assert most < 600
