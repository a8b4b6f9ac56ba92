"""System 1 for one agent: load it, show it a conversation, get a decision."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec
import xxhash

from reflexarc.reflex.artifact import pack, read_artifact, unpack, write_atomic
from reflexarc.reflex.card import Card, Certificate
from reflexarc.reflex.confidence import confidence_features
from reflexarc.reflex.context import Context
from reflexarc.reflex.decision import Decision
from reflexarc.reflex.effects import DECLARED
from reflexarc.reflex.grounds import Ground, Grounds
from reflexarc.reflex.header import (
    LEAST_THRESHOLD,
    Header,
    checked_header,
    member_arrays,
    member_header,
    members_of,
    recall_of,
)
from reflexarc.reflex.identity import Identity
from reflexarc.reflex.member import Answer, Member, drawn
from reflexarc.reflex.partial import SCOPE as PARTIAL
from reflexarc.reflex.partial import open_arguments, propose
from reflexarc.reflex.predictor import RankedCall, Ranking
from reflexarc.reflex.proposing import guarantee_of, proposed
from reflexarc.reflex.recall import Recall
from reflexarc.reflex.recalling import remembered
from reflexarc.reflex.scopes import Granted
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
        members: Sequence[Member],
        learned_tasks: frozenset[str],
        recall: Recall,
        turned: frozenset[str] = frozenset(),
    ) -> None:
        """`learn` and `from_bytes` make one. `learned_tasks` are hashes, see `learned_from`;
        `recall` is the memory of whole situations; `turned` names tools declared to write only
        after they had been judged as reads: no certificate of writes is about them."""
        self.card = card
        self.identity = identity
        self.effects = effects
        self.members = tuple(members)
        self.recall = recall
        self.grounds = Grounds(card, effects)
        self._granted_partial = Granted(card.partial, card.certificate_class)
        self._turned = turned
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
        return cls(
            header.card,
            header.identity,
            header.effects,
            members_of(header, arrays),
            frozenset(header.learned_tasks),
            recall_of(header, arrays),
        )

    def to_bytes(self) -> bytes:
        """The artifact: equal reflexes give equal bytes."""
        tools, arguments, arrays = self.recall.arrays()
        header = Header(
            self.card, self.identity, tuple(sorted(self._learned_tasks)), self.effects,
            tuple(member_header(member) for member in self.members),
            tools,
            arguments,
        )  # fmt: skip
        arrays = {f"recall.{name}": array for name, array in arrays.items()}
        for at, member in enumerate(self.members):
            arrays.update(member_arrays(at, member))
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
            self.members,
            self._learned_tasks,
            self.recall,
            self._turned | {name for name in effects if self.effects[name] == "read"},
        )

    def learned_from(self, task: str) -> bool:
        """Whether a task is one of those learned from: figures on it say nothing about new ones."""
        return task_hash(task) in self._learned_tasks

    def context(self) -> Context:
        """A fresh context: extend it with messages, and keep it while a conversation lasts."""
        return Context()

    def member(self, context: Context) -> Member:
        """The one that answers this conversation, from first to last."""
        return drawn(self.members, context)

    def rank(self, context: Context, offered: Collection[str]) -> Ranking:
        """The calls that may come next, best first; what earlier runs of the very situation did
        comes before everything."""
        asked = (context.event, context.length, frozenset(offered))
        if context.remembered is not None and context.remembered[:2] == (self, asked):
            return cast(Ranking, context.remembered[2])
        predictor = self.member(context).predictor
        ranking = predictor.rank(context, offered)
        ranking = remembered(predictor, context, ranking, self.recall.find(context), offered)
        context.remembered = (self, asked, ranking)
        return ranking

    def rank_among(
        self, context: Context, ranking: Ranking, offered: Collection[str]
    ) -> list[RankedCall]:
        """What `rank` gives with fewer tools offered, for a ranking just made in this context."""
        among = self.member(context).predictor.rank_among(context, ranking, offered)
        first = ranking.best
        if ranking.recalled is None or first is None or first.name not in offered:
            return among
        return [first, *(call for call in among if call.key != first.key)]

    def decide(
        self,
        context: Context | Sequence[Message | Mapping[str, Any]],
        tools: Tools | Sequence[ToolSpec | Mapping[str, Any]],
        *,
        model: str | None = None,
        max_error: float | None = None,
        alternatives: int = 0,
        partials: bool = False,
        writes: Collection[str] = (),
        proposing: bool = True,
    ) -> Decision:
        """Act or escalate on what comes next.

        Messages and tools may be OpenAI chat objects (dicts). Reading a conversation costs more
        than deciding: keep a `context()` while it lasts, and extend it by what is new.
        `model` names System 2 (None: the caller vouches that it is the one learned from);
        `max_error` is the largest error the caller accepts (default: the one learned for), and
        may be larger than that; `alternatives` how many further ranked calls to return, 16 at most.
        `partials`: where the whole call cannot act, a partial decision may. `writes` names the
        tools that may act though they write, under certificates of writes; who allows that and
        answers for it is the caller's matter. `proposing`: an escalation carries the call that
        would have been made; without, none is looked for where none could act, which is faster.
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
        ranking = self.rank(context, {tool.name for tool in specs})
        decision = self.judge(
            context, ranking, specs, model=model, max_error=max_error, alternatives=alternatives,
            writes=writes, proposing=proposing or bool(partials and self.card.partial),
        )  # fmt: skip
        if decision.call is None:
            return decision
        if decision.action == "act":
            for call in decision.calls:
                reason = None if call.name in writes else self.unlabelled(call.name, specs)
                fault = offered.fault(call.name, call.arguments)
                if reason is None and fault is not None:
                    reason = f"schema:{fault[0]}"
                if reason is not None:
                    return msgspec.structs.replace(
                        decision, action="escalate", reason=reason, guarantee=None
                    )
            return decision
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
        writes: Collection[str] = (),
        proposing: bool = True,
    ) -> Decision:
        """The decision on a ranking already made. `recorded` is false only while judging sessions
        that recorded no schemas: then tools are known by name alone. `writes` and `proposing`: see
        `decide`."""
        if not alternatives:
            hopeless = None if proposing else self.grounds.beyond(ranking, max_error, writes)
            if hopeless or ranking.is_message:
                found = next(self.obstacles(context, (), tools, model, recorded, writes), None)
                otherwise = "recalled_otherwise" if ranking.contradicted else None
                return Decision("escalate", found or otherwise or hopeless or "free_text")
        if ranking.best is None:
            return Decision("escalate", "no_candidate")
        ground = self.ground(context, ranking, {tool.name for tool in tools}, max_error, writes)
        calls, confidence = ground.answer.calls, ground.answer.confidence
        call, *rest = [proposed(one, confidence) for one in calls]
        further = ranking.calls[1 : 1 + min(alternatives, MAX_ALTERNATIVES)] if alternatives else ()
        ranked = tuple(proposed(other, min(confidence, other.joint)) for other in further)
        reason = next(self.obstacles(context, calls, tools, model, recorded, writes), None)
        if reason is None and ranking.contradicted:
            reason = "recalled_otherwise"
        if reason is None and ranking.is_message:
            reason = "free_text"  # no certificate was judged on calls that are not proposed
        if reason is None and ground.certificate is None:
            reason = "no_certificate"
        elif reason is None and not ground.holds:
            reason = "free_text" if ranking.verdict is None else "below_threshold"
        # Asked last, of what would act: to look at every message costs more than the rest.
        reason = reason or self.unfamiliar(context)
        guarantee = guarantee_of(ground.certificate) if ground.certificate else None
        return Decision(
            "escalate" if reason else "act", reason or "certified", call, confidence,
            None if reason else guarantee, ranked, scope=ground.scope, others=tuple(rest),
        )  # fmt: skip

    def _partial(
        self,
        context: Context,
        ranking: Ranking,
        tools: Tools,
        model: str | None,
        max_error: float | None,
    ) -> Decision | None:
        """The partial decision where one is certified; None where the whole one stands."""
        certificate = self._granted_partial.within(
            PARTIAL, self.card.max_error if max_error is None else max_error
        )
        member = self.member(context)
        if member.partial is None or certificate is None or certificate.threshold is None:
            return None
        partial = propose(member.predictor, context, ranking)
        if partial is None:
            return None
        features = confidence_features(context, partial)
        confidence = float(member.partial.probabilities(features)[0, 0])
        if confidence < certificate.threshold:
            return None
        best = partial.calls[0]
        left_open = open_arguments(member.predictor.sources.by_name[best.name])
        if any(self.obstacles(context, [best], tools.specs, model, recorded=True)):
            return None
        if self.unfamiliar(context) is not None:
            return None
        if self.unlabelled(best.name, tools.specs) is not None:
            return None
        if tools.fault(best.name, best.arguments, left_open) is not None:
            return None
        return Decision(
            "partial", "certified", proposed(best, confidence), confidence,
            guarantee_of(certificate), open=tuple(sorted(left_open)),
        )  # fmt: skip

    def _acts_by(self, name: str, offered: Sequence[ToolSpec], writes: Collection[str]) -> bool:
        """Whether a tool's effect lets it act: one that reads for all that is known; or one that
        was judged as a write, and may."""
        effect = self.effects.get(name, "write")
        if name in writes:
            return effect == "write" and name not in self._turned
        return effect == "read" and all(tool.effect in (None, "read") for tool in offered)

    def unlabelled(self, name: str, tools: Sequence[ToolSpec]) -> str | None:
        """A guess that a tool only reads is for people to look at; what acts was declared a read,
        when it was learned or by the request's own annotation."""
        declared = any(tool.name == name and tool.effect == "read" for tool in tools)
        return None if declared or name in self._labelled else "unlabelled"

    def answer(self, context: Context, ranking: Ranking, offered: Collection[str]) -> Answer:
        """What would be answered, one call or several at once, for a ranking of calls to tools that
        are offered."""
        if ranking.answer is None:
            parts = self.card.parts
            ranking.answer = self.member(context).answer(context, ranking, offered, parts=parts)
        return cast(Answer, ranking.answer)

    def ground(
        self,
        context: Context,
        ranking: Ranking,
        offered: Collection[str],
        max_error: float | None = None,
        writes: Collection[str] = (),
    ) -> Ground:
        """On what the best-ranked call would be made, and under which certificate."""
        return self.grounds.find(
            ranking, lambda one: self.answer(context, one, offered), max_error, writes
        )

    def certificate(
        self, max_error: float | None = None, scope: str = "reads"
    ) -> Certificate | None:
        """The loosest certificate of a scope within `max_error` (None: the error learned for), of
        the class that acts; None where there is none."""
        return self.grounds.certificate(max_error, scope)

    def certified(self, max_error: float | None = None) -> tuple[Certificate, ...]:
        """The loosest certificate within `max_error` of every scope of reads that has one."""
        scopes = dict.fromkeys(one.scope for one in self.card.reads)
        found = (self.certificate(max_error, scope) for scope in scopes)
        return tuple(one for one in found if one is not None)

    def obstacles(
        self,
        context: Context,
        calls: Sequence[RankedCall],
        tools: Sequence[ToolSpec],
        model: str | None,
        recorded: bool,
        writes: Collection[str] = (),
    ) -> Iterator[str]:
        """What stands against these calls (none: against any), however sure System 1 is of them;
        the first is the reason given. What is `unfamiliar` is asked after how sure it is."""
        if context.opaque:
            yield "opaque_content"
        if context.unanswered_calls:
            yield "unanswered_calls"
        yield from self.identity.faults(context, tools, model)
        for name in dict.fromkeys(call.name for call in calls):
            offered = [tool for tool in tools if tool.name == name]
            if not offered:
                yield "unseen_tools"
            if not self._acts_by(name, offered, writes):
                yield "side_effect"
        # Also a tool that is not called: with new words it may be what System 2 would take now.
        if recorded and not all(self.identity.schema_fits(tool) for tool in tools):
            yield "schema_changed"

    def unfamiliar(self, context: Context) -> str | None:
        """What of the conversation looks unlike what was learned from, if anything does."""
        return self.member(context).familiarity.fault(context)
