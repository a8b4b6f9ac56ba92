"""Events of OpenHands before its SDK ("V0"): a list of actions and observations, each action with
the sums so far (`llm_metrics`) and the response that it came of (repeated on parallel actions)."""

from collections.abc import Sequence

from reflexarc.steps.prompt import Piece, Prompt
from reflexarc.traces.formats.chat_pieces import called, tool_pieces, words
from reflexarc.traces.formats.openhands_events import Answer
from reflexarc.traces.formats.openhands_metrics import Call, Snapshot, calls_of, differences
from reflexarc.traces.formats.usage import counts_of
from reflexarc.traces.loose import Table, encoded, moment, table, tables, text
from reflexarc.traces.references import References
from reflexarc.traces.requests import Counts, RecordedTool, estimated


def classic_calls(events: Sequence[Table]) -> list[Call]:
    """The calls, from the best that the events have: lists of usages, sums that grow, or the usage
    in the responses."""
    metrics = [(index, table(event.get("llm_metrics"))) for index, event in enumerate(events)]
    listed = [one for _, one in metrics if tables(one.get("token_usages"))]
    if listed:
        # each event repeats the list so far
        return calls_of("default", max(listed, key=lambda one: len(tables(one["token_usages"]))))
    sums = [
        Snapshot(one, f"event-{index}", moment(events[index].get("timestamp")), index)
        for index, one in metrics
        if table(one.get("accumulated_token_usage"))
    ]
    if sums:
        return differences("default", sums)
    found: dict[str, Call] = {}
    for index, event in enumerate(events):
        response = _response(event)
        own = text(response.get("id"))
        counts, _ = counts_of(table(response.get("usage")))
        if own and own not in found and counts != Counts():
            found[own] = Call(
                usage="default",
                place=f"event-{index}",
                response_id=own,
                model=text(response.get("model")),
                counts=counts,
                at_s=moment(event.get("timestamp")),
                position=index,
            )
    return list(found.values())


def classic_answers(events: Sequence[Table], references: References) -> dict[str, Answer]:
    """The responses in order, with what the events before them show."""
    found: dict[str, Answer] = {}
    fixed: list[Piece] = []
    seen: list[Piece] = []
    asked: float | None = None
    by_event: dict[str, tuple[Answer, int]] = {}
    for position, event in enumerate(events):
        arguments = table(event.get("args"))
        at_s = moment(event.get("timestamp"))
        if event.get("action") == "system":
            fixed = [
                *tool_pieces(arguments.get("tools")),
                Piece("system", "system", text(arguments.get("content")).encode(), "system", True),
            ]
        elif event.get("observation"):
            _end(event, by_event, at_s)
            asked = at_s
            raw = text(event.get("content")).encode()
            seen.append(Piece("message", f"events[{position}]", raw, "tool", plain=True))
        elif event.get("source") == "agent" and event.get("action"):
            own = text(_response(event).get("id")) or f"event-{text(event.get('id')) or position}"
            answer = found.get(own)
            if answer is None:
                prompt = None
                if (fixed or seen) and references.take(len(fixed) + len(seen)):
                    prompt = Prompt((*fixed, *seen), complete=False)
                answer = found[own] = Answer(own, position, at_s, asked, prompt)
                seen.append(_answered(event, position))
                answer.text = text(arguments.get("thought")) or text(arguments.get("content"))
            if event.get("action") != "message":
                meta = table(event.get("tool_call_metadata"))
                name = text(meta.get("function_name")) or text(event.get("action"))
                by_event[text(event.get("id"))] = (answer, len(answer.tools))
                began = estimated(at_s)
                answer.tools.append(RecordedTool(name, text(meta.get("tool_call_id")), began))
        elif event.get("action") == "message":
            asked = at_s
            raw = text(arguments.get("content")).encode()
            seen.append(Piece("message", f"events[{position}]", raw, "user", plain=True))
    return found


def _response(event: Table) -> Table:
    return table(table(event.get("tool_call_metadata")).get("model_response"))


def _answered(event: Table, position: int) -> Piece:
    path = f"events[{position}]"
    choice = (tables(_response(event).get("choices")) or [{}])[0]
    message = table(choice.get("message"))
    if message and (words(message) or called(message)):
        return Piece("message", path, encoded(message), "assistant")
    return Piece("message", path, encoded(event.get("args")), "assistant")


def _end(event: Table, by_event: dict[str, tuple[Answer, int]], at_s: float | None) -> None:
    known = by_event.get(text(event.get("cause")))
    if known is None:
        return
    answer, at = known
    extras = table(event.get("extras"))
    code = extras.get("exit_code", table(extras.get("metadata")).get("exit_code"))
    made = answer.tools[at]
    answer.tools[at] = RecordedTool(
        made.name,
        made.id,
        made.began_s,
        estimated(at_s),
        failed=event.get("observation") == "error" or code not in (None, 0),
    )
