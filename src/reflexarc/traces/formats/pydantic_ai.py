"""pydantic-ai message histories (`all_messages_json`): a request for each response in them.

Cached tokens are part of `input_tokens`. A history that was passed into a later run stands in that
run's file again, so a response counts once. Tools are not in such files.
"""

from collections.abc import Sequence
from pathlib import Path

from reflexarc.steps.prompt import Piece, Prompt
from reflexarc.traces.documents import Document, documents, tally
from reflexarc.traces.logs import Head
from reflexarc.traces.loose import Table, amount, encoded, moment, table, tables, text
from reflexarc.traces.models import owner, provider
from reflexarc.traces.references import LEFT_OUT, References
from reflexarc.traces.requests import (
    ABSENT,
    Counts,
    FileReport,
    RecordedRequest,
    RecordedTool,
    derived,
    measured,
)

COPY = "a response of a history that was passed on"
_SYSTEM_PART = "system-prompt"


class PydanticAi:
    name = "pydantic-ai"

    def recognises(self, head: Head) -> bool:
        element = head.top.element
        return element.get("kind") in ("request", "response") and "parts" in element

    def read(self, paths: Sequence[Path], reports: dict[Path, FileReport]) -> list[RecordedRequest]:
        found: dict[str, RecordedRequest] = {}
        references = References()
        for document in documents(paths, reports):
            for request in _requests(document, references):
                if request.id in found:
                    document.report.duplicate(COPY)
                else:
                    found[request.id] = request
        tally(found.values(), reports)
        return list(found.values())


def _requests(document: Document, references: References) -> list[RecordedRequest]:
    messages = tables(document.value)
    results = _results(messages)
    conversation = ""
    sent: list[Piece] = []
    instructions: list[Piece] = []
    asked: float | None = None
    found: list[RecordedRequest] = []
    for index, message in enumerate(messages):
        conversation = text(message.get("conversation_id")) or conversation
        path = f"[{index}]"
        if message.get("kind") == "request":
            asked = _asked(message)
            given = text(message.get("instructions"))
            # the newest instructions alone are sent
            instructions = (
                [Piece("system", f"{path}.instructions", given.encode(), "system", plain=True)]
                if given
                else []
            )
            sent += _pieces(message, path)
        elif message.get("kind") == "response":
            prompt = None
            if references.take(len(instructions) + len(sent)):
                prompt = Prompt(_ordered(instructions, sent), complete=False)
            else:
                document.report.note(LEFT_OUT)
            session = conversation or text(message.get("run_id")) or document.digest
            found.append(_request(document, index, message, session, asked, prompt, results))
            sent.append(Piece("message", path, encoded(message.get("parts")), "assistant"))
            asked = None
        else:
            document.report.skip("a message of an unknown kind")
    return found


def _request(
    document: Document,
    index: int,
    message: Table,
    session: str,
    asked: float | None,
    prompt: Prompt | None,
    results: dict[str, Table],
) -> RecordedRequest:
    ended = moment(message.get("timestamp"))
    calls = [one for one in tables(message.get("parts")) if _kind(one) == "tool-call"]
    usage = table(message.get("usage"))
    named = text(message.get("provider_name")) or text(message.get("model_id"))
    return RecordedRequest(
        id=_identity(document.digest, index, message),
        session=session,
        file=str(document.path),
        model=text(message.get("model_name")),
        provider=provider(named) or owner(named),
        began_s=measured(asked),
        ended_s=measured(ended),
        counts=_counts(usage),
        cost_usd=measured(amount(usage.get("cost"))),
        tools=tuple(_tool(one, results, ended) for one in calls),
        prompt=prompt,
        output_text="".join(
            text(one.get("content")) for one in tables(message.get("parts")) if _kind(one) == "text"
        ),
    )


def _identity(digest: str, index: int, message: Table) -> str:
    own = text(message.get("provider_response_id")) or text(message.get("vendor_id"))
    run, at = text(message.get("run_id")), text(message.get("timestamp"))
    if own:
        # servers of one's own number their answers from one again after each start
        return f"{own}@{at}"
    return f"{run}@{at}" if at else f"{digest}:{index}"


def _counts(usage: Table) -> Counts:
    details = table(usage.get("details"))
    prompt = _first(usage, "input_tokens", "request_tokens")
    read = _first(usage, "cache_read_tokens")
    reasoning = _first(usage, "output_reasoning_tokens")
    if read is None:
        read = _first(details, "cached_tokens", "cache_read_input_tokens")
    if reasoning is None:
        reasoning = _first(details, "reasoning_tokens")
    return Counts(
        prompt=measured(prompt),
        cache_read=measured(read),
        cache_write=measured(_first(usage, "cache_write_tokens")),
        cache_write_1h=measured(_first(usage, "cache_write_1h_tokens")),
        output=measured(_first(usage, "output_tokens", "response_tokens")),
        reasoning=measured(reasoning),
    )


def _first(fields: Table, *names: str) -> float | None:
    for name in names:
        found = amount(fields.get(name))
        if found is not None:
            return found
    return None


def _asked(message: Table) -> float | None:
    given = moment(message.get("timestamp"))
    if given is not None:
        return given
    parts = [moment(one.get("timestamp")) for one in tables(message.get("parts"))]
    return max((one for one in parts if one is not None), default=None)


def _results(messages: list[Table]) -> dict[str, Table]:
    return {
        text(part.get("tool_call_id")): part
        for message in messages
        for part in tables(message.get("parts"))
        if _kind(part) in ("tool-return", "retry-prompt") and text(part.get("tool_call_id"))
    }


def _tool(call: Table, results: dict[str, Table], asked: float | None) -> RecordedTool:
    id = text(call.get("tool_call_id"))
    result = results.get(id, {})
    ended = moment(result.get("timestamp"))
    return RecordedTool(
        text(call.get("tool_name")),
        id,
        began_s=ABSENT if ended is None or asked is None else derived(asked),
        ended_s=measured(ended),
        failed=_kind(result) == "retry-prompt" or result.get("outcome") in ("failed", "denied"),
    )


def _pieces(message: Table, path: str) -> list[Piece]:
    found: list[Piece] = []
    for index, part in enumerate(tables(message.get("parts"))):
        is_system = _kind(part) == _SYSTEM_PART
        role = "system" if is_system else "tool" if part.get("tool_call_id") else "user"
        # its time is the log's own: the same text sent again is the same text
        raw = encoded({key: one for key, one in part.items() if key != "timestamp"})
        kind = "system" if is_system else "message"
        found.append(Piece(kind, f"{path}.parts[{index}]", raw, role))
    return found


def _ordered(instructions: list[Piece], sent: list[Piece]) -> tuple[Piece, ...]:
    system = [one for one in sent if one.kind == "system"]
    return (*instructions, *system, *(one for one in sent if one.kind != "system"))


def _kind(part: Table) -> str:
    return text(part.get("part_kind"))
