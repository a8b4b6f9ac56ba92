"""System 1's side of the gateway: a request's bytes in, a decision out. Runs in its own process.

One `Decider` holds the reflexes and everything that is remembered between requests. It may raise
where a reflex does: its caller turns that into an escalation.
"""

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Protocol

import msgspec

from reflexarc.gateway.act_answers import act_answer
from reflexarc.gateway.admission import Admission
from reflexarc.gateway.asked import Requests
from reflexarc.gateway.conversations import Conversation, Conversations, ReflexLike, TooLongError
from reflexarc.gateway.frames import Decide, Decided, Observe, Observed, Setup
from reflexarc.gateway.observing import Observing
from reflexarc.lifecycle.changes import CHANGED
from reflexarc.lifecycle.standing import is_of_writes
from reflexarc.reflex.decision import Decision
from reflexarc.reflex.scopes import pool_name
from reflexarc.steps import call_key
from reflexarc.steps.errors import MalformedError, RequestError
from reflexarc.wire.chat_answer import ActedTurn, estimated_tokens
from reflexarc.wire.dialect import Where
from reflexarc.wire.offered import ToolReader, Tools
from reflexarc.wire.turns import Ask

# A call costs its provider some tokens beyond its text: names of roles, brackets, an end.
_CALL_OVERHEAD_TOKENS = 32


class Loaded(msgspec.Struct, frozen=True):
    """A reflex and the digest of its file: with the request's bytes it makes the call's id."""

    reflex: ReflexLike
    digest: bytes


class Judged(msgspec.Struct, frozen=True):
    """A decision, what of the request an answer needs, and what the decision was made on."""

    decision: Decision
    admission: Admission
    conversation: Conversation | None = None
    tools: Tools | None = None
    session: bytes = b""
    ask: Ask | None = None


