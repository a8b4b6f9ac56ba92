"""Learns a reflex again from what its gateways recorded, beside them, and lets it take over if
later sessions bear it out.

The learning is done by a process of its own (`learner.py`). Every attempt spends its share of the
error budget of the certificates, whether something comes of it or not.
"""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import msgspec
from sqlalchemy import select
from sqlalchemy.exc import DatabaseError

from reflexarc.lifecycle.by_hand import take_over
from reflexarc.lifecycle.from_store import Learning
from reflexarc.lifecycle.later import Verdict
from reflexarc.lifecycle.learner import Failed, Job, Learned, Progress, Said
from reflexarc.lifecycle.standing import ReflexState, Standing, Version, checked_scope
from reflexarc.lifecycle.standing_file import (
    adopted,
    change,
    digest_of,
    forget_versions,
    keep,
    name_of,
)
from reflexarc.reflex import Reflex
from reflexarc.reflex.effects import DECLARED
from reflexarc.reflex.spending import attempt_delta
from reflexarc.steps import Effect
from reflexarc.steps.errors import LearnError, ReflexarcError
from reflexarc.store.artifacts import note_used
from reflexarc.store.place import DATABASE
from reflexarc.store.schema import artifacts
from reflexarc.store.store import Store

CPU_S = 1_800
MEMORY_BYTES = 4 * 1024**3
Promote = Literal["by_hand", "automatic"]
_BUSY_MS = 5_000


class Relearned(msgspec.Struct, frozen=True):
    """What came of an attempt: `version` is empty where nothing could be kept, `took_over` where
    the new one is in use now; else a person may promote it. `why_not` says why it is not."""

    artifact: str
    attempt: int
    confidence: float
    version: str
    took_over: bool
    why_not: str
    verdict: Verdict | None
    sessions: int = 0
    tasks: int = 0


class Limits(msgspec.Struct, frozen=True):
    """Of the learning process: seconds of one core, bytes of memory."""

    cpu_s: int = CPU_S
    memory_bytes: int = MEMORY_BYTES


def evidence_of(found: Relearned) -> dict[str, Any]:
    """What the trail keeps of an attempt."""
    return {
        "artifact": found.artifact,
        "attempt": found.attempt,
        "confidence": found.confidence,
        "version": found.version,
        "took_over": found.took_over,
        "why_not": found.why_not,
    }


def options_of(directory: Path, artifact: Path, route: str | None) -> Learning:
    """How the artifact was learned: as the store knows, else as its card says. Raises
    `ArtifactError`, `StoreError`."""
    store = Store.open(directory / DATABASE, create=False, busy_ms=_BUSY_MS)
    try:
        with store.reading() as connection:
            known = connection.execute(
                select(artifacts.c.options).where(artifacts.c.path == name_of(artifact))
            ).scalar()
    finally:
        store.close()
    if known:
        how = msgspec.json.decode(known, type=Learning)
        return msgspec.structs.replace(how, route=route or how.route)
    reflex = Reflex.load(artifact)
    effects: dict[str, Effect] = {
        row.name: row.effect for row in reflex.card.tools if row.why == DECLARED
    }
    card = reflex.card
    return Learning(
        card.max_error, card.confidence_level, effects, route, None, card.certificate_class
    )


def relearn(
    directory: Path,
    artifact: Path,
    how: Learning,
    *,
    promote: Promote = "by_hand",
    limits: Limits | None = None,
    unix_time: Callable[[], float] = time.time,
    on_progress: Callable[[str, float], None] | None = None,
    stop: threading.Event | None = None,
) -> Relearned:
    """One attempt. With `promote` automatic a new artifact that later sessions bear out takes over,
    its reads live but for what a person had demoted; writes never do so. `stop` ends it early, as
    an interrupt does: its process is gone then. Raises `LearnError`, `ConfigError`, `OSError`."""
    name = name_of(artifact)
    bounds = limits or Limits()
    content = artifact.read_bytes()
    keep(directory, name, content)
    state = change(directory, name, lambda state: _begun(state, name, content, unix_time()))
    confidence = 1 - attempt_delta(1 - how.confidence, state.attempts)
    job = Job(
        str(directory), name, msgspec.structs.replace(how, attempt=state.attempts), unix_time(),
        bounds.cpu_s, bounds.memory_bytes,
    )  # fmt: skip
    said = _run(job, on_progress, stop)
    base = Relearned(name, state.attempts, confidence, "", False, "", None)
    if isinstance(said, Failed):
        return msgspec.structs.replace(base, why_not=said.why)
    base = msgspec.structs.replace(
        base, verdict=said.verdict, sessions=said.sessions, tasks=said.tasks
    )
    if said.verdict.why_not:
        return msgspec.structs.replace(base, why_not=said.verdict.why_not)
    return _kept(directory, artifact, said, base, promote, unix_time())


