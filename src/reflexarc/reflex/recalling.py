"""From a recollection to a call: its values found again among those the context holds."""

from collections.abc import Collection, Iterator
from itertools import islice
from typing import Any

from reflexarc.provenance import Entry, Origin
from reflexarc.provenance.words import plain_text
from reflexarc.reflex.candidates import CONSTANT, COPIED, Candidate, coerce, enumerate_candidates
from reflexarc.reflex.context import Context
from reflexarc.reflex.fork import fork
from reflexarc.reflex.predictor import Predictor, RankedCall, Ranking
from reflexarc.reflex.recall import (
    Recollection,
    RememberedCall,
    call_hash,
    salt_of,
    value_hash,
)
from reflexarc.reflex.sources import Argument
from reflexarc.steps import ToolCall

_MAX_WORDS = 60
_LONGEST_SPAN = 8
_MOST_HELD = 2_000
_MOST_LINES = 100
_MOST_NUMBER = 100


def remembered(
    predictor: Predictor,
    context: Context,
    ranking: Ranking,
    found: Recollection | None,
    offered: Collection[str],
) -> Ranking:
    """A ranking, and what most runs of this situation did on top of it; the ranking itself where
    nothing is remembered, or runs disagree."""
    if found is None or not found.agreed:
        return ranking
    call = None
    if found.calls and found.tool in offered:
        made = found.calls[0]
        call = recalled_call(predictor, context, salt_of(context), made, found.score)
        best = ranking.best if call is None else None
        if best is not None and call_hash(salt_of(context), best.key) == made.call:
            call = best
    if call is None:
        otherwise = Ranking(
            lambda: ranking.calls, ranking.classes, lambda: ranking.probabilities,
            lambda: ranking.message_probability, history=lambda: ranking.history,
        )  # fmt: skip
        otherwise.contradicted = True
        return otherwise
    first = call
    recalled = Ranking(
        lambda: [first, *(other for other in ranking.calls if other.key != first.key)],
        ranking.classes, lambda: ranking.probabilities,
        lambda: ranking.message_probability, found, lambda: ranking.history, best=first,
    )  # fmt: skip
    recalled.unaided = ranking
    return recalled


def recalled_rest(
    predictor: Predictor,
    context: Context,
    first: RankedCall,
    found: Recollection,
    offered: Collection[str],
) -> list[RankedCall]:
    """What runs of this situation called together with the first call; nothing where that is not
    agreed, or one of those calls cannot be made."""
    salt = salt_of(context)
    here, before = context, first
    rest: list[RankedCall] = []
    for remembered_call in found.calls[1:]:
        here = fork(context) if here is context else here
        here.append_call(ToolCall("", before.name, before.arguments))
        call = None
        if remembered_call.tool in offered:
            call = recalled_call(predictor, here, salt, remembered_call, found.whole_score)
        if call is None:
            return []
        rest.append(call)
        before = call
    return rest


def recalled_call(
    predictor: Predictor, context: Context, salt: str, found: RememberedCall, score: float
) -> RankedCall | None:
    """A call that runs of the situation with this salt made; None where one of its values is not to
    be found in the context."""
    tool = predictor.sources.by_name.get(found.tool)
    if tool is None:
        return None
    arguments: dict[str, Any] = {}
    chosen: dict[str, Candidate] = {}
    known = {argument.name: argument for argument in tool.arguments}
    for name, wanted in found.values.items():
        argument = known.get(name) or _unknown(tool.name, name)
        candidate = _found_again(predictor, context, argument, salt, wanted)
        if candidate is None:
            return None
        arguments[argument.name] = candidate.value
        chosen[argument.name] = candidate
    call = RankedCall(tool.name, score, 1.0, 1.0, arguments, chosen)
    return call if call_hash(salt, call.key) == found.call else None


def _found_again(
    predictor: Predictor, context: Context, argument: Argument, salt: str, wanted: int
) -> Candidate | None:
    constants = predictor.sources.constants(argument)
    for candidate in enumerate_candidates(context, argument, constants):
        if value_hash(salt, argument.name, candidate.text) == wanted:
            return candidate
    for value, entry in _held(context):
        several = argument.kind == "list"
        fits, single = (True, value) if several else coerce(value, argument.kind)
        for made in (single, [value]) if fits else ([value],):
            text = plain_text(made)
            if value_hash(salt, argument.name, text) == wanted:
                return _copied(made, text, entry)
    return None


def _unknown(tool: str, name: str) -> Argument:
    """An argument that was given too seldom to be learned."""
    return Argument(tool, name, 0, "string", "string", (), (), 0.0, ())


def _copied(value: Any, text: str, entry: Entry | None) -> Candidate:
    candidate = Candidate(value, text, COPIED if entry is not None else CONSTANT)
    if entry is not None:
        candidate.entries.append(entry)
        candidate.slots.append(-1)
    return candidate


def _held(context: Context) -> Iterator[tuple[Any, Entry | None]]:
    """Whatever the conversation holds, where no slot of the argument has it: a title that the user
    gave is often no value of any slot, nor is a list of one word, nor yes or no."""
    newest: Origin | None = None
    prompts: dict[Origin, None] = {}
    for entry in context.entries:
        if entry.origin.kind == "user_message":
            newest = entry.origin
        elif entry.origin.kind == "system_prompt":
            prompts[entry.origin] = None
    if newest is not None:
        for span in _spans(newest.text):
            yield span, Entry("usr:words", span, newest)
    for entry in islice(reversed(context.entries), _MOST_HELD):
        if not isinstance(entry.value, dict | list):
            yield entry.value, entry
    for prompt in prompts:
        for line in islice(prompt.text.splitlines(), _MOST_LINES):
            for span in _spans(line):
                yield span, Entry("sys:words", span, prompt)
    yield from ((value, None) for value in (True, False, *range(_MOST_NUMBER + 1)))


def _spans(text: str) -> Iterator[str]:
    """Runs of words of what the user said last, as they stand and in the usual cases: a title that
    the user gave is often no value of any slot."""
    words = [word.strip(".,;:!?\"'()") for word in text.split()[:_MAX_WORDS]]
    for start in range(len(words)):
        for end in range(start + 1, min(len(words), start + _LONGEST_SPAN) + 1):
            span = " ".join(words[start:end])
            yield span
            yield from {span.lower(), span.capitalize(), span.title()} - {span}