class Decider:
    """`clock_s` measures durations, `unix_time` dates answers; both are passed in."""

    def __init__(
        self,
        reflexes: Mapping[str, Loaded],
        setup: Setup,
        clock_s: Callable[[], float],
        unix_time: Callable[[], float],
    ) -> None:
        self.reflexes = reflexes
        self.tools = ToolReader(setup.max_depth)
        self.requests = Requests(self.tools, setup.max_depth)
        self.conversations = Conversations(setup.max_contexts, setup.max_context_bytes)
        self._setup = setup
        self._clock_s = clock_s
        self._unix_time = unix_time
        self._thinking: set[tuple[str, str]] = set()
        self._heard = ""
        self._observing = Observing(reflexes, self.heard)
        self.conversations.moves_on = self._observing.moves_on

    def decide(self, request: Decide, body: bytes) -> tuple[Decided, bytes]:
        """Odd requests escalate with a reason; only a reflex can make this raise."""
        began_s = self._clock_s()
        if request.expires_s and began_s > request.expires_s:
            # The gateway went on without it: working on it would only make the next ones late.
            return Decided(request.id, "escalate", "deadline"), b""
        loaded = self.reflexes[request.reflex]
        judged = self._judged(request, loaded, body)
        decision = judged.decision
        call, calls = decision.call, decision.calls
        acts = decision.action == "act" and call is not None
        decided = Decided(
            id=request.id,
            action=decision.action,
            reason=decision.reason,
            tool=pool_name(one.name for one in calls) if calls else "",
            tools=tuple(dict.fromkeys(one.name for one in calls)),
            confidence=decision.confidence,
            max_error=decision.guarantee.max_error if decision.guarantee else 0.0,
            stream=judged.admission.stream,
            decide_ms=(self._clock_s() - began_s) * 1e3,
            session=judged.session,
            variant=_variant(judged),
        )
        answers = acts and request.respond
        self._observing.remember(
            decided,
            calls if acts else (),
            route=request.reflex,
            model=judged.admission.model,
            # An answer of System 1's own is audited, never judged.
            context=None if answers or judged.conversation is None else judged.conversation.context,
            tools=judged.tools,
        )
        if decision.action == "partial" and call is not None:
            return msgspec.structs.replace(
                decided,
                key=act_key(body, loaded),
                reflex=loaded.digest.hex(),
                call=calls_digest(calls),
                guarantee=decision.guarantee,
                writes=is_write(decision, loaded),
            ), b""
        if call is None or not acts or not request.respond:
            return decided, b""
        turn = ActedTurn(
            key=act_key(body, loaded),
            created_s=int(self._unix_time()),
            model=judged.admission.model,
            calls=tuple((one.name, one.arguments) for one in calls),
            prompt_tokens=estimated_tokens(len(body)),
        )
        decided = msgspec.structs.replace(
            decided,
            key=turn.key,
            reflex=loaded.digest.hex(),
            call=calls_digest(calls),
            guarantee=decision.guarantee,
            writes=is_write(decision, loaded),
            # Of each request anew: what recurs to the byte must not be audited always, or never.
            draw=self._draw(b"audit", f"{turn.key} {request.id}".encode()),
            prompt_tokens=turn.prompt_tokens,
        )
        admission = judged.admission
        return decided, act_answer(
            turn, judged.ask, stream=admission.stream, include_usage=admission.include_usage
        )

    def observe(self, request: Observe, body: bytes) -> Observed | None:
        """Compares what System 2 answered with what System 1 would have done; None where the
        decision is not remembered."""
        self._heard = ""
        observed = self._observing.observe(request, body)
        if observed is not None and self._heard:
            observed = msgspec.structs.replace(observed, thinks=self._heard)
        return observed

    def heard(self, reflex: str, model: str) -> None:
        """System 2 answered with thinking: from now on it may want it back."""
        self._thinking.add((reflex, model))
        self._heard = model

    def _draw(self, what: bytes, of: bytes) -> float:
        """In [0, 1), the same for the same, and not to be foreseen without the secret."""
        digest = hashlib.blake2b(of, key=self._setup.secret[:64], person=what, digest_size=8)
        return int.from_bytes(digest.digest(), "big") / 2**64

    def _named(self, request: Decide, session: bytes) -> bytes:
        """Stands for a session of a tenant, and tells nobody which."""
        key = self._setup.secret[:64]
        return hashlib.blake2b(request.tenant + session, key=key, digest_size=8).digest()

    def _judged(self, request: Decide, loaded: Loaded, body: bytes) -> Judged:
        try:
            where = Where(request.model, request.stream)
            asked = self.requests.read(request.tenant, request.dialect, where, body)
            admission, tools = asked.admission, asked.tools
            if admission.refusal is not None:
                return Judged(Decision("escalate", admission.refusal), admission)
            if admission.reasoning and admission.model not in request.tested:
                return Judged(Decision("escalate", "field:reasoning_effort"), admission)
            if tools is None or tools.refusal is not None:
                refusal = "no_tools" if tools is None else str(tools.refusal)
                return Judged(Decision("escalate", refusal), admission)
            if asked.pieces is None or not len(asked.pieces) or asked.read is None:
                return Judged(Decision("escalate", "field:messages"), admission)
            conversation = self.conversations.take(
                request.tenant, request.reflex, loaded.reflex, asked.pieces, asked.read
            )
        except TooLongError:
            return Judged(Decision("escalate", "too_long"), Admission(None))
        except RequestError as error:
            name = (error.param or "body").split("[")[0].split(".")[0]
            return Judged(Decision("escalate", f"field:{name}"), Admission(None))
        except MalformedError:
            return Judged(Decision("escalate", "malformed_body"), Admission(None))
        decision = self.decision(
            loaded, conversation, tools,
            model=admission.model, max_error=request.max_error, partials=request.partial,
            writes=request.writes,
        )  # fmt: skip
        self.conversations.keep(request.tenant, request.reflex, conversation)
        session = (request.session or "").encode() or conversation.opening
        if decision.action != "escalate":
            reason = self._obstacle(decision, tools, conversation, admission, request.writes)
            if reason is None:
                reason = self._not_here(request, admission, conversation, session)
            if reason is not None:
                decision = msgspec.structs.replace(decision, action="escalate", reason=reason)
        named = self._named(request, session)
        return Judged(decision, admission, conversation, tools, named, asked.ask)

    def decision(
        self,
        loaded: Loaded,
        conversation: Conversation,
        tools: Tools,
        *,
        model: str | None,
        max_error: float,
        alternatives: int = 0,
        partials: bool = False,
        writes: Collection[str] = (),
        proposing: bool = False,
    ) -> Decision:
        """The reflex's own, for a conversation in which it is System 2's turn. `proposing`: an
        escalation carries the call that would have been made, which only who asked for decisions
        alone gets to see."""
        if conversation.last_role not in ("user", "tool"):
            # An answer that System 2 is to go on with, or calls nobody has answered yet.
            return Decision("escalate", "field:messages")
        return loaded.reflex.decide(
            conversation.context,
            tools,
            model=model,
            max_error=max_error,
            alternatives=alternatives,
            partials=partials,
            writes=writes,
            proposing=proposing,
        )

    def obstacle(
        self,
        decision: Decision,
        tools: Tools,
        conversation: Conversation,
        writes: Collection[str] = (),
    ) -> str | None:
        """Why the calls a reflex would make are not made by anyone, were they to fit their schemas;
        `writes` names the tools whose writes may be."""
        if decision.call is None:
            return "no_candidate"
        for call in decision.calls:
            spec = tools.get(call.name)
            if spec is None:
                return "unseen_tools"
            if spec.effect == "think" or (spec.effect == "write" and call.name not in writes):
                return "side_effect"
        if conversation.acts_in_a_row >= self._setup.max_consecutive_acts:
            return "act_cap"
        return None

    def _obstacle(
        self,
        decision: Decision,
        tools: Tools,
        conversation: Conversation,
        admission: Admission,
        writes: Collection[str],
    ) -> str | None:
        """Why a chat request is not answered with the calls the reflex would make."""
        reason = self.obstacle(decision, tools, conversation, writes)
        if reason is not None:
            return reason
        if len(decision.calls) > 1 and not admission.parallel:
            return "field:parallel_tool_calls"
        most = 0
        for call in decision.calls:
            fault = tools.fault(call.name, call.arguments, frozenset(decision.open))
            if fault is not None:
                return f"schema:{fault[0]}"
            # A token holds at least one byte, so this many are always enough.
            most += len(msgspec.json.encode(call.arguments)) + len(call.name)
            most += _CALL_OVERHEAD_TOKENS
        limit = admission.max_tokens
        if limit is not None and decision.action == "act" and limit < most:
            return "field:max_tokens"
        return None

    def _not_here(
        self, request: Decide, admission: Admission, conversation: Conversation, session: bytes
    ) -> str | None:
        """Why a call that could be made is left to System 2 on this route, in this session."""
        thinks = (
            conversation.thinking
            or admission.model in request.thinking
            or (request.reflex, admission.model) in self._thinking
        )
        if thinks and admission.model not in request.tested:
            # A turn of System 1 holds no thinking, and none is ever made up.
            return "thinking"
        if request.canary < 1 and self._draw(b"canary", request.tenant + session) >= request.canary:
            return "canary"
        return None


