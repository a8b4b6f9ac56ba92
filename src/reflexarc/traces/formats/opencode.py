"""OpenCode sessions: `opencode*.db`, folders `storage/{session,message,part}` from before, exports.

Tokens are counted from messages, or from their steps where a message was several requests, never
from both. A session that was forked repeats its parent's answers; they count once.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from reflexarc.traces.documents import tally
from reflexarc.traces.formats.opencode_stores import Stores
from reflexarc.traces.formats.opencode_turns import Turns
from reflexarc.traces.formats.visible import Prompts
from reflexarc.traces.logs import Head
from reflexarc.traces.peek import top_of
from reflexarc.traces.requests import FileReport, RecordedRequest
from reflexarc.traces.sqlite_files import is_sqlite, tables_of

FORKED = "an answer that the session it was forked from has"
_MAX_DEPTH = 64
_MISSING = (
    "not in these logs: system prompt, schemas of tools, requests for titles; an answer with tools "
    "ended before they ran, its end is an estimate"
)


class OpenCode:
    name = "opencode"

    def recognises(self, head: Head) -> bool:
        if is_sqlite(head):
            found = tables_of(head.path)
            return found.get("message", frozenset()) >= {"session_id", "data"} and "part" in found
        keys = top_of(head).keys
        if keys >= {"info", "messages"}:
            return b'"projectID"' in head.data or b'"providerID"' in head.data
        return (
            keys >= {"id", "sessionID", "messageID", "type"}
            or keys >= {"id", "sessionID", "role"}
            or keys >= {"id", "projectID", "time"}
            or (keys >= {"id", "title", "time", "version"} and "session" in head.path.parts)
        )

    def read(self, paths: Sequence[Path], reports: dict[Path, FileReport]) -> list[RecordedRequest]:
        prompts = Prompts()
        seen: set[tuple[object, ...]] = set()
        found: list[RecordedRequest] = []
        with ExitStack() as held:
            stores = Stores(sorted(paths), reports, held)
            for session in stores.sessions():
                root = _root(session.id, stores)
                agent = "" if root == session.id else session.id
                turns = Turns(root, agent, prompts)
                messages = session.messages(reports)
                for request in turns.requests(messages, seen):
                    if request is None:
                        reports[Path(messages[0].file)].duplicate(FORKED)
                    else:
                        found.append(request)
        tally(found, reports)
        first = next((path for path in sorted(paths) if reports[path].requests), None)
        if first is not None:
            reports[first].notes.append(_MISSING)
            reports[first].notes += [prompts.cut] if prompts.cut else []
        return found


def _root(id: str, stores: Stores) -> str:
    """The session that began this one, and so on up."""
    at = id
    for _ in range(_MAX_DEPTH):
        parent = stores.parent_of(at)
        if not parent or parent == id:
            break
        at = parent
    return at
