"""What an artifact says beside its arrays, and every check that this is something `learn` wrote.

An artifact is untrusted until these pass: a file that loads can then only be wrong, not harmful.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from reflexarc.reflex.argument_features import FEATURES as ARGUMENT_FEATURES
from reflexarc.reflex.batches import CALL_FEATURES
from reflexarc.reflex.card import Card
from reflexarc.reflex.certificate import Certificate
from reflexarc.reflex.choice import FEATURES as CHOICE_FEATURES
from reflexarc.reflex.confidence import FEATURES as CONFIDENCE_FEATURES
from reflexarc.reflex.confidence import WHOLE_FEATURES
from reflexarc.reflex.familiarity import Familiarity, Looks
from reflexarc.reflex.form_faults import form_faults
from reflexarc.reflex.form_ranking import FEATURES as FORM_FEATURES
from reflexarc.reflex.history import FIELDS, HistoryFeatures, Vocabulary
from reflexarc.reflex.identity import Identity
from reflexarc.reflex.member import LEAST_THRESHOLD as LEAST_THRESHOLD
from reflexarc.reflex.member import MEMBERS, Batching, Member
from reflexarc.reflex.per_task import PerTask
from reflexarc.reflex.predictor import Predictor
from reflexarc.reflex.recall import ARRAYS as RECALL_ARRAYS
from reflexarc.reflex.recall import Recall
from reflexarc.reflex.schema_choices import MAX_CHOICES, MAX_EXAMPLES
from reflexarc.reflex.signs_stored import NAMES as SIGN_ARRAYS
from reflexarc.reflex.signs_stored import choice_arrays, cue_arrays, stored_choice, stored_cues
from reflexarc.reflex.sources import MAX_CONSTANTS, MAX_PROJECTIONS, MAX_SLOTS, Sources, Tool
from reflexarc.reflex.trees import Forest
from reflexarc.steps import Effect
from reflexarc.steps.errors import ArtifactCorruptError

FORESTS = ("tools", "arguments", "choice", "forms", "confidence")
PARTIAL_FOREST = "partial"
"""Only where partial decisions were learned."""
BATCH_FORESTS = ("ends", "whole")
"""Only of members that answer with whole batches."""
KNOWN_LOOKS = "familiarity.known"
"""The array of hashes of what familiar contexts show: sorted, each once."""
FOREST_ARRAYS = ("feature", "leaf", "shape", "threshold")

_MAX_TOOLS = 4_000
_MAX_ARGUMENTS = 512


class MemberHeader(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything of a member but its forests and hashes. Its arrays are named by its number."""

    tools: tuple[Tool, ...]
    vocabulary: Vocabulary
    familiarity: Looks