def _variant(judged: Judged) -> bytes:
    """Stands for what is not as it was learned, where that is why it escalates."""
    reason = judged.decision.reason
    if reason not in CHANGED or judged.conversation is None or judged.tools is None:
        return b""
    parts = {
        "prompt_changed": [str(getattr(judged.conversation.context, "prompt_hash", ""))],
        "model_changed": [judged.admission.model],
        "schema_changed": sorted(f"{one.name} {one.schema_hash}" for one in judged.tools.specs),
    }
    text = msgspec.json.encode([reason, parts[reason]])
    return hashlib.blake2b(text, digest_size=8).digest()


def is_write(decision: Decision, loaded: Loaded) -> bool:
    """Whether what would act is more than reads, by its certificate or by what is known of its
    tools."""
    scope = decision.guarantee.scope if decision.guarantee is not None else ""
    effects: Mapping[str, str] = getattr(loaded.reflex, "effects", {})
    return is_of_writes(scope) or any(
        effects.get(call.name, "read") != "read" for call in decision.calls
    )


class Named(Protocol):
    """A call by its name and arguments."""

    @property
    def name(self) -> str: ...
    @property
    def arguments(self) -> dict[str, Any]: ...


def calls_digest(calls: Iterable[Named]) -> str:
    """What the trail keeps of the calls of a turn: enough to recognise them, not to tell them."""
    text = "\n".join(call_key(call.name, call.arguments) for call in calls)
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def act_key(body: bytes, loaded: Loaded) -> str:
    """32 hexadecimal digits that stand for these request bytes and this reflex."""
    return hashlib.blake2b(body, key=loaded.digest, digest_size=16).hexdigest()
