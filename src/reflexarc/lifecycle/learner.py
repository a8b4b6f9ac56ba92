"""The process that relearns: `python -m reflexarc.lifecycle.learner JOB`, started by `relearning`.

It takes one core at low priority, a bounded time of it and a bounded memory; it ends when whoever
started it does, which standard input tells. It says how far it is in lines of JSON.
"""

import contextlib
import os
import resource
import signal
import sys
import threading
from pathlib import Path

import msgspec

from reflexarc.lifecycle.from_store import Learning, note_learned, sessions_of
from reflexarc.lifecycle.later import Verdict, cut, judged
from reflexarc.lifecycle.standing_file import keep, kept_path
from reflexarc.reflex import Reflex, learn
from reflexarc.steps.errors import ReflexarcError
from reflexarc.store.place import DATABASE
from reflexarc.store.store import Store

_NICE = 10
_BUSY_MS = 10_000


class Job(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`artifact`: the path of the one in use. `how.attempt` numbers this attempt. `cpu_s` and
    `memory_bytes` bound the process."""

    state: str
    artifact: str
    how: Learning
    now_unix_s: float
    cpu_s: int
    memory_bytes: int


class Progress(msgspec.Struct, frozen=True, tag=True):
    """How far it is, from 0 to 1."""

    phase: str
    share: float


class Learned(msgspec.Struct, frozen=True, tag=True):
    """The end: the version that is kept, its verdict on later sessions."""

    digest: str
    sessions: int
    tasks: int
    verdict: Verdict


class Failed(msgspec.Struct, frozen=True, tag=True):
    """The other end."""

    why: str


Said = Progress | Learned | Failed


def main() -> None:
    # An interrupt reaches the whole group; who started this decides when it ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    job = msgspec.json.decode(sys.argv[1].encode(), type=Job)
    os.nice(_NICE)
    for what, limit in (
        (resource.RLIMIT_CPU, job.cpu_s),
        (resource.RLIMIT_DATA, job.memory_bytes),
    ):
        with contextlib.suppress(ValueError):  # a limit that is lower already
            resource.setrlimit(what, (limit, limit))
    try:
        _say(_learn(job))
    except (ReflexarcError, OSError, MemoryError) as error:
        _say(Failed(str(error) or type(error).__name__))


def _learn(job: Job) -> Learned:
    directory = Path(job.state)
    store = Store.open(directory / DATABASE, create=False, busy_ms=_BUSY_MS)
    try:
        with store.reading() as connection:
            recording, _ = sessions_of(connection, job.how)
        earlier, later = cut(recording.sessions)
        names = {tool.name for one in earlier for tool in one.tools}
        names |= {call.name for one in earlier for m in one.messages for call in m.tool_calls}
        reflex = learn(
            earlier,
            max_error=job.how.max_error,
            confidence=job.how.confidence,
            certificate_class=job.how.certificate_class,
            attempt=job.how.attempt,
            effects={name: one for name, one in job.how.effects.items() if name in names},
            progress=lambda phase, share: _say(Progress(phase, share)),
        )
        verdict = judged(reflex, _old(job), later, job.how.max_error)
        if verdict.why_not:
            return Learned("", len(earlier), reflex.card.tasks, verdict)
        digest = keep(directory, job.artifact, reflex.to_bytes())
        kept = kept_path(directory, job.artifact, digest)
        note_learned(store, kept, job.how, earlier, job.now_unix_s)
    finally:
        store.close()
    return Learned(digest, len(earlier), reflex.card.tasks, verdict)


def _old(job: Job) -> Reflex | None:
    """The artifact in use, where it can be read."""
    try:
        return Reflex.load(job.artifact)
    except ReflexarcError:
        return None


def _say(said: Said) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(said) + b"\n")
    sys.stdout.buffer.flush()


def _end_with_parent() -> None:
    while os.read(0, 4096):
        pass
    os._exit(0)


if __name__ == "__main__":
    main()
