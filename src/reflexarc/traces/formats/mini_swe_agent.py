"""mini-swe-agent trajectories: `{info, messages, trajectory_format}`, and the bare list of messages
of version 1, which has no counts.

A request is an assistant's message, or a user's message that holds the answer that could not be
parsed (`extra.response`). Retries inside a call leave nothing in the log.
"""

import re
from collections.abc import Sequence
from pathlib import Path

import msgspec

from reflexarc.steps.prompt import Piece, Prompt
from reflexarc.traces.documents import Document, documents, tally
from reflexarc.traces.estimates import cost_shares, output_tokens, tokens_of
from reflexarc.traces.formats.chat_pieces import called, message_piece, ordered, words
from reflexarc.traces.formats.usage import counts_of
from reflexarc.traces.logs import Head
from reflexarc.traces.loose import Table, amount, encoded, moment, number, table, tables, text
from reflexarc.traces.models import bare, owner
from reflexarc.traces.references import LEFT_OUT, References
from reflexarc.traces.requests import (
    ABSENT,
    Counts,
    FileReport,
    RecordedRequest,
    RecordedTool,
    estimated,
    measured,
)

COPY = "an answer that another trajectory has"
_RETURN_CODE = re.compile(r"<returncode>\s*(-?\d+)")
_NOT_SENT = frozenset({"extra", "timestamp"})


class MiniSweAgent:
    name = "mini-swe-agent"

    def recognises(self, head: Head) -> bool:
        top = head.top
        is_named = head.path.name.endswith((".traj.json", ".traj.json.gz"))
        if top.element:
            is_chat = {"role", "content"} <= top.element.keys()
            return is_chat and (is_named or b"<returncode>" in head.data)
        if "trajectory" in top.keys or not top.keys >= {"info", "messages"}:
            return False
        marks = (b'"mini_version"', b'"model_stats"')
        return is_named or "trajectory_format" in top.keys or any(m in head.data for m in marks)

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
    run = table(document.value)
    messages = tables(run.get("messages") if run else document.value)
    info = table(run.get("info"))
    model = text(table(table(info.get("config")).get("model")).get("model_name"))
    session = f"{document.path.name.partition('.')[0]} {document.digest[:8]}"
    is_complete = not _calls_tools(messages)
    sent: list[Piece] = []
    size = 0
    found: list[RecordedRequest] = []
    before: float | None = None
    for index, message in enumerate(messages):
        extra = table(message.get("extra"))
        at = moment(extra.get("timestamp")) or moment(message.get("timestamp"))
        response = _response(message, extra)
        if response is not None:
            prompt = None
            if references.take(len(sent)):
                prompt = Prompt(ordered(sent), complete=is_complete)
            else:
                document.report.note(LEFT_OUT)
            base = RecordedRequest(
                id=_identity(document.digest, index, response, at),
                session=session,
                file=str(document.path),
                model=model,
                began_s=measured(before),
                ended_s=measured(at),
                gap=before is not None,
                prompt=prompt,
                tools=_tools(message, _answers(messages, index + 1), at),
            )
            found.append(_request(base, message, response, size))
        before = at if at is not None else before
        if text(message.get("role")) != "exit":
            sent.append(_piece(message, index))
            size += len(sent[-1].raw)
    _compare(info, len(found), document.report)
    return _with_costs(found, info)


def _response(message: Table, extra: Table) -> Table | None:
    """The raw answer of the request that a message came of, empty where it is not kept; None where
    a message came of none."""
    if isinstance(extra.get("response"), dict):
        return table(extra["response"])
    if message.get("object") == "response":
        return message
    return {} if message.get("role") == "assistant" else None


def _identity(digest: str, index: int, response: Table, at: float | None) -> str:
    own = text(response.get("id"))
    return f"{own}@{at}" if own and at is not None else f"{digest}:{index}"


