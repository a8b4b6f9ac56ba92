"""From a recollection to a call: its values found again among those the context holds."""

from collections.abc import Collection, Iterator
from itertools import islice
from typing import Any

from reflexarc.provenance import Entry, Origin
from reflexarc.provenance.words import plain_text
from reflexarc.reflex.candidates import CONSTANT, COPIED, Candidate, coerce, enumerate_candidates
from reflexarc.reflex.context import Context
from reflexarc.reflex.predictor import Predictor, RankedCall, Ranking
from reflexarc.reflex.recall import Recollection, call_hash, salt_of, value_hash
from reflexarc.reflex.sources import Argument

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
    call = recalled_call(predictor, context, found) if found.tool in offered else None
    if call is None and ranking.calls and found.tool in offered:
        best = ranking.calls[0]
        if call_hash(salt_of(context), best.key) == found.call:
            call = best
    if call is None:
        otherwise = Ranking(
            lambda: ranking.calls, ranking.classes, lambda: ranking.probabilities,
            ranking.message_probability,
        )  # fmt: skip
        otherwise.contradicted = True
        return otherwise
    key = call.key
    others = [other for other in ranking.calls if other.key != key]
    return Ranking(
        [call, *others], ranking.classes, lambda: ranking.probabilities,
        ranking.message_probability, found,
    )  # fmt: skip


def recalled_call(predictor: Predictor, context: Context, found: Recollection) -> RankedCall | None:
    """The call that runs of this situation made; None where one of its values is not to be found,
    or they wrote a message."""
    tool = predictor.sources.by_name.get(found.tool or "")
    if tool is None:
        return None
    salt = salt_of(context)
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
    call = RankedCall(tool.name, found.score, 1.0, 1.0, arguments, chosen)
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
