"""Goose sessions: `sessions.db`, exports as JSON, and the JSON lines of versions before those.

Of a session that stands in several places (a backup, an export) the fullest counts.
"""

from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from reflexarc.traces.documents import tally
from reflexarc.traces.formats.goose_stores import Session, sessions_of
from reflexarc.traces.formats.goose_turns import SHARED, Turns
from reflexarc.traces.formats.visible import Prompts
from reflexarc.traces.logs import Head
from reflexarc.traces.peek import top_of
from reflexarc.traces.requests import FileReport, RecordedRequest
from reflexarc.traces.sqlite_files import is_sqlite, tables_of

COPY = "a session that another store has too"
SILENT = "a session of which no tokens are told"
_MAX_DEPTH = 64
_MISSING = "not in these logs: system prompt, schemas of tools; times are whole seconds"
_OWN = frozenset(
    {"accumulated_usage", "accumulated_total_tokens", "extension_data", "schedule_id"}
    | {"message_count"}
)


class Goose:
    name = "goose"

    def recognises(self, head: Head) -> bool:
        if is_sqlite(head):
            found = tables_of(head.path)
            return found.get("sessions", frozenset()) >= {"id", "working_dir"} and (
                found.get("messages", frozenset()) >= {"session_id", "content_json"}
            )
        keys = top_of(head).keys
        return "working_dir" in keys and bool(keys & _OWN)

    def read(self, paths: Sequence[Path], reports: dict[Path, FileReport]) -> list[RecordedRequest]:
        prompts = Prompts()
        found: list[RecordedRequest] = []
        with ExitStack() as held:
            sessions = _each_once(list(sessions_of(sorted(paths), reports, held)), reports)
            parents = {one.id: one.parent for one in sessions}
            several = {id for id, times in Counter(one.id for one in sessions).items() if times > 1}
            for session in sessions:
                root = _root(session.id, parents)
                agent = "" if root == session.id else session.id
                if session.id in several:
                    # ids are numbers of a day: of two machines' both can have one
                    root = f"{root} {session.created_s}"
                turns = Turns(session, root, agent, session.read(), prompts)
                made = list(turns.requests())
                if not made:
                    reports[session.path].skip(SILENT)
                found += made
        tally(found, reports)
        first = next((path for path in sorted(paths) if reports[path].requests), None)
        if first is not None:
            is_shared = any(one.counts.output.kind == "estimated" for one in found)
            reports[first].notes.append(_MISSING)
            reports[first].notes += [SHARED] if is_shared else []
            reports[first].notes += [prompts.cut] if prompts.cut else []
        return found


def _each_once(sessions: list[Session], reports: dict[Path, FileReport]) -> list[Session]:
    """The oldest first. Two with one id are the same unless they began at different times."""
    best: dict[str, list[Session]] = {}
    for one in sorted(sessions, key=lambda one: (one.trusted, -one.size, str(one.path))):
        known = best.setdefault(one.id, [])
        if any(_same(one, other) for other in known):
            reports[one.path].duplicate(COPY)
        else:
            known.append(one)
    return sorted(
        (one for known in best.values() for one in known),
        key=lambda one: (float("inf") if one.created_s is None else one.created_s, one.id),
    )


def _same(one: Session, other: Session) -> bool:
    return None in (one.created_s, other.created_s) or one.created_s == other.created_s


def _root(id: str, parents: dict[str, str]) -> str:
    """The session that began this one, and so on up."""
    at = id
    for _ in range(_MAX_DEPTH):
        parent = parents.get(at, "")
        if not parent or parent == id:
            break
        at = parent
    return at
