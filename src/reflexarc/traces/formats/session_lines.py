"""Session JSONL (docs/sessions.md) as requests: one for each turn of the assistant.

For measuring what was sent, not for learning: that is `traces.sessions`, which is strict. Such
files hold no counts and no times, so tokens are estimated from the text.
"""

from collections.abc import Sequence
from pathlib import Path

from reflexarc.steps.prompt import Piece, Prompt
from reflexarc.traces.documents import Document, documents, tally
from reflexarc.traces.estimates import output_tokens, tokens_of
from reflexarc.traces.formats.chat_pieces import called, message_piece, tool_pieces, words
from reflexarc.traces.logs import Head
from reflexarc.traces.loose import Table, listed, moment, table, text
from reflexarc.traces.models import bare, owner
from reflexarc.traces.references import LEFT_OUT, References
from reflexarc.traces.requests import Counts, FileReport, RecordedRequest, RecordedTool, estimated

_OWN_KEYS = frozenset({"task", "trial", "reward", "family", "source", "began_unix_s"})
_FOREIGN_KEYS = frozenset(
    {"request", "response", "usage", "choices", "max_tokens", "temperature", "stream", "input"}
    | {"output", "body", "info", "trajectory_format", "type", "kind", "sessionId", "uuid"}
    | {"completion", "prompt_tokens", "completion_tokens", "latency_ms", "duration_ms"}
    | {"max_completion_tokens", "tool_choice", "system", "conversation_id", "run_type"}
)
_SESSION_LIMIT_BYTES = 64 * 1024 * 1024


class SessionLines:
    name = "sessions"

    def recognises(self, head: Head) -> bool:
        keys = head.top.keys
        if "messages" not in keys or (keys & _FOREIGN_KEYS and not keys & _OWN_KEYS):
            return False
        if head.first is None:
            # the first line is longer than what is looked at
            return bool(keys & _OWN_KEYS)
        messages = listed(table(head.first).get("messages"))
        return bool(messages) and all(text(table(one).get("role")) for one in messages[:3])

    def read(self, paths: Sequence[Path], reports: dict[Path, FileReport]) -> list[RecordedRequest]:
        found: list[RecordedRequest] = []
        tools: dict[bytes, Piece] = {}
        references = References()
        for document in documents(paths, reports, max_bytes=_SESSION_LIMIT_BYTES):
            found += _requests(document, tools, references)
        tally(found, reports)
        return found


def _requests(
    document: Document, shared: dict[bytes, Piece], references: References
) -> list[RecordedRequest]:
    session = table(document.value)
    if not isinstance(session.get("messages"), list):
        document.report.skip("a line without messages")
        return []
    model = text(session.get("model"))
    began = moment(session.get("began_unix_s"))
    name = text(session.get("id")) or document.digest
    tools = tool_pieces(session.get("tools"), shared)
    size = sum(len(piece.raw) for piece in tools)
    system: list[Piece] = []
    sent: list[Piece] = []
    found: list[RecordedRequest] = []
    for index, given in enumerate(listed(session["messages"])):
        message = table(given)
        if not message:
            document.report.skip("a message that is no object")
            continue
        if message.get("role") == "assistant":
            if message.get("decided_by") == "system1":
                document.report.skip("a turn that no model was asked for")
            else:
                prompt = None
                if references.take(len(tools) + len(system) + len(sent)):
                    prompt = Prompt((*tools, *system, *sent))
                else:
                    document.report.note(LEFT_OUT)
                found.append(
                    RecordedRequest(
                        id=f"{document.digest}:{index}",
                        session=f"{name} {document.digest[:8]}",
                        file=str(document.path),
                        model=bare(model),
                        provider=owner(model),
                        began_s=estimated(began) if not found else estimated(None),
                        counts=_counts(size, message),
                        prompt=prompt,
                        tools=tuple(RecordedTool(name, id) for name, id, _ in called(message)),
                        output_text=words(message),
                    )
                )
        piece = message_piece(message, f"messages[{index}]")
        (system if piece.kind == "system" else sent).append(piece)
        size += len(piece.raw)
    return found


def _counts(prompt_bytes: int, message: Table) -> Counts:
    calls = [part for name, _, arguments in called(message) for part in (name, arguments)]
    return Counts(
        prompt=estimated(tokens_of(prompt_bytes)), output=output_tokens(words(message), *calls)
    )
