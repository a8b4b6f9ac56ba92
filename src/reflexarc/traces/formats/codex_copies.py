"""Which of Codex's rollouts repeat which: copies of one file, threads that begin with another's
lines and go on from its totals. Not for what a thread's own counts say."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from reflexarc.traces.formats.codex_rollouts import (
    COUNTED,
    Thread,
    Vector,
    thread_of,
)
from reflexarc.traces.requests import FileReport


def threads_of(paths: Sequence[Path], reports: Mapping[Path, FileReport]) -> dict[str, Thread]:
    """Each thread once, by its id: of copies the one that holds most, else the active one."""
    kept: dict[str, Thread] = {}
    for path in _active_first(paths):
        thread = thread_of(path, reports[path])
        known = kept.get(thread.id)
        if known is not None:
            fuller = len(thread.events) > len(known.events)
            reports[known.path if fuller else path].duplicate("another copy of this rollout")
            if not fuller:
                continue
        kept[thread.id] = thread
    return kept


def _active_first(paths: Sequence[Path]) -> list[Path]:
    """Plain files before packed ones, active ones before archived ones."""
    return sorted(
        paths,
        key=lambda path: (
            path.suffix == ".zst", "archived_sessions" in path.parts, path.name, str(path),
        ),
    )  # fmt: skip


def parent_of(thread: Thread, threads: Mapping[str, Thread]) -> Thread | None:
    """The nearest thread at hand whose lines it may begin with."""
    for name in (thread.parent, *thread.copied):
        if name != thread.id and name in threads:
            return threads[name]
    return None


def total_before(total: Vector, parents: Sequence[Vector]) -> Vector | None:
    """What a thread's totals went on from, that does not tell its first request alone: the
    parent's last ones that are not above them."""
    for vector in reversed(parents):
        if all((was or 0) <= (now or 0) for was, now in zip(vector, total, strict=True)):
            return vector
    return None


def difference(before: Vector | None, total: Vector) -> dict[str, float | None]:
    """What was added; all of it where totals fell, since then they began anew."""
    if before is None or any(
        one is not None and other is not None and other < one
        for one, other in zip(before, total, strict=True)
    ):
        return dict(zip(COUNTED, total, strict=True))
    return {
        name: None if now is None else now - (was or 0)
        for name, was, now in zip(COUNTED, before, total, strict=True)
    }
