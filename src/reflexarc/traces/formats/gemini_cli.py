"""Gemini CLI chats: `tmp/<project>/chats/session-*.jsonl`, older `.json`, subagents' one below.

A message is written again as it grows, so the last writing of an id counts, once. What was rewound
or compressed away was sent and paid all the same.
"""

from collections.abc import Sequence
from pathlib import Path

from reflexarc.traces.documents import tally, values
from reflexarc.traces.formats.gemini_chat import Answer, Chat, chat_of, tools_of
from reflexarc.traces.formats.visible import Prompts
from reflexarc.traces.inclusive import Told, settled
from reflexarc.traces.logs import Head
from reflexarc.traces.loose import Table, amount, table, tables, text
from reflexarc.traces.peek import top_of
from reflexarc.traces.requests import (
    ABSENT,
    Counts,
    FileReport,
    RecordedRequest,
    Start,
    derived,
    estimated,
    measured,
)

AGAIN = "a message written again as it grew"
COPY = "a message that another file of its session has"
_MISSING = (
    "not in these logs: system prompt, schemas of tools, requests that failed; tool results longer "
    "than 50 KB are cut; times are when an answer was complete on the client"
)
_TYPES = ("user", "gemini", "info", "error", "warning")


class GeminiCli:
    name = "gemini-cli"

    def recognises(self, head: Head) -> bool:
        keys = top_of(head).keys
        if keys >= {"sessionId", "projectHash"}:
            return True
        # its first line may be lost
        fields = table(head.first)
        return head.path.parent.name == "chats" and (
            (bool(keys) and keys <= {"$set", "$rewindTo"})
            or (fields.keys() >= {"id", "timestamp", "content"} and fields.get("type") in _TYPES)
        )

    def read(self, paths: Sequence[Path], reports: dict[Path, FileReport]) -> list[RecordedRequest]:
        prompts = Prompts()
        chats = [
            chat_of(path, values(path, reports[path]), reports[path], prompts)
            for path in sorted(paths)
        ]
        # the older form of a chat stays beside the newer one, which has all that it had
        chats.sort(key=lambda chat: (chat.began_s, chat.path.suffix == ".json", str(chat.path)))
        found: dict[str, RecordedRequest] = {}
        for chat in chats:
            report = reports[chat.path]
            for request in _requests(chat, report):
                if request.id in found:
                    report.duplicate(COPY)
                else:
                    found[request.id] = request
        tally(found.values(), reports)
        for path in paths:
            if reports[path].requests:
                reports[path].notes.append(_MISSING)
            if prompts.cut:
                reports[path].notes.append(prompts.cut)
        return list(found.values())


def _requests(chat: Chat, report: FileReport) -> list[RecordedRequest]:
    found: list[RecordedRequest] = []
    starts: Start = "session"
    inside = chat.path.parent.name != "chats" and chat.kind == "subagent"
    for answer in chat.answers:
        if answer.written > 1:
            report.duplicate(AGAIN, answer.written - 1)
        fields = answer.fields
        starts = answer.starts or starts
        tokens = table(fields.get("tokens"))
        if not tokens:
            # one answer may be kept as two messages, of which one has its tokens
            report.skip("an answer without tokens")
            continue
        counts, unknown = _counts(tokens)
        found.append(
            RecordedRequest(
                id=f"{chat.session}:{answer.id}",
                session=chat.path.parent.name if inside else chat.session,
                agent=chat.session if inside else "",
                file=str(chat.path),
                model=answer.model,
                provider="gemini" if answer.model.startswith("gemini") else "",
                began_s=estimated(_asked_s(answer)),
                ended_s=measured(answer.at_s),
                gap=True,
                counts=counts,
                tools=tools_of(fields, answer.at_s),
                prompt=answer.before,
                output_text=_words(fields.get("content")),
                starts=starts,
                unknown_cache=unknown,
            )
        )
        starts = ""
    return found


def _asked_s(answer: Answer) -> float | None:
    asked = answer.asked_s
    return None if asked is None or (answer.at_s is not None and asked > answer.at_s) else asked


def _counts(tokens: Table) -> tuple[Counts, bool]:
    """Its tokens, and whether it cannot be told if cached ones are inside the prompt."""
    given, output = amount(tokens.get("input")), amount(tokens.get("output"))
    thoughts, tool = amount(tokens.get("thoughts")), amount(tokens.get("tool")) or 0.0
    cached, total = amount(tokens.get("cached")), amount(tokens.get("total")) or None
    plain = (given or 0.0) + (output or 0.0)
    if given is not None and total not in (plain, plain + (thoughts or 0.0)):
        # what tools of the provider put into the prompt is counted beside it
        given += tool
    told = Told(given, output, cache_read=cached, reasoning=thoughts, total=total)
    whole = settled(told, "inclusive", reasoning_inside=False)
    counts = Counts(
        prompt=derived(whole.prompt) if whole.prompt != amount(tokens.get("input"))
        else measured(whole.prompt),
        cache_read=measured(cached),
        output=measured(output) if whole.output == output else derived(whole.output),
        reasoning=ABSENT if thoughts is None else measured(thoughts),
    )  # fmt: skip
    return counts, whole.unknown


def _words(content: object) -> str:
    if isinstance(content, str):
        return content
    parts = tables(content) or [table(content)]
    return "".join(text(part.get("text")) for part in parts)