def _request(
    base: RecordedRequest, message: Table, response: Table, prompt_bytes: int
) -> RecordedRequest:
    asked = text(response.get("model"))
    answer = _answer(message, response)
    counts, unknown = counts_of(table(response.get("usage")))
    if counts.prompt.value is None and counts.output.value is None:
        calls = [part for name, _, given in called(answer) for part in (name, given)]
        counts = Counts(
            prompt=estimated(tokens_of(prompt_bytes)), output=output_tokens(words(answer), *calls)
        )
    whose = owner(base.model)
    return msgspec.structs.replace(
        base,
        model=(asked if whose and asked else bare(base.model) or bare(asked)),
        provider=whose or owner(asked),
        counts=counts,
        unknown_cache=unknown,
        cost_usd=measured(amount(table(message.get("extra")).get("cost"))),
        output_text=words(answer),
    )


def _answer(message: Table, response: Table) -> Table:
    if message.get("role") == "assistant":
        return message
    choice = (tables(response.get("choices")) or [{}])[0]
    if choice:
        return table(choice.get("message"))
    parts = [
        part for item in tables(response.get("output")) for part in tables(item.get("content"))
    ]
    calls = [one for one in tables(response.get("output")) if one.get("type") == "function_call"]
    return {"content": parts, "tool_calls": calls}


def _piece(message: Table, index: int) -> Piece:
    path = f"messages[{index}]"
    if message.get("object") == "response":
        # of an answer of the responses API its items are sent again, not what surrounds them
        return Piece("message", path, encoded(message.get("output")), "assistant")
    return message_piece(message, path, without=_NOT_SENT)


def _calls_tools(messages: list[Table]) -> bool:
    """Whether the tool was offered natively, which the log does not hold."""
    return any(
        one.get("tool_calls") or one.get("role") == "tool" or one.get("object") == "response"
        for one in messages
    )


def _answers(messages: list[Table], start: int) -> list[Table]:
    """What came back before the next answer of the model."""
    end = start
    while end < len(messages) and not _is_answer(messages[end]):
        end += 1
    return messages[start:end]


def _tools(message: Table, answers: list[Table], at: float | None) -> tuple[RecordedTool, ...]:
    calls = called(message) or called(_answer({}, message))
    if not calls:
        actions = tables(table(message.get("extra")).get("actions"))
        calls = [("bash", text(one.get("tool_call_id")), "") for one in actions]
    if not calls and answers and _RETURN_CODE.search(words(answers[0])):
        calls = [("bash", "", "")]
    return tuple(
        _tool(name, id, _observed(answers, position, id), at)
        for position, (name, id, _) in enumerate(calls)
    )


def _is_answer(message: Table) -> bool:
    return message.get("role") == "assistant" or message.get("object") == "response"


def _observed(answers: list[Table], position: int, id: str) -> Table:
    named = [one for one in answers if id and id in (one.get("tool_call_id"), one.get("call_id"))]
    if named:
        return named[0]
    return answers[position] if position < len(answers) else {}


def _tool(name: str, id: str, observed: Table, at: float | None) -> RecordedTool:
    extra = table(observed.get("extra"))
    code = number(extra.get("returncode"))
    if code is None:
        shown = _RETURN_CODE.search(words(observed))
        code = number(shown[1]) if shown else None
    ended = moment(extra.get("timestamp"))
    return RecordedTool(
        name,
        id,
        began_s=ABSENT if ended is None else measured(at),
        ended_s=measured(ended),
        failed=bool(code),
    )


def _compare(info: Table, made: int, report: FileReport) -> None:
    calls = amount(table(info.get("model_stats")).get("api_calls"))
    if calls is not None and calls > made:
        report.notes.append(f"{calls - made:.0f} of its calls left no message")
        report.at_least = True


def _with_costs(found: list[RecordedRequest], info: Table) -> list[RecordedRequest]:
    """The run's cost in shares, where no request has its own."""
    cost = amount(table(info.get("model_stats")).get("instance_cost"))
    if not cost or any(one.cost_usd.value is not None for one in found):
        return found
    weights = [int(one.counts.prompt.value or 0) for one in found]
    return [
        msgspec.structs.replace(one, cost_usd=share)
        for one, share in zip(found, cost_shares(cost, weights), strict=True)
    ]
