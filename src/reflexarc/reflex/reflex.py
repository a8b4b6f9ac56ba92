"""System 1 for one agent: load it, show it a conversation, get a decision."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import xxhash

from reflexarc.reflex.artifact import pack, read_artifact, unpack, write_atomic
from reflexarc.reflex.candidates import CONSTANT, Candidate
from reflexarc.reflex.card import Card, Certificate
from reflexarc.reflex.choice_stored import choice_arrays, stored_choice
from reflexarc.reflex.confidence import confidence_features
from reflexarc.reflex.context import Context
from reflexarc.reflex.decision import Decision, Guarantee, ProposedCall, Source
from reflexarc.reflex.effects import DECLARED
from reflexarc.reflex.familiarity import Familiarity
from reflexarc.reflex.header import (
    FOREST_ARRAYS,
    FORESTS,
    KNOWN_LOOKS,
    LEAST_THRESHOLD,
    PARTIAL_FOREST,
    Header,
    check_forests,
    checked_header,
    familiarity_of,
    forest_names,
)
from reflexarc.reflex.identity import Identity
from reflexarc.reflex.partial import open_arguments, propose
from reflexarc.reflex.predictor import Predictor, RankedCall, Ranking
from reflexarc.reflex.sources import Sources
from reflexarc.reflex.trees import Forest
from reflexarc.steps import Effect, Message, ToolSpec
from reflexarc.steps.errors import ArtifactError
from reflexarc.wire.offered import Tools, tools_given

MAX_ALTERNATIVES = 16


def task_hash(task: str) -> str:
    """What an artifact keeps of a task's name: enough to recognise it, not to tell it."""
    return xxhash.xxh3_64_hexdigest(task.encode("utf-8", "surrogatepass"))


