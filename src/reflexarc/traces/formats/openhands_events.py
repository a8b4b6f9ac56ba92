"""Events of an OpenHands conversation (SDK) in order: for each response, what the model was sent,
what it called, when. Counts are `openhands_metrics`' business.

What the model was sent is what the events show; a condensation takes forgotten events out.
"""

from collections.abc import Sequence

import msgspec

from reflexarc.steps.prompt import Piece, Prompt
from reflexarc.traces.formats.chat_pieces import tool_pieces, words
from reflexarc.traces.formats.openhands_metrics import Snapshot
from reflexarc.traces.loose import Table, encoded, listed, moment, table, tables, text
from reflexarc.traces.references import References
from reflexarc.traces.requests import RecordedTool, Start, estimated

_RESULTS = ("ObservationEvent", "UserRejectObservation", "AgentErrorEvent")


class Answer(msgspec.Struct):
    """One response. `prompt` is None where the log shows nothing of what was sent; `asked_s` is
    when the newest of what it answers was there. `condensed`: the conversation was not gone on with
    but shortened."""

    response_id: str
    position: int
    at_s: float | None
    asked_s: float | None
    prompt: Prompt | None
    starts: Start = ""
    text: str = ""
    tools: list[RecordedTool] = []
    condensed: bool = False


class Conversation:
    """`answers` by id of their response, in order; `snapshots` of sums by usage."""

    def __init__(self, events: Sequence[Table], references: References) -> None:
        self.answers: dict[str, Answer] = {}
        self.snapshots: dict[str, list[Snapshot]] = {}
        self._references = references
        self._fixed: tuple[Piece, ...] = ()
        self._visible: list[tuple[str, Piece]] = []
        self._asked_s: float | None = None
        self._starts: Start = ""
        self._calls: dict[str, tuple[Answer, int]] = {}
        for position, event in enumerate(events):
            self._take(event, position)

    def _take(self, event: Table, position: int) -> None:
        kind = text(event.get("kind"))
        if kind == "ConversationStateUpdateEvent":
            self._note_sums(event, position)
        elif kind == "SystemPromptEvent":
            self._fixed = _fixed(event)
        elif kind.startswith("Condensation") and "forgotten_event_ids" in event:
            answer = self._answered(event, position, None)
            if answer is not None:
                answer.condensed = True
            self._condense(event)
        elif kind in _RESULTS:
            self._ended(event, kind)
            self._see(event, position, "tool")
        elif kind == "ActionEvent":
            self._acted(event, position)
            self._see(event, position, "assistant")
        elif kind == "MessageEvent":
            role = text(table(event.get("llm_message")).get("role")) or "user"
            if event.get("source") == "agent":
                role = "assistant"
                answer = self._answered(event, position, self._prompt())
                if answer is not None:
                    answer.text += words(table(event.get("llm_message")))
            self._see(event, position, role)

    def _prompt(self) -> Prompt | None:
        if not self._references.take(len(self._fixed) + len(self._visible)):
            return None
        pieces = (*self._fixed, *(piece for _, piece in self._visible))
        return Prompt(pieces, complete=False) if pieces else None

    def _answered(self, event: Table, position: int, prompt: Prompt | None) -> Answer | None:
        own = text(event.get("llm_response_id"))
        if not own:
            return None
        if own not in self.answers:
            at_s = moment(event.get("timestamp"))
            self.answers[own] = Answer(own, position, at_s, self._asked_s, prompt, self._starts)
            if prompt is not None:
                self._starts = ""
        return self.answers[own]

    def _acted(self, event: Table, position: int) -> None:
        own = text(event.get("llm_response_id"))
        answer = self.answers.get(own) or self._answered(event, position, self._prompt())
        if answer is None:
            return
        answer.text += "".join(text(one.get("text")) for one in tables(event.get("thought")))
        call = table(event.get("tool_call"))
        id = text(event.get("tool_call_id")) or text(call.get("id"))
        name = text(event.get("tool_name")) or text(call.get("name"))
        began = estimated(moment(event.get("timestamp")))
        for key in (id, text(event.get("id"))):
            if key:
                self._calls[key] = (answer, len(answer.tools))
        answer.tools.append(RecordedTool(name, id, began_s=began))

    def _ended(self, event: Table, kind: str) -> None:
        for key in (text(event.get("action_id")), text(event.get("tool_call_id"))):
            if key in self._calls:
                answer, at = self._calls[key]
                is_error = bool(table(event.get("observation")).get("is_error"))
                answer.tools[at] = msgspec.structs.replace(
                    answer.tools[at],
                    ended_s=estimated(moment(event.get("timestamp"))),
                    failed=is_error or kind != "ObservationEvent",
                )
                return

    def _see(self, event: Table, position: int, role: str) -> None:
        if role != "assistant":
            self._asked_s = moment(event.get("timestamp"))
        piece = Piece("message", f"events[{position}]", encoded(_sent(event)), role)
        self._visible.append((text(event.get("id")), piece))

    def _condense(self, event: Table) -> None:
        gone = {text(one) for one in listed(event.get("forgotten_event_ids"))}
        self._visible = [one for one in self._visible if one[0] not in gone]
        summary = text(event.get("summary"))
        if summary:
            offset = event.get("summary_offset")
            at = offset if isinstance(offset, int) and offset >= 0 else len(self._visible)
            piece = Piece("message", "summary", summary.encode(), "user", plain=True)
            self._visible.insert(at, (text(event.get("id")), piece))
        self._starts = "compaction"

    def _note_sums(self, event: Table, position: int) -> None:
        value = table(event.get("value"))
        stats = value if event.get("key") == "stats" else table(value.get("stats"))
        for usage, metrics in table(sums_by_usage(stats)).items():
            self.snapshots.setdefault(usage, []).append(
                Snapshot(
                    table(metrics),
                    f"{text(event.get('id')) or position}:{usage}",
                    moment(event.get("timestamp")),
                    position,
                )
            )


def sums_by_usage(stats: Table) -> object:
    """What is counted for each usage, under its name of now or of the first versions."""
    return stats.get("usage_to_metrics") or stats.get("service_to_metrics")


def _fixed(event: Table) -> tuple[Piece, ...]:
    tools = tool_pieces(event.get("tools"))
    blocks = [table(event.get("system_prompt")), table(event.get("dynamic_context"))]
    system = [
        Piece("system", f"system[{index}]", text(block.get("text")).encode(), "system", plain=True)
        for index, block in enumerate(blocks)
        if block
    ]
    return (*tools, *system)


def _sent(event: Table) -> object:
    """Of an event what a model reads of it."""
    if "llm_message" in event:
        return [event["llm_message"], event.get("extended_content")]
    if "tool_call" in event or "thought" in event:
        return [event.get("thought"), event.get("reasoning_content"), event.get("tool_call")]
    if "observation" in event:
        return table(event["observation"]).get("content", event["observation"])
    return event.get("error") or event.get("rejection_reason") or ""