def _begun(state: ReflexState | None, name: str, content: bytes, now_s: float) -> ReflexState:
    state = adopted(state, name, digest_of(content), now_s)
    return msgspec.structs.replace(state, attempts=state.attempts + 1, tried_unix_s=now_s)


def _kept(
    directory: Path, artifact: Path, said: Learned, base: Relearned, promote: Promote, now_s: float
) -> Relearned:
    name, digest = base.artifact, said.digest
    version = Version(digest, "relearned", now_s)

    def waiting(state: ReflexState | None) -> ReflexState:
        if state is None:
            raise LearnError(f"{name} was taken out of the state directory meanwhile")
        return state if state.version(digest) else state.with_version(version)

    state = change(directory, name, waiting)
    found = msgspec.structs.replace(base, version=digest)
    if state.in_use == digest:
        return msgspec.structs.replace(found, why_not="it is the same as the one in use")
    if promote == "by_hand":
        forget_versions(directory, state)
        return msgspec.structs.replace(found, why_not="it waits to be promoted by hand")
    why = f"relearned, {said.verdict.new.right} of {said.verdict.new.answered} later answers right"
    scopes = (Standing("reads", "live", "relearning", now_s, why), *stopped_by_hand(state.current))
    take_over(directory, artifact, digest, scopes)
    with contextlib.suppress(DatabaseError, ReflexarcError):  # a gateway notes it as well
        store = Store.open(directory / DATABASE, create=False, busy_ms=_BUSY_MS)
        try:
            with store.writing() as connection:
                note_used(connection, artifact, now_s)
        finally:
            store.close()
    return msgspec.structs.replace(found, took_over=True)


def stopped_by_hand(version: Version) -> list[Standing]:
    """What a person stopped, a person starts again: all reads, then single tools that read."""
    found = [
        one
        for one in version.scopes
        if one.word == "demoted"
        and one.by not in ("audits", "identity")
        and checked_scope(one.scope)[0] == "reads"
    ]
    return sorted(found, key=lambda one: one.scope)


def _run(
    job: Job, on_progress: Callable[[str, float], None] | None, stop: threading.Event | None
) -> Learned | Failed:
    environment = {**os.environ, **dict.fromkeys(_THREADS, "1")}
    child = subprocess.Popen(
        [sys.executable, "-m", "reflexarc.lifecycle.learner", msgspec.json.encode(job).decode()],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
    )
    ended = threading.Event()
    if stop is not None:
        threading.Thread(target=_kill_on, args=(child, stop, ended), daemon=True).start()
    said: Said | None = None
    try:
        assert child.stdout is not None
        for line in child.stdout:
            said = msgspec.json.decode(line, type=Said)
            if isinstance(said, Progress) and on_progress is not None:
                on_progress(said.phase, said.share)
        status = child.wait()
    finally:
        ended.set()
        child.kill()
        child.wait()
        for pipe in (child.stdin, child.stdout):
            if pipe is not None:
                pipe.close()
    if isinstance(said, Learned | Failed):
        return said
    return Failed(_end_of(status, job))


def _kill_on(
    child: "subprocess.Popen[bytes]", stop: threading.Event, ended: threading.Event
) -> None:
    while not ended.is_set():
        if stop.wait(_LOOK_S):
            child.kill()
            return


_LOOK_S = 0.2
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def _end_of(status: int, job: Job) -> str:
    if status in (-signal.SIGXCPU, -signal.SIGKILL):
        return f"the learning process was ended; it may use {job.cpu_s} s of a core"
    return f"the learning process ended with status {status} and said nothing"
