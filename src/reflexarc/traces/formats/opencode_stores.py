"""Where OpenCode keeps its sessions: databases, folders of JSON from before, exports. The same
session may stand in several; a database has the last word on a message."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import msgspec

from reflexarc.steps.errors import InputError
from reflexarc.traces.documents import BAD_JSON, values
from reflexarc.traces.loose import Table, decoded, moment, table, tables, text
from reflexarc.traces.requests import FileReport
from reflexarc.traces.sqlite_files import Database, holds_sqlite, opened

COPY = "a message that another store has too"
_SESSION = ("id", "parent_id", "time_created")
_MESSAGE = ("id", "session_id", "time_created", "data")
_PART = ("id", "data")


class Message(msgspec.Struct, frozen=True):
    """`info` is the message itself, `parts` what it is made of, in their order."""

    id: str
    file: str
    created_s: float | None
    info: Table
    parts: list[Table]


class Session(msgspec.Struct):
    """`read` gives its messages from each store that has some, the one that counts most first."""

    id: str
    parent: str = ""
    created_s: float = float("inf")
    read: list[Callable[[], Iterable[Message]]] = []

    def messages(self, reports: Mapping[Path, FileReport]) -> list[Message]:
        """All of them, in order, each once."""
        found: dict[str, Message] = {}
        for read in self.read:
            for one in read():
                if one.id in found:
                    reports[Path(one.file)].duplicate(COPY)
                else:
                    found[one.id] = one
        return sorted(
            found.values(),
            key=lambda one: (float("inf") if one.created_s is None else one.created_s, one.id),
        )


class Stores:
    """All sessions of these files, the oldest first. Databases stay open until `held` is closed."""

    def __init__(
        self, paths: Sequence[Path], reports: Mapping[Path, FileReport], held: ExitStack
    ) -> None:
        self._reports = reports
        self._sessions: dict[str, Session] = {}
        packed = [path for path in paths if holds_sqlite(path)]
        for path in packed:
            try:
                self._database(path, held.enter_context(opened(path)))
            except InputError as error:
                reports[path].notes.append(str(error))
                reports[path].at_least = True
        self._files([path for path in paths if path not in set(packed)])

    def sessions(self) -> list[Session]:
        return sorted(self._sessions.values(), key=lambda one: (one.created_s, one.id))

    def parent_of(self, id: str) -> str:
        found = self._sessions.get(id)
        return found.parent if found is not None else ""

    def _session(self, id: str) -> Session:
        return self._sessions.setdefault(id, Session(id))

    def _tell(self, id: str, parent: str, created_s: float | None) -> None:
        session = self._session(id)
        session.parent = session.parent or parent
        if created_s is not None:
            session.created_s = min(session.created_s, created_s)

    def _database(self, path: Path, database: Database) -> None:
        for rows in database.grouped("session").values():
            for row in database.rows("session", rows, _SESSION):
                self._tell(text(row["id"]), text(row["parent_id"]), moment(row["time_created"]))
        parts = database.grouped("part", "message_id")
        report = self._reports[path]

        def reader(rows: list[int]) -> Callable[[], Iterator[Message]]:
            return lambda: _rows(path, database, rows, parts, report)

        for key, rows in database.grouped("message", "session_id").items():
            self._session(text(key)).read.append(reader(rows))
        for reason, times in database.damage.items():
            report.skip(reason, times)
            report.at_least = True

    def _files(self, paths: Sequence[Path]) -> None:
        messages: dict[str, dict[str, tuple[Path, Table]]] = {}
        parts: dict[str, list[Table]] = {}
        for path in sorted(paths):
            for value in values(path, self._reports[path]):
                fields = table(value)
                if isinstance(fields.get("messages"), list):
                    self._told(table(fields.get("info")))
                    for one in tables(fields["messages"]):
                        info = table(one.get("info"))
                        messages.setdefault(text(info.get("sessionID")), {}).setdefault(
                            text(info.get("id")), (path, info)
                        )
                        parts.setdefault(text(info.get("id")), tables(one.get("parts")))
                elif text(fields.get("messageID")):
                    parts.setdefault(text(fields["messageID"]), []).append(fields)
                elif text(fields.get("sessionID")):
                    own = messages.setdefault(text(fields["sessionID"]), {})
                    own.setdefault(text(fields.get("id")), (path, fields))
                elif text(fields.get("id")):
                    self._told(fields)
                else:
                    self._reports[path].skip("neither session nor message nor part")

        def reader(found: dict[str, tuple[Path, Table]]) -> Callable[[], list[Message]]:
            return lambda: [
                _message(path, id, info, _in_order(parts.get(id, [])))
                for id, (path, info) in found.items()
            ]

        for id, found in messages.items():
            self._session(id).read.append(reader(found))

    def _told(self, fields: Table) -> None:
        created_s = moment(table(fields.get("time")).get("created"))
        self._tell(text(fields.get("id")), text(fields.get("parentID")), created_s)


def _rows(
    path: Path,
    database: Database,
    rows: list[int],
    parts: Mapping[object, list[int]],
    report: FileReport,
) -> Iterator[Message]:
    before = dict(database.damage)
    for row in database.rows("message", rows, _MESSAGE):
        info = _data(row, report)
        id = text(row["id"])
        found = [
            {**_data(part, report), "id": part["id"]}
            for part in database.rows("part", parts.get(row["id"], ()), _PART)
        ]
        if info:
            info = {"time": {"created": row["time_created"]}, **info}
            yield _message(path, id, info, _in_order(found))
    for reason, times in database.damage.items():
        if times > before.get(reason, 0):
            report.skip(reason, times - before.get(reason, 0))
            report.at_least = True


def _data(row: Table, report: FileReport) -> Table:
    report.lines += 1
    data = row["data"]
    try:
        return table(decoded(data)) if isinstance(data, str | bytes) else {}
    except ValueError:
        report.skip(BAD_JSON)
        report.at_least = True
        return {}


def _message(path: Path, id: str, info: Table, parts: list[Table]) -> Message:
    return Message(id, str(path), moment(table(info.get("time")).get("created")), info, parts)


def _in_order(parts: list[Table]) -> list[Table]:
    """Ids of parts rise with time."""
    return sorted(parts, key=lambda one: text(one.get("id")))