class Header(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything of a reflex but its arrays. The recalled names are those that the arrays of its
    memory count."""

    card: Card
    identity: Identity
    learned_tasks: tuple[str, ...]
    effects: dict[str, Effect]
    members: tuple[MemberHeader, ...]
    recalled_tools: tuple[str, ...] = ()
    recalled_arguments: tuple[str, ...] = ()


def checked_header(raw: object, arrays: Sequence[str]) -> Header:
    """The header of an artifact with these arrays. Raises ArtifactCorruptError."""
    try:
        header = msgspec.convert(raw, Header)
    except msgspec.ValidationError as error:
        raise _corrupt(str(error)) from error
    partial = any(array.startswith(f"0.{PARTIAL_FOREST}.") for array in arrays)
    named = (*FORESTS, PARTIAL_FOREST) if partial else FORESTS
    expected = {f"recall.{array}" for array in RECALL_ARRAYS}
    for at in range(len(header.members)):
        batching = any(array.startswith(f"{at}.{BATCH_FORESTS[0]}.") for array in arrays)
        forests = (*named, *BATCH_FORESTS) if batching else named
        expected |= {f"{at}.{forest}.{array}" for forest in forests for array in FOREST_ARRAYS}
        expected |= {f"{at}.{name}" for name in (KNOWN_LOOKS, *SIGN_ARRAYS)}
    if len(header.members) != MEMBERS:
        raise _corrupt(f"it has {len(header.members)} members, not {MEMBERS}")
    if set(arrays) != expected or (header.card.partial and not partial):
        raise _corrupt(f"its arrays are {', '.join(sorted(arrays)[:20])}")
    for fault in _faults(header):
        raise _corrupt(fault)
    return header


def member_header(member: Member) -> MemberHeader:
    """What of a member stands in the header."""
    predictor = member.predictor
    return MemberHeader(predictor.sources.tools, predictor.vocabulary, member.familiarity.looks)


def member_arrays(at: int, member: Member) -> dict[str, NDArray[Any]]:
    """What of a member stands in arrays."""
    predictor = member.predictor
    whole = (
        predictor.tool_forest, predictor.argument_forest, predictor.choice.forest,
        predictor.form_forest, member.confidence,
    )  # fmt: skip
    forests = (*whole, member.partial) if member.partial else whole
    arrays: dict[str, NDArray[Any]] = {
        KNOWN_LOOKS: member.familiarity.known,
        **choice_arrays(predictor.choice),
        **cue_arrays(predictor.cues),
    }
    named = dict(zip((*FORESTS, PARTIAL_FOREST), forests, strict=False))
    if member.batching is not None:
        named |= {"ends": member.batching.ends, "whole": member.batching.confidence}
    for name, forest in named.items():
        arrays |= {f"{name}.{key}": array for key, array in forest.arrays().items()}
    return {f"{at}.{name}": array for name, array in arrays.items()}


def members_of(header: Header, arrays: Mapping[str, NDArray[Any]]) -> tuple[Member, ...]:
    """The members of a checked header. Raises ArtifactCorruptError where their arrays do not fit
    them."""
    members: list[Member] = []
    for at, one in enumerate(header.members):
        prefix = f"{at}."
        own = {
            name.removeprefix(prefix): array
            for name, array in arrays.items()
            if name.startswith(prefix)
        }
        members.append(_member(one, own))
    return tuple(members)


def _member(header: MemberHeader, arrays: Mapping[str, NDArray[Any]]) -> Member:
    forests = {
        name: Forest.from_arrays({key: arrays[f"{name}.{key}"] for key in FOREST_ARRAYS})
        for name in (*FORESTS, PARTIAL_FOREST, *BATCH_FORESTS)
        if f"{name}.{FOREST_ARRAYS[0]}" in arrays
    }
    _check_forests(header, forests)
    choice = stored_choice([tool.name for tool in header.tools], arrays, forests["choice"])
    predictor = Predictor(
        Sources(header.tools),
        header.vocabulary,
        forests["tools"],
        forests["arguments"],
        choice,
        stored_cues(arrays),
        forests["forms"],
    )
    known = arrays[KNOWN_LOOKS]
    if known.dtype != np.uint64 or known.ndim != 1 or bool((known[1:] <= known[:-1]).any()):
        raise _corrupt("what it knows of contexts is not a sorted list of hashes")
    familiarity = Familiarity(header.familiarity, known)
    batching = Batching(forests["ends"], forests["whole"]) if "ends" in forests else None
    return Member(
        predictor, forests["confidence"], familiarity, forests.get(PARTIAL_FOREST), batching
    )


def recall_of(header: Header, arrays: Mapping[str, NDArray[Any]]) -> Recall:
    """The memory of situations. Raises ArtifactCorruptError."""
    named = {name: arrays[f"recall.{name}"] for name in RECALL_ARRAYS}
    try:
        return Recall.from_arrays(header.recalled_tools, header.recalled_arguments, named)
    except ValueError as error:
        raise _corrupt(f"its memory of situations: {error}") from error


def _check_forests(header: MemberHeader, forests: Mapping[str, Forest]) -> None:
    """Whether the forests read what is made for them. Raises ArtifactCorruptError."""
    width = HistoryFeatures(header.vocabulary, Sources(header.tools)).width
    expected = {
        "tools": (width, len(header.tools) + 1),
        "arguments": (len(ARGUMENT_FEATURES), 1),
        "choice": (len(CHOICE_FEATURES), 1),
        "forms": (len(FORM_FEATURES), 1),
        "confidence": (len(CONFIDENCE_FEATURES), 1),
        PARTIAL_FOREST: (len(CONFIDENCE_FEATURES), 1),
        "ends": (width + len(CALL_FEATURES), 1),
        "whole": (len(WHOLE_FEATURES), 1),
    }
    for name, forest in forests.items():
        features, outputs = expected[name]
        if (forest.n_features, forest.n_outputs) != (features, outputs) or not forest.n_trees:
            raise _corrupt(
                f"the forest of {name} has {forest.n_trees} trees over {forest.n_features} "
                f"features for {forest.n_outputs} outputs, not {features} for {outputs}"
            )


def _faults(header: Header) -> Iterator[str]:
    for member in header.members:
        yield from _member_faults(member)
    yield from _card_faults(header.card)


def _member_faults(header: MemberHeader) -> Iterator[str]:
    names = [tool.name for tool in header.tools]
    if not 1 <= len(names) <= _MAX_TOOLS or len(set(names)) < len(names):
        yield f"{len(names)} tools, {len(set(names))} of them different"
    counted = header.vocabulary.tools
    if not set(counted) <= set(names) or len(set(counted)) < len(counted):
        yield "the vocabulary counts tools that are not there, or one twice"
    if len(header.vocabulary.words) != len(FIELDS):
        yield f"the vocabulary has {len(header.vocabulary.words)} fields, not {len(FIELDS)}"
    for words in (*header.vocabulary.words, header.vocabulary.symbols):
        if len(set(words)) < len(words):
            yield "a word of the vocabulary stands twice"
    for tool in header.tools:
        yield from _tool_faults(tool)
    yield from _looks_faults(header.familiarity)


def _tool_faults(tool: Tool) -> Iterator[str]:
    arguments = [argument.name for argument in tool.arguments]
    if len(set(arguments)) < len(arguments) or len(arguments) > _MAX_ARGUMENTS:
        yield f"{tool.name}: an argument stands twice, or there are over {_MAX_ARGUMENTS}"
    yield from form_faults(tool)
    for argument in (*tool.arguments, *tool.holes):
        where = f"{tool.name}.{argument.name}"
        if argument.tool != tool.name:
            yield f"{where} belongs to {argument.tool}"
        if not 0 <= argument.index < _MAX_TOOLS * _MAX_ARGUMENTS:
            yield f"{where}: index {str(argument.index)[:20]}"
        if (
            len(argument.slots) > MAX_SLOTS
            or len(argument.constants) > MAX_CONSTANTS + MAX_CHOICES
            or len(argument.projections) > MAX_PROJECTIONS
            or len(argument.examples) > MAX_EXAMPLES
        ):
            yield f"{where}: more slots, constants or projections than are learned"
        shares = [argument.absent_share, argument.found_share]
        shares += [constant.share for constant in argument.constants]
        for slot in argument.slots:
            shares += [slot.hit_rate, slot.precision]
        if not all(0.0 <= share <= 1.0 for share in shares):
            yield f"{where}: a share outside 0 to 1"


def _looks_faults(looks: Looks) -> Iterator[str]:
    if not 0.0 <= looks.flagged <= 1.0 or looks.rare_places < 0 or len(looks.tools) > _MAX_TOOLS:
        yield f"{len(looks.tools)} tools are familiar, {looks.flagged} of the contexts not"
    for name, tool in looks.tools.items():
        if not 0.0 < tool.word_rate < 1.0 or min(tool.limits) < 0.0:
            yield f"{name[:80]!r}: a rate or a limit of familiarity that cannot be"
        if not all(0 <= place < 1 << 64 for place in tool.usual):
            yield f"{name[:80]!r}: a hash that is none"


def _card_faults(card: Card) -> Iterator[str]:
    again = card.repeats
    for of in (again, *again.tools.values()):
        rates = (of.repeat_rate, of.modal_share, of.modal_share_left_out)
        if not all(rate is None or 0.0 <= rate <= 1.0 for rate in rates) or of.calls < 0:
            yield "the card's repeat rates are not between 0 and 1"
    if again.tasks < 0 or len(again.tools) > _MAX_TOOLS:
        yield f"calls recur in {again.tasks} tasks, of {len(again.tools)} tools"
    if not 0.0 < card.max_error < 1.0 or not 0.0 < card.confidence_level < 1.0:
        yield "the card's error and confidence are not between 0 and 1"
    for one in (*card.certificates, *card.partial):
        yield from _certificate_faults(one, card)
    if not all(0.0 < r.max_error < 1.0 and 0.0 <= r.tool_probability <= 1.0 for r in card.reach):
        yield "how likely a tool has to be is not between 0 and 1"
    if card.attempt < 0:
        yield f"attempt {card.attempt}"
    for each in card.per_task:
        yield from _per_task_faults(each)


def _certificate_faults(one: Certificate, card: Card) -> Iterator[str]:
    if not 0.0 < one.max_error < 1.0 or not 0.0 < one.confidence_level < 1.0:
        yield "a certificate's error and confidence are not between 0 and 1"
    if not 0.0 <= one.bound <= 1.0 or not one.design_effect >= 0.0:
        yield f"a certificate's bound of {one.bound} and design effect of {one.design_effect}"
    if not 0 <= one.errors <= one.n or one.missing < 0 or one.missing_tasks < 0:
        yield f"a certificate of {one.errors} errors in {one.n} answers"
    if not 0 <= one.tasks_wrong <= one.tasks <= one.n or one.tasks_wrong > one.errors:
        yield f"a certificate of {one.tasks_wrong} tasks with errors among {one.tasks}"
    if one.threshold is not None:
        if not LEAST_THRESHOLD <= one.threshold <= 1.0:
            yield f"a certificate's threshold of {one.threshold}"
        exact = one.certificate_class == "exact"
        wrong, of = (one.tasks_wrong, one.tasks) if exact else (one.errors, one.n)
        if wrong > one.max_error * of or one.bound > one.max_error or not one.n:
            yield "a certificate that its own numbers do not bear out"
        if card.results.fits is False:
            yield "a certificate of a log whose results are mixed up"


def _per_task_faults(one: PerTask) -> Iterator[str]:
    shares = (one.max_error, one.confidence_level, one.touched_bound)
    if not all(0.0 <= share <= 1.0 for share in shares):
        yield "a figure per task that is no share"
    if not 0 <= one.touched <= one.tasks <= one.acts or not one.touched <= one.wrong <= one.acts:
        yield f"{one.touched} of {one.tasks} tasks touched by {one.wrong} of {one.acts} acts"
    if not 0.0 <= one.wrong_per_task <= one.wrong_per_task_bound <= one.acts:
        yield f"{one.wrong_per_task} wrong acts a task, at most {one.wrong_per_task_bound}"


def _corrupt(why: str) -> ArtifactCorruptError:
    return ArtifactCorruptError(f"not a sound .reflex file: {why}; learn it again")
