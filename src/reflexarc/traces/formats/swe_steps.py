"""The steps of a SWE-agent run: what each was sent, answered and called.

The exact prompt is in the step (`query`, since 1.1.0), else what came before in the history, which
leaves out tools and does not show which old observations were cut for the model.
"""

import msgspec

from reflexarc.steps.prompt import Piece, Prompt
from reflexarc.traces.formats.chat_pieces import called, message_piece, ordered
from reflexarc.traces.loose import Table, amount, table, tables, text
from reflexarc.traces.references import References
from reflexarc.traces.requests import RecordedTool, measured

# what SWE-agent keeps of a message for itself
_NOT_SENT = frozenset({"agent", "message_type", "is_demo", "tags", "thought", "action", "extra"})


class Step(msgspec.Struct, frozen=True):
    """`place` tells it from the run's others. `response_bytes`: of its answer and its calls.
    `left_out`: its prompt is beyond the bound on what is kept."""

    place: str
    agent: str
    prompt: Prompt | None
    response: str
    response_bytes: int
    tools: tuple[RecordedTool, ...]
    left_out: bool = False


class _Answer(msgspec.Struct, frozen=True):
    """An answer in the history, and how many of the history's pieces came before it."""

    before: int
    message: Table


def steps_of(run: Table, agent: str, references: References) -> list[Step]:
    """The steps of a run (or of one attempt of it), from its history where it has no trajectory."""
    history = tables(run.get("history"))
    known: dict[tuple[str, bytes], Piece] = {}
    pieces = [_piece(one, index, known) for index, one in enumerate(history)]
    answers = [
        _Answer(index, one)
        for index, one in enumerate(history)
        if one.get("role") == "assistant" and not one.get("is_demo")
    ]
    # answers that were asked for again are in neither, so the two lists go together
    nothing: list[Table] = [{} for _ in answers]
    trajectory = tables(run.get("trajectory")) or nothing
    found: list[Step] = []
    left = iter(answers)
    for index, step in enumerate(trajectory):
        # a step without an answer (the run was ended from outside) has none in the history
        answer = None if step.get("response") == "" else next(left, None)
        query = tables(step.get("query"))
        # the answer of the last step is often not in the history
        before = len(pieces) if answer is None else answer.before
        prompt = None
        left_out = not references.take(len(query) or before)
        if left_out:
            pass
        elif query:
            sent = [_piece(one, at, known) for at, one in enumerate(query)]
            # its tools are not in the log where it calls them natively
            prompt = Prompt(ordered(sent), complete=not _calls_tools(query))
        elif before:
            prompt = Prompt(ordered(pieces[:before]), complete=False)
        made = _step(f"{agent}:{index}", agent, step, answer, prompt)
        found.append(msgspec.structs.replace(made, left_out=left_out))
    return found


def _step(
    place: str, agent: str, step: Table, answer: _Answer | None, prompt: Prompt | None
) -> Step:
    message = {} if answer is None else answer.message
    response = text(step.get("response")) or text(message.get("content"))
    calls = called(step) or called(message)
    own = measured(amount(step.get("execution_time")))
    action = (text(step.get("action")) or text(message.get("action"))).strip()
    if calls:
        tools = tuple(
            RecordedTool(name, id, own_s=own if len(calls) == 1 else measured(None))
            for name, id, _ in calls
        )
    else:
        tools = (RecordedTool(action.split()[0], own_s=own),) if action else ()
    written = sum(len(name) + len(arguments) for name, _, arguments in calls)
    return Step(place, agent, prompt, response, len(response.encode()) + written, tools)


def _piece(message: Table, index: int, known: dict[tuple[str, bytes], Piece]) -> Piece:
    piece = message_piece(message, f"messages[{index}]", without=_NOT_SENT)
    return known.setdefault((piece.path, piece.raw), piece)


def _calls_tools(query: list[Table]) -> bool:
    return any(one.get("tool_calls") or table(one).get("role") == "tool" for one in query)
