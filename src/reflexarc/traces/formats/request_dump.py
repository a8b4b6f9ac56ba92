"""Dumps of requests as a server saw them: `{timestamp, input, output, session_id}`, one a line.

`timestamp` is in microseconds; `input` is the prompt's text, or its chat messages. There are no
counts: tokens are estimated from the text.
"""

from collections.abc import Sequence
from pathlib import Path

from reflexarc.steps.prompt import Piece, Prompt
from reflexarc.traces.documents import Document, documents, tally
from reflexarc.traces.estimates import output_tokens, prompt_tokens
from reflexarc.traces.formats.chat_pieces import called, message_piece, ordered, words
from reflexarc.traces.logs import Head
from reflexarc.traces.loose import encoded, moment, table, tables, text
from reflexarc.traces.models import bare, owner
from reflexarc.traces.peek import top_of
from reflexarc.traces.requests import Counts, FileReport, RecordedRequest, RecordedTool, measured


class RequestDump:
    name = "request-dump"

    def recognises(self, head: Head) -> bool:
        return top_of(head).keys >= {"timestamp", "input", "output", "session_id"}

    def read(self, paths: Sequence[Path], reports: dict[Path, FileReport]) -> list[RecordedRequest]:
        shared: dict[bytes, Piece] = {}
        found = [
            request
            for document in documents(paths, reports)
            if (request := _request(document, shared)) is not None
        ]
        tally(found, reports)
        return found


def _request(document: Document, shared: dict[bytes, Piece]) -> RecordedRequest | None:
    fields = table(document.value)
    given = fields.get("input")
    messages = tables(given)
    if not isinstance(given, str) and not messages:
        document.report.skip("a line without input")
        return None
    if isinstance(given, str):
        raw = given.encode("utf-8", "replace")
        pieces = (shared.setdefault(raw, Piece("message", "input", raw, plain=True)),)
    else:
        pieces = ordered([message_piece(one, f"input[{at}]") for at, one in enumerate(messages)])
    prompt = Prompt(pieces)
    answer = fields.get("output")
    message = table(answer)
    said = answer if isinstance(answer, str) else words(message)
    model = text(fields.get("model"))
    return RecordedRequest(
        id=document.digest,
        session=text(fields.get("session_id")) or document.path.stem,
        file=str(document.path),
        model=bare(model),
        provider=owner(model),
        began_s=measured(moment(fields.get("timestamp"))),
        counts=Counts(
            prompt=prompt_tokens(prompt),
            output=output_tokens(answer if isinstance(answer, str) else encoded(answer)),
        ),
        tools=tuple(RecordedTool(name, id) for name, id, _ in called(message)),
        prompt=prompt,
        output_text=said,
    )
