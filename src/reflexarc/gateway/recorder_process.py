"""The recorder's process, `python -m reflexarc.gateway.recorder_process FD`; a gateway starts it.

A few times a second it takes the frames that have come on the socket FD, reads them and writes them
together. It ends when its gateway does, and writes what it has before.
"""

import contextlib
import logging
import os
import select
import signal
import socket
import sys
import time
from pathlib import Path

import msgspec

from reflexarc.gateway.frames import FrameReader, frame_of
from reflexarc.gateway.recorder import RecorderSetup, ToRecorder
from reflexarc.store import Recording
from reflexarc.store.records import Audited, Judged, StepEnded

# Requests come first, System 1 second; but it must not be starved, for then nothing acts.
_NICENESS = 10
# It rests so many times as long as it worked, but never longer than this.
_REST = 2.0
_LONGEST_REST_S = 1.0
_MOST_AT_ONCE_BYTES = 16 * 1024 * 1024
# So that it gives a sign of life every few seconds, however much waits: who gives none is replaced.
_MOST_AT_ONCE = 400
_CHUNK_BYTES = 1 << 18
_decoder: msgspec.msgpack.Decoder[ToRecorder] = msgspec.msgpack.Decoder(ToRecorder)


def main() -> None:
    """Runs until the gateway is gone."""
    # An interrupt from the terminal reaches the whole group; the gateway decides when to end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(os, "nice"):
        os.nice(_NICENESS)
    channel = socket.socket(fileno=int(sys.argv[1]))
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the gateway is gone
        _Process(channel).run()


class _Process:
    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._reader = FrameReader()
        self._recording: Recording | None = None
        self._flush_s = 0.2

    def run(self) -> None:
        """A few times a second it takes what has come, and rests in between at least as long as
        that took, so that requests do not find it on the core they need."""
        open_ = True
        while open_:
            began_s = time.monotonic()
            open_ = self._read()
            if self._recording is not None:
                self._say()
            took_s = time.monotonic() - began_s
            if open_:
                time.sleep(min(max(self._flush_s, _REST * took_s), _LONGEST_REST_S))
        # Nobody hears it any more, but it is kept.
        if self._recording is not None:
            self._recording.flush()
            self._recording.close()

    def _read(self) -> bool:
        """Takes what is there, up to a limit. False at the end."""
        taken = count = 0
        while taken < _MOST_AT_ONCE_BYTES and count < _MOST_AT_ONCE:
            wait_s = None if self._recording is None else 0.0
            if not select.select([self._channel], [], [], wait_s)[0]:
                return True
            chunk = self._channel.recv(_CHUNK_BYTES)
            if not chunk:
                return False
            taken += len(chunk)
            for head, body in self._reader.feed(chunk):
                self._take(_decoder.decode(head), body)
                count += 1
        return True

    def _take(self, record: ToRecorder, body: bytes) -> None:
        if isinstance(record, RecorderSetup):
            self._flush_s = record.flush_s
            self._recording = Recording.at(
                Path(record.database),
                time.time,
                retention_days=record.retention_days,
                max_bytes=record.max_bytes,
            )
            self._recording.note_artifacts(record.artifacts)
            self._say()
            return
        recording = self._recording
        if recording is None:
            return
        if isinstance(record, StepEnded):
            recording.step(record, body[: record.request_bytes], body[record.request_bytes :])
        elif isinstance(record, Judged):
            recording.judged(record)
        elif isinstance(record, Audited):
            recording.audited(record)
        else:
            recording.trail(record)

    def _say(self) -> None:
        if self._recording is None:
            return
        written = self._recording.flush()
        self._channel.sendall(b"".join(frame_of(written)))


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING, format="%(name)s: %(message)s")
    main()
