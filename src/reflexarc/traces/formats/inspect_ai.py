"""inspect_ai logs: `.eval` archives, and the plain `.json` form of the same."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from reflexarc.steps.errors import InputError
from reflexarc.steps.prompt import Piece
from reflexarc.traces.documents import documents, tally
from reflexarc.traces.formats.inspect_archive import Archive
from reflexarc.traces.formats.inspect_pieces import Budget
from reflexarc.traces.formats.inspect_sample import Sample, requests_of
from reflexarc.traces.logs import Head
from reflexarc.traces.loose import Table, decoded, table, tables, text
from reflexarc.traces.requests import FileReport, RecordedRequest

COPY = "a request that another log of the same sample has"
_ZIP_MAGIC = b"PK\x03\x04"


class InspectAi:
    name = "inspect-ai"

    def recognises(self, head: Head) -> bool:
        if head.data.startswith(_ZIP_MAGIC):
            if head.path.suffix == ".eval":
                return True
            return b"_journal/" in head.data or (
                b"samples/" in head.data and b"header.json" in head.data
            )
        return head.top.keys >= {"version", "status", "eval"}

    def read(self, paths: Sequence[Path], reports: dict[Path, FileReport]) -> list[RecordedRequest]:
        packed = [path for path in paths if _is_packed(path)]
        plain = [path for path in paths if path not in set(packed)]
        samples: list[tuple[str, Iterator[RecordedRequest]]] = [
            (str(path), _archive(path, reports[path])) for path in packed
        ]
        for document in documents(plain, reports):
            log = table(document.value)
            samples.append(
                (
                    str(document.path),
                    _requests(_samples(log, str(document.path)), document.report),
                )
            )
        found: dict[str, RecordedRequest] = {}
        for file, requests in sorted(samples, key=lambda one: one[0]):
            for request in requests:
                if request.id in found:
                    reports[Path(file)].duplicate(COPY)
                else:
                    found[request.id] = request
        tally(found.values(), reports)
        return list(found.values())


def _is_packed(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(4) == _ZIP_MAGIC
    except OSError:
        return False


def _archive(path: Path, report: FileReport) -> Iterator[RecordedRequest]:
    try:
        archive = Archive(path)
    except InputError as error:
        report.notes.append(str(error))
        report.at_least = True
        return
    header = _member(archive, "header.json", None)
    if header is None:
        report.notes.append("there is no header.json: the run did not come to its end")
        header = _member(archive, "_journal/start.json", None)
    task, run = _named(table(header))

    def samples() -> Iterator[Sample]:
        for name in archive.names("samples/"):
            if not name.endswith(".json"):
                continue
            report.lines += 1
            fields = _member(archive, name, report)
            if fields is not None:
                yield Sample(fields, str(path), task, run)

    yield from _requests(samples(), report)


def _member(archive: Archive, name: str, report: FileReport | None) -> Table | None:
    try:
        return table(decoded(archive.member(name)))
    except (InputError, ValueError) as error:
        if report is not None:
            report.skip("a sample that cannot be read")
            if len(report.notes) < 10:
                report.notes.append(f"{name}: {error}")
            report.at_least = True
        return None


def _named(log: Table) -> tuple[str, str]:
    about = table(log.get("eval"))
    return text(about.get("task")), text(about.get("eval_id")) or text(about.get("run_id"))


def _samples(log: Table, file: str) -> Iterator[Sample]:
    task, run = _named(log)
    for fields in tables(log.get("samples")):
        yield Sample(fields, file, task, run)


def _requests(samples: Iterator[Sample], report: FileReport) -> Iterator[RecordedRequest]:
    shared: dict[bytes, Piece] = {}
    budget = Budget()
    for sample in samples:
        yield from requests_of(sample, report, shared, budget)
    if budget.references <= 0:
        report.notes.append("more messages in its prompts than are kept: some prompts are left out")
