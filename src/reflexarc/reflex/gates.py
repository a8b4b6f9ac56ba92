"""Everything a call has to pass before it may be made, gate by gate, and how near it came.

A decision names the first obstacle; here all of them are looked at, with what would have to be
otherwise. The gates are those of `Reflex.judge` and `Reflex.decide`, asked in their order.
"""

from collections.abc import Sequence

import msgspec

from reflexarc.reflex.card import Certificate
from reflexarc.reflex.context import Context
from reflexarc.reflex.grounds import Ground
from reflexarc.reflex.ranking import SURE_OF_A_MESSAGE, RankedCall, Ranking
from reflexarc.reflex.reach import least_tool_probability
from reflexarc.reflex.reflex import Reflex
from reflexarc.steps import ToolSpec
from reflexarc.wire.offered import tools_given


class Gate(msgspec.Struct, frozen=True):
    """One question. `reason` is what an escalation here is called, None where it passed; `remedy`
    what would have to be otherwise to pass (where it passed: None)."""

    asks: str
    passed: bool
    reason: str | None = None
    remedy: str | None = None


class LevelDistance(msgspec.Struct, frozen=True):
    """One error level: the confidence it needs (None: not certified, about `missing` right answers
    more would be needed), `short` how much confidence lacks for it (negative: to spare), and
    whether the call would act under it if nothing else stood against it."""

    max_error: float
    scope: str
    threshold: float | None
    short: float | None
    missing: int
    enough: bool


_OBSTACLES = (
    ("is all of the conversation text?", ("opaque_content",)),
    ("has every call its result?", ("unanswered_calls",)),
    ("is System 2 the model learned from?", ("model_changed",)),
    ("is the prompt the one learned from?", ("prompt_changed",)),
    ("are all tools offered known, and the call's among them?", ("unseen_tools",)),
    ("does the call only read?", ("side_effect",)),
    ("have the tools the schemas learned from?", ("schema_changed",)),
)


def gates(
    reflex: Reflex,
    context: Context,
    ranking: Ranking,
    tools: Sequence[ToolSpec],
    *,
    model: str | None,
    max_error: float | None,
    recorded: bool,
) -> tuple[Gate, ...]:
    """Every gate for the best-ranked call, in the order in which a decision asks. `recorded` is
    false where no schemas were recorded: then schemas and declarations are not asked about."""
    if ranking.is_message:
        against = list(reflex.obstacles(context, (), tools, model, recorded))
        likelier = Gate(
            "is a message no likelier than all calls together?", False, "free_text",
            f"a message has probability {ranking.message_probability:.2f}: under "
            f"{SURE_OF_A_MESSAGE:g} a call would be looked for",
        )  # fmt: skip
        familiar = _familiar(reflex, context)
        return (*_met(against, reflex, context, None, tools, model), likelier, familiar)
    if not ranking.calls:
        return (
            Gate(
                "can any call be proposed?", False, "no_candidate",
                "one of the tools learned would have to be offered and likely",
            ),
        )  # fmt: skip
    ground = reflex.ground(context, ranking, {tool.name for tool in tools}, max_error)
    answer = ground.answer
    found = list(reflex.obstacles(context, answer.calls, tools, model, recorded))
    asked = [Gate("can any call be proposed?", True)]
    asked += _met(found, reflex, context, _against(reflex, answer.calls, tools), tools, model)
    otherwise = ranking.contradicted
    asked.append(
        Gate(
            "do earlier runs of this very situation not speak against it?", not otherwise,
            "recalled_otherwise" if otherwise else None,
            "most of those runs did something else" if otherwise else None,
        )
    )  # fmt: skip
    asked += _sure_enough(reflex, ground, max_error)
    asked.append(_familiar(reflex, context))
    if recorded:
        asked += _as_a_request(reflex, answer.calls, tools)
    return tuple(asked)


def _against(reflex: Reflex, calls: Sequence[RankedCall], tools: Sequence[ToolSpec]) -> str:
    """The first tool of a batch that stands against it, else the first."""
    names = [call.name for call in calls]
    offered = {tool.name: tool.effect for tool in tools}
    for name in names:
        if reflex.effects.get(name) != "read" or offered.get(name, "write") not in (None, "read"):
            return name
    return names[0]


def _met(
    found: Sequence[str],
    reflex: Reflex,
    context: Context,
    name: str | None,
    tools: Sequence[ToolSpec],
    model: str | None,
) -> list[Gate]:
    """The obstacles as gates; `name`: the tool that would be called."""
    asked: list[Gate] = []
    for asks, reasons in _OBSTACLES:
        met = next((reason for reason in found if reason in reasons), None)
        remedy = _remedy(met, reflex, context, name or "", tools, model) if met else None
        asked.append(Gate(asks, met is None, met, remedy))
    known = {reason for _, reasons in _OBSTACLES for reason in reasons}
    asked += [Gate("does anything else stand against it?", False, one) for one in found
              if one not in known]  # fmt: skip
    return asked


def _familiar(reflex: Reflex, context: Context) -> Gate:
    reason = reflex.unfamiliar(context)
    remedy = None if reason is None else _unlike(context)
    return Gate("do the messages look like those learned from?", reason is None, reason, remedy)


def held_for(reflex: Reflex, ranking: Ranking, calls: Sequence[RankedCall]) -> list[Certificate]:
    """The certificates, granted or not, under which these calls would be made together."""
    scope = reflex.grounds.scope_of(ranking, [call.name for call in calls]) if calls else ""
    return [one for one in reflex.card.acting if one.scope == scope]