class Reflex:
    """What was learned for one agent. Immutable; safe to use from several threads."""

    def __init__(
        self,
        card: Card,
        identity: Identity,
        effects: dict[str, Effect],
        predictor: Predictor,
        confidence: Forest,
        learned_tasks: frozenset[str],
        familiarity: Familiarity,
        partial: Forest | None = None,
    ) -> None:
        """`learn` and `from_bytes` make one. `learned_tasks` are hashes, see `learned_from`;
        `familiarity` tells contexts unlike those learned from; `partial` is the confidence of
        partial decisions, None where none were learned."""
        self.card = card
        self.identity = identity
        self.effects = effects
        self.predictor = predictor
        self.confidence = confidence
        self.familiarity = familiarity
        self.partial = partial
        self._learned_tasks = learned_tasks
        self._labelled = frozenset(
            row.name for row in card.tools if row.effect == "read" and row.why == DECLARED
        )

    @classmethod
    def load(cls, path: str | Path) -> "Reflex":
        """Read an artifact. Nothing in it is executed. Raises an ArtifactError that says what is
        wrong with the file."""
        return cls.from_bytes(read_artifact(path))

    @classmethod
    def from_bytes(cls, data: bytes) -> "Reflex":
        """The inverse of `to_bytes`; raises an ArtifactError on anything else."""
        raw, arrays = unpack(data)
        header = checked_header(raw, list(arrays))
        forests = {
            name: Forest.from_arrays({key: arrays[f"{name}.{key}"] for key in FOREST_ARRAYS})
            for name in forest_names(arrays)
        }
        check_forests(header, forests)
        predictor = Predictor(
            Sources(header.tools), header.vocabulary, forests["tools"], forests["arguments"],
            stored_choice([tool.name for tool in header.tools], arrays, forests["choice"]),
        )  # fmt: skip
        return cls(
            header.card,
            header.identity,
            header.effects,
            predictor,
            forests["confidence"],
            frozenset(header.learned_tasks),
            familiarity_of(header, arrays[KNOWN_LOOKS]),
            forests.get(PARTIAL_FOREST),
        )

    def to_bytes(self) -> bytes:
        """The artifact: equal reflexes give equal bytes."""
        header = Header(
            self.card, self.identity, tuple(sorted(self._learned_tasks)), self.effects,
            self.predictor.sources.tools,
            self.predictor.vocabulary,
            self.familiarity.looks,
        )  # fmt: skip
        choice = self.predictor.choice
        arrays: dict[str, Any] = {KNOWN_LOOKS: self.familiarity.known, **choice_arrays(choice)}
        names = (*FORESTS, PARTIAL_FOREST) if self.partial else FORESTS
        whole = (
            self.predictor.tool_forest, self.predictor.argument_forest, choice.forest,
            self.confidence,
        )  # fmt: skip
        forests = (*whole, self.partial) if self.partial else whole
        for name, forest in zip(names, forests, strict=True):
            arrays.update({f"{name}.{key}": array for key, array in forest.arrays().items()})
        return pack(msgspec.to_builtins(header), arrays)

    def save(self, path: str | Path) -> None:
        """Write the artifact; a reader sees the old file or the whole new one."""
        write_atomic(Path(path), self.to_bytes())

    def with_effects(self, effects: Mapping[str, Effect]) -> "Reflex":
        """The same with effects declared afterwards. A read guessed rightly may be declared one; a
        tool taken for a write when it was learned stays one, since no certificate is about it.
        Raises ArtifactError for that, and for a tool it does not know."""
        for name, effect in effects.items():
            known = self.effects.get(name)
            if known is None:
                raise ArtifactError(
                    f"an effect is declared for {name}, which this reflex does not know; it knows "
                    f"{', '.join(sorted(self.effects))}"
                )
            if effect == "read" and known != "read":
                raise ArtifactError(
                    f"{name} was taken for a {known} when this reflex was learned, and is not "
                    f"certified as a read: learn again with --effect {name}=read"
                )
        rows = tuple(
            msgspec.structs.replace(row, effect=effects[row.name], why=DECLARED)
            if row.name in effects
            else row
            for row in self.card.tools
        )
        return Reflex(
            msgspec.structs.replace(self.card, tools=rows),
            self.identity,
            {**self.effects, **effects},
            self.predictor,
            self.confidence,
            self._learned_tasks,
            self.familiarity,
            self.partial,
        )

    def learned_from(self, task: str) -> bool:
        """Whether a task is one of those learned from: figures on it say nothing about new ones."""
        return task_hash(task) in self._learned_tasks

    def context(self) -> Context:
        """A fresh context: extend it with messages, and keep it while a conversation lasts."""
        return Context()

    def decide(
        self,
        context: Context | Sequence[Message | Mapping[str, Any]],
        tools: Tools | Sequence[ToolSpec | Mapping[str, Any]],
        *,
        model: str | None = None,
        max_error: float | None = None,
        alternatives: int = 0,
        partials: bool = False,
    ) -> Decision:
        """Act or escalate on what comes next.

        Messages and tools may be OpenAI chat objects (dicts). Reading a conversation costs more
        than deciding: keep a `context()` while it lasts, and extend it by what is new.
        `model` names System 2 (None: the caller vouches that it is the one learned from);
        `max_error` is the largest error the caller accepts (default: the one learned for), and
        may be larger than that; `alternatives` how many further ranked calls to return, 16 at most.
        `partials`: where the whole call cannot act, a partial decision may.
        A call that does not fit its tool's schema is never made: `schema:PATH`; nor one of a tool
        that is only guessed to read: `unlabelled`. Raises RequestError with the path of the fault
        where a message or tool has a wrong shape.
        """
        if not isinstance(context, Context):
            messages, context = context, Context()
            context.extend(messages)
        offered = tools_given(tools)
        if offered.refusal is not None and offered.refusal.startswith("tool_type:"):
            return Decision("escalate", offered.refusal)
        specs = offered.specs
        ranking = self.predictor.rank(context, {tool.name for tool in specs})
        decision = self.judge(
            context, ranking, specs, model=model, max_error=max_error, alternatives=alternatives
        )
        if decision.call is None:
            return decision
        if decision.action == "act":
            reason = self.unlabelled(decision.call.name, specs)
            fault = offered.fault(decision.call.name, decision.call.arguments)
            if reason is None and fault is not None:
                reason = f"schema:{fault[0]}"
            if reason is None:
                return decision
            return msgspec.structs.replace(
                decision, action="escalate", reason=reason, guarantee=None
            )
        if partials and decision.confidence < LEAST_THRESHOLD:
            found = self._partial(context, ranking, offered, model, max_error)
            if found is not None:
                return msgspec.structs.replace(found, alternatives=decision.alternatives)
        return decision

    def judge(
        self,
        context: Context,
        ranking: Ranking,
        tools: Sequence[ToolSpec],
        *,
        model: str | None = None,
        max_error: float | None = None,
        alternatives: int = 0,
        recorded: bool = True,
    ) -> Decision:
        """The decision on a ranking already made. `recorded` is false only while judging sessions
        that recorded no schemas: then tools are known by name alone."""
        if not ranking.calls:
            return Decision("escalate", "no_candidate")
        confidence = self.confidence_of(context, ranking)
        best = ranking.calls[0]
        call = _proposed(best, confidence)
        others = tuple(
            _proposed(other, min(confidence, other.joint))
            for other in ranking.calls[1 : 1 + min(alternatives, MAX_ALTERNATIVES)]
        )
        certificate = self.certificate(max_error)
        reason = self._obstacle(context, best, tools, model, recorded)
        if reason is None:
            if certificate is None or certificate.threshold is None:
                reason = "no_certificate"
            elif confidence < certificate.threshold:
                reason = "free_text" if ranking.verdict is None else "below_threshold"
        if reason is not None or certificate is None:
            return Decision("escalate", reason or "no_certificate", call, confidence, None, others)
        return Decision("act", "certified", call, confidence, _guarantee(certificate), others)

    def _partial(
        self,
        context: Context,
        ranking: Ranking,
        tools: Tools,
        model: str | None,
        max_error: float | None,
    ) -> Decision | None:
        """The partial decision where one is certified; None where the whole one stands."""
        certificate = _loosest(
            self.card.partial, self.card.max_error if max_error is None else max_error
        )
        if self.partial is None or certificate is None or certificate.threshold is None:
            return None
        partial = propose(self.predictor, context, ranking)
        if partial is None:
            return None
        features = confidence_features(context, partial)
        confidence = float(self.partial.probabilities(features)[0, 0])
        if confidence < certificate.threshold:
            return None
        best = partial.calls[0]
        left_open = open_arguments(self.predictor.sources.by_name[best.name])
        if self._obstacle(context, best, tools.specs, model, recorded=True) is not None:
            return None
        if self.unlabelled(best.name, tools.specs) is not None:
            return None
        if tools.fault(best.name, best.arguments, left_open) is not None:
            return None
        return Decision(
            "partial", "certified", _proposed(best, confidence), confidence,
            _guarantee(certificate), open=tuple(sorted(left_open)),
        )  # fmt: skip

    def unlabelled(self, name: str, tools: Sequence[ToolSpec]) -> str | None:
        """A guess that a tool only reads is for people to look at; what acts was declared a read,
        when it was learned or by the request's own annotation."""
        declared = any(tool.name == name and tool.effect == "read" for tool in tools)
        return None if declared or name in self._labelled else "unlabelled"

    def confidence_of(self, context: Context, ranking: Ranking) -> float:
        """The calibrated probability that the best-ranked call is what System 2 does next."""
        features = confidence_features(context, ranking)
        return float(self.confidence.probabilities(features)[0, 0])

    def certificate(self, max_error: float | None = None) -> Certificate | None:
        """The loosest certificate that is still within `max_error`; None where there is none."""
        limit = self.card.max_error if max_error is None else max_error
        return _loosest(self.card.certificates, limit)

    def _obstacle(
        self,
        context: Context,
        best: RankedCall,
        tools: Sequence[ToolSpec],
        model: str | None,
        recorded: bool,
    ) -> str | None:
        """Why this call may not be made, however sure System 1 is of it: the first obstacle."""
        return next(self.obstacles(context, best, tools, model, recorded), None)

    def obstacles(
        self,
        context: Context,
        best: RankedCall,
        tools: Sequence[ToolSpec],
        model: str | None,
        recorded: bool,
    ) -> Iterator[str]:
        """Everything that stands against this call, however sure System 1 is of it; the first is
        the reason given."""
        if context.opaque:
            yield "opaque_content"
        if context.unanswered_calls:
            yield "unanswered_calls"
        yield from self.identity.faults(context, tools, model)
        offered = [tool for tool in tools if tool.name == best.name]
        if not offered:
            yield "unseen_tools"
        if self.effects.get(best.name, "write") != "read" or any(
            tool.effect not in (None, "read") for tool in offered
        ):
            yield "side_effect"
        # Also a tool that is not called: with new words it may be what System 2 would take now.
        if recorded and not all(self.identity.schema_fits(tool) for tool in tools):
            yield "schema_changed"
        fault = self.familiarity.fault(context)
        if fault is not None:
            yield fault