def distances(
    reflex: Reflex, ranking: Ranking, calls: Sequence[RankedCall], confidence: float
) -> tuple[LevelDistance, ...]:
    """How far a confidence in calls is from each level of error of their scope, the tightest
    first."""
    return tuple(
        LevelDistance(
            max_error=one.max_error,
            scope=one.scope,
            threshold=one.threshold,
            short=None if one.threshold is None else round(one.threshold - confidence, 6),
            missing=one.missing,
            enough=one.threshold is not None and confidence >= one.threshold,
        )
        for one in sorted(held_for(reflex, ranking, calls), key=lambda one: one.max_error)
    )


def _sure_enough(reflex: Reflex, ground: Ground, max_error: float | None) -> list[Gate]:
    limit = reflex.card.max_error if max_error is None else max_error
    level = f"{100 * limit:g}%"
    certified, sure = f"is an error of at most {level} certified?", "is it sure enough?"
    ranking, answer, certificate = ground.ranking, ground.answer, ground.certificate
    if certificate is None or certificate.threshold is None:
        remedy = _uncertified(held_for(reflex, ranking, answer.calls), limit)
        return [Gate(certified, False, "no_certificate", remedy)]
    confidence = answer.confidence
    if ground.holds:
        return [Gate(certified, True), Gate(sure, True)]
    if not ground.within_reach:
        likely = least_tool_probability(reflex.card.reach, limit)
        reason = "free_text" if ranking.verdict is None else "below_threshold"
        unlikely = (
            f"the likeliest tool has probability {ranking.tool_probability:.3f}: of what was "
            f"certified, none had less than {likely:.3f}"
        )
        return [Gate(certified, True), Gate(sure, False, reason, unlikely)]
    lacks = (
        f"its confidence, {confidence:.3f}, would have to be {certificate.threshold:.3f}: "
        f"{certificate.threshold - confidence:.3f} more"
    )
    if ranking.verdict is None:
        lacks += f"; a message is likelier (probability {ranking.message_probability:.2f})"
        return [Gate(certified, True), Gate(sure, False, "free_text", lacks)]
    return [Gate(certified, True), Gate(sure, False, "below_threshold", lacks)]


def _uncertified(certificates: Sequence[Certificate], limit: float) -> str:
    within = [one for one in certificates if one.max_error <= limit]
    if not within:
        return f"no certificate is about errors of at most {100 * limit:g}%"
    missing = min(one.missing for one in within)
    if not missing:
        return "nothing may be certified from what was learned: see the card's `results`"
    return f"about {missing} further right answers of its kind would have to be learned from"


def _as_a_request(
    reflex: Reflex, calls: Sequence[RankedCall], tools: Sequence[ToolSpec]
) -> list[Gate]:
    """What a request is asked beyond what a recorded session is judged by: of several calls, the
    first that fails, else the first of all."""
    asked = [_of_a_call(reflex, call.name, call.arguments, tools) for call in calls]
    return next((one for one in asked if not all(gate.passed for gate in one)), asked[0])


def _of_a_call(
    reflex: Reflex, name: str, arguments: dict[str, object], tools: Sequence[ToolSpec]
) -> list[Gate]:
    reason = reflex.unlabelled(name, tools)
    declared = Gate(
        "was the tool declared to only read?", reason is None, reason,
        None if reason is None
        else f"declare it: `learn --effect {name}=read`, or annotate the tool with readOnlyHint",
    )  # fmt: skip
    if name not in {tool.name for tool in tools}:
        return [declared]
    fault = tools_given(tools).fault(name, arguments)
    fits = Gate(
        "do the arguments fit the tool's schema?", fault is None,
        None if fault is None else f"schema:{fault[0]}", None if fault is None else str(fault[1]),
    )  # fmt: skip
    return [declared, fits]


def _remedy(
    reason: str,
    reflex: Reflex,
    context: Context,
    name: str,
    tools: Sequence[ToolSpec],
    model: str | None,
) -> str:
    match reason:
        case "opaque_content":
            return "no image, refusal or signed thinking may stand in it"
        case "unanswered_calls":
            return f"results of {context.unanswered_calls} calls are still out"
        case "model_changed":
            return f"it is {model}; learned from: {', '.join(reflex.identity.models)}"
        case "prompt_changed":
            return "its lines are not those learned from: learn from sessions under this prompt"
        case "unseen_tools":
            return _unseen(reflex, name, tools)
        case "side_effect":
            return _why_a_write(reflex, name)
        case _:
            changed = [tool.name for tool in tools if not reflex.identity.schema_fits(tool)]
            return f"changed: {', '.join(changed)}; learn from sessions with these schemas"


def _unseen(reflex: Reflex, name: str, tools: Sequence[ToolSpec]) -> str:
    names = [tool.name for tool in tools]
    unknown = sorted(set(names) - reflex.identity.schemas.keys())
    twice = sorted({one for one in names if names.count(one) > 1})
    said = [f"not known: {', '.join(unknown)}"] if unknown else []
    said += [f"offered twice: {', '.join(twice)}"] if twice else []
    said += [f"not offered: {name}"] if name not in names else []
    return "; ".join(said)


def _why_a_write(reflex: Reflex, name: str) -> str:
    why = next((row.why for row in reflex.card.tools if row.name == name), "")
    kind = reflex.effects.get(name, "write")
    if kind == "read":
        return f"the request declares {name} to write"
    because = f" ({why})" if why else ""
    return f"{name} is taken for a {kind}{because}; a read is declared with --effect {name}=read"


def _unlike(context: Context) -> str:
    at = context.memo.read - 1
    of = context.seen[at].tool if 0 <= at < len(context.seen) else ""
    return f"the first that does not is {f'a result of {of}' if of else 'a message of the user'}"