def _loosest(certificates: Sequence[Certificate], limit: float) -> Certificate | None:
    fitting = [one for one in certificates if one.threshold is not None and one.max_error <= limit]
    return max(fitting, key=lambda one: one.max_error, default=None)


def _guarantee(certificate: Certificate) -> Guarantee:
    return Guarantee(
        certificate.max_error, certificate.confidence_level, certificate.scope,
        certificate.n, certificate.errors,
    )  # fmt: skip


def _proposed(call: RankedCall, confidence: float) -> ProposedCall:
    sources = {
        name: source_of(candidate)
        for name, candidate in call.chosen.items()
        if name in call.arguments
    }
    return ProposedCall(call.name, call.arguments, round(confidence, 6), sources)


def source_of(candidate: Candidate) -> Source:
    """Where a candidate's value comes from, in the words of an answer."""
    if candidate.objects is not None:
        return Source(
            "tool_result", candidate.objects.origin.message, _path(candidate.objects.path)
        )
    if candidate.made == CONSTANT or not candidate.entries:
        return Source("constant")
    entry = candidate.entries[-1]
    return Source(entry.origin.kind, entry.origin.message, _path(entry.slot))


def _path(slot: str) -> str:
    """What a slot says without its kind and tool: a JSON path in a result, a line's name, a shape,
    the argument of an earlier call."""
    kind, _, place = slot.partition(":")
    if kind == "out":
        return f"${place.partition(':')[2]}"
    return place.partition(":")[2] if kind in ("kv", "tx") else place
