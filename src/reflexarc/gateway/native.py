"""The native endpoint's logic, in System 1's process: decide, check a given call, keep sessions."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Literal

import msgspec

from reflexarc.gateway.conversations import MAX_MESSAGES, Conversation, TooLongError
from reflexarc.gateway.deciding import Decider, Loaded, act_key, calls_digest, is_write
from reflexarc.gateway.frames import Decided, Native, NativeReply, Setup
from reflexarc.gateway.unanswered import plain_escalation
from reflexarc.reflex.decision import Decision, Guarantee
from reflexarc.reflex.scopes import pool_name
from reflexarc.steps.errors import InputError, MalformedError, RequestError
from reflexarc.wire.chat_answer import call_id
from reflexarc.wire.errors import error_body, error_face
from reflexarc.wire.offered import Tools
from reflexarc.wire.reflex import (
    AnswerAlternative,
    AnswerCall,
    AnswerCheck,
    AnswerGuarantee,
    AnswerSession,
    AnswerTiming,
    CallToCheck,
    ReflexAnswer,
    ReflexRequest,
    reflex_request,
)
from reflexarc.wire.sent import Listed, chain

# With these a reflex says that it was learned for other tools: the next one is asked.
_NOT_MINE = ("unseen_tools", "schema_changed")


class HeldSession(msgspec.Struct):
    """What a client need not send again. `bytes_held` counts messages and tools."""

    messages: list[bytes]
    tools: bytes
    head: bytes
    bytes_held: int


class _WrongHeadError(Exception):
    def __init__(self, message: str, head: str | None) -> None:
        super().__init__(message)
        self.head = head


class _Work(msgspec.Struct):
    """One request with everything it refers to, brought together."""

    request: ReflexRequest
    messages: list[msgspec.Raw]
    tools_raw: msgspec.Raw
    tools: Tools
    head: bytes


class NativeDesk:
    """Answers bodies of the native endpoint. Sessions are a bounded memory per tenant; the least
    recently used are forgotten, which their client learns by a 409."""

    def __init__(self, decider: Decider, setup: Setup, clock_s: Callable[[], float]) -> None:
        self._decider = decider
        self._setup = setup
        self._clock_s = clock_s
        self._sessions: OrderedDict[tuple[bytes, str], HeldSession] = OrderedDict()
        self._bytes = 0

    def answer(self, native: Native, body: bytes) -> tuple[NativeReply, bytes]:
        """Never raises for what a client sent; may raise where a reflex does."""
        began_s = self._clock_s()
        try:
            answer, acting = self._answer(native, body)
        except TooLongError:
            total_ms = (self._clock_s() - began_s) * 1e3
            status, reply_body = plain_escalation(body, "too_long", total_ms)
            return NativeReply(native.id, status, "escalate", "too_long"), reply_body
        except _WrongHeadError as error:
            fault: dict[str, Any] = msgspec.json.decode(
                error_body(409, str(error), param="head", code="wrong_head")
            )
            fault["head"] = error.head
            return NativeReply(native.id, 409, "", "wrong_head"), msgspec.json.encode(fault)
        except InputError as error:
            status, fault_body = error_face(error)
            return NativeReply(native.id, status, "", error.code), fault_body
        reply = NativeReply(native.id, 200, answer.decision, answer.reason, reflex=acting)
        if acting and answer.calls:
            reply = msgspec.structs.replace(reply, acted=self._acted(native, acting, answer, body))
        return reply, msgspec.json.encode(answer)

    def _acted(self, native: Native, name: str, answer: ReflexAnswer, body: bytes) -> Decided:
        """What the trail keeps of it."""
        guarantee = answer.guarantee
        names = [call.name for call in answer.calls]
        loaded = self._decider.reflexes[native.sources.get(name, name)]
        return Decided(
            id=native.id,
            action="partial" if answer.decision == "partial" else "act",
            reason=answer.reason,
            tool=pool_name(names),
            tools=tuple(dict.fromkeys(names)),
            confidence=answer.confidence,
            key=act_key(body, loaded),
            reflex=loaded.digest.hex(),
            call=calls_digest(answer.calls),
            max_error=guarantee.max_error if guarantee is not None else 0.0,
            guarantee=None
            if guarantee is None
            else Guarantee(
                **{name: getattr(guarantee, name) for name in Guarantee.__struct_fields__}
            ),
        )

    def _answer(self, native: Native, body: bytes) -> tuple[ReflexAnswer, str]:
        """The answer, and the name of the reflex that acts."""
        began_s = self._clock_s()
        request = reflex_request(body)
        work = self._gather(native.tenant, request)
        parsed_s = self._clock_s()
        if request.call is not None:
            answer, name = self._judge_call(work, request.call, began_s, parsed_s), ""
        else:
            answer, name = self._choose(native, work, body, began_s, parsed_s)
        if request.session is not None:
            self._hold(native.tenant, request.session, work)
        return answer, name if answer.calls else ""

    def _gather(self, tenant: bytes, request: ReflexRequest) -> _Work:
        held = None
        if request.session is not None:
            held = self._sessions.get((tenant, request.session))
            held_head = held.head.hex() if held is not None else None
            if request.head is not None and request.head != held_head:
                raise _WrongHeadError("head is not the session's; see head in this body", held_head)
            if held is None and request.append is not None:
                raise _WrongHeadError("this session is not held: send messages and tools", None)
        if request.messages is not None:
            messages = request.messages
            if len(messages) > MAX_MESSAGES:
                raise TooLongError
            head = chain(messages)[-1]
        else:
            assert held is not None  # the check above: append without a session is a 409
            added = request.append or []
            messages = [*(msgspec.Raw(text) for text in held.messages), *added]
            head = (chain(added, held.head) or [held.head])[-1]
        tools_raw = request.tools
        if tools_raw is None:
            if held is None:
                raise RequestError("tools is missing: this session is new", param="tools")
            tools_raw = msgspec.Raw(held.tools)
        tools = self._decider.tools.read(tools_raw)
        if tools.refusal is not None:
            raise RequestError(f"tools cannot be used: {tools.refusal}", param="tools")
        return _Work(request, messages, tools_raw, tools, head)

    def _hold(self, tenant: bytes, session: str, work: _Work) -> None:
        key = (tenant, session)
        before = self._sessions.pop(key, None)
        if before is not None:
            self._bytes -= before.bytes_held
        messages = [bytes(raw) for raw in work.messages]
        tools = bytes(work.tools_raw)
        held = HeldSession(messages, tools, work.head, len(tools) + sum(map(len, messages)))
        self._sessions[key] = held
        self._bytes += held.bytes_held
        while len(self._sessions) > self._setup.max_sessions or (
            self._bytes > self._setup.max_session_bytes
        ):
            _, dropped = self._sessions.popitem(last=False)
            self._bytes -= dropped.bytes_held

    def _choose(
        self, native: Native, work: _Work, body: bytes, began_s: float, parsed_s: float
    ) -> tuple[ReflexAnswer, str]:
        names = self._names(native, work.request)
        name = ""
        conversation: Conversation | None = None
        decision = Decision("escalate", "no_reflex")
        loaded: Loaded | None = None
        context_s = decided_s = parsed_s
        for name in names:
            source = native.sources.get(name, name)
            loaded = self._decider.reflexes[source]
            conversation = self._take(native.tenant, source, loaded, work)
            context_s = self._clock_s()
            decision = self._decider.decision(
                loaded,
                conversation,
                work.tools,
                model=None,
                max_error=_bound(native, name, work.request.max_error),
                alternatives=work.request.alternatives,
                partials=True,
                proposing=True,
            )
            self._decider.conversations.keep(native.tenant, source, conversation)
            decided_s = self._clock_s()
            if decision.reason not in _NOT_MINE:
                break
        checks: list[AnswerCheck] = []
        calls: list[AnswerCall] = []
        reason = decision.reason
        action = decision.action
        left_open = frozenset(decision.open)
        if action != "escalate" and decision.call is not None and loaded is not None:
            for call in decision.calls:
                checks += _checks(work.tools, call.name, call.arguments, left_open)
            failed = [check for check in checks if not check.ok]
            obstacle = None
            if conversation is not None:
                obstacle = self._decider.obstacle(decision, work.tools, conversation)
                if is_write(decision, loaded):
                    obstacle = "side_effect"  # nobody would audit it
            if any(call.name in native.tools_off for call in decision.calls):
                obstacle = "off:tool"
            obstacle = native.may_not.get(name, obstacle)
            if obstacle is not None:
                action, reason = "escalate", obstacle
            elif failed:
                action, reason = "escalate", _reason(failed[0])
            else:
                key = act_key(body, loaded)
                calls += [
                    AnswerCall(
                        id=call_id(key, at),
                        name=call.name,
                        arguments=call.arguments,
                        sources={
                            argument: {
                                "kind": source.kind,
                                "message": source.message,
                                "path": source.path,
                            }
                            for argument, source in call.sources.items()
                        },
                    )
                    for at, call in enumerate(decision.calls)
                ]
        guarantee = decision.guarantee if action != "escalate" else None
        ended_s = self._clock_s()
        answer = ReflexAnswer(
            decision=action,
            calls=calls,
            confidence=decision.confidence,
            guarantee=None
            if guarantee is None
            else AnswerGuarantee(
                guarantee.max_error,
                guarantee.confidence_level,
                guarantee.scope,
                guarantee.n,
                guarantee.errors,
                guarantee.certificate_class,
            ),
            reason=reason,
            checks=checks,
            alternatives=[
                AnswerAlternative(other.name, other.arguments, other.confidence)
                for other in decision.alternatives
            ],
            session=_session(work, conversation.reused if conversation else 0),
            timing_ms=_timing(began_s, parsed_s, context_s, decided_s, ended_s),
            open=sorted(left_open) if action == "partial" else [],
        )
        return answer, name

    def _judge_call(
        self, work: _Work, call: CallToCheck, began_s: float, parsed_s: float
    ) -> ReflexAnswer:
        """`act` where every check of a proposed call holds, whatever its effect; `deny` with the
        first that does not."""
        checks = _checks(work.tools, call.name, call.arguments)
        failed = [check for check in checks if not check.ok]
        decision: Literal["act", "deny"] = "deny" if failed else "act"
        ended_s = self._clock_s()
        return ReflexAnswer(
            decision=decision,
            calls=[],
            confidence=0.0,
            guarantee=None,
            reason=_reason(failed[0]) if failed else "checks_passed",
            checks=checks,
            alternatives=[],
            session=_session(work, 0),
            timing_ms=_timing(began_s, parsed_s, parsed_s, parsed_s, ended_s),
        )

    def _names(self, native: Native, request: ReflexRequest) -> list[str]:
        """The reflexes to ask, in order; versions held ready are none."""
        names = [name for name in native.max_errors if name in self._decider.reflexes]
        if request.reflex is None:
            return names
        if request.reflex not in names:
            known = ", ".join(names) or "none"
            raise RequestError(
                f"there is no reflex {request.reflex!r}; loaded: {known}", param="reflex"
            )
        return [request.reflex]

    def _take(self, tenant: bytes, name: str, loaded: Loaded, work: _Work) -> Conversation:
        try:
            return self._decider.conversations.take(
                tenant, name, loaded.reflex, Listed(work.messages), self._decider.requests.chat
            )
        except MalformedError as error:
            raise MalformedError(f"a message cannot be read: {error}") from error


def _bound(native: Native, reflex: str, asked: float | None) -> float:
    """A request may tighten its route's bound, never loosen it."""
    configured = native.max_errors[reflex]
    return configured if asked is None else min(asked, configured)


def _checks(
    tools: Tools, name: str, arguments: dict[str, Any], left_open: frozenset[str] = frozenset()
) -> list[AnswerCheck]:
    if tools.get(name) is None:
        return [AnswerCheck("known_tool", False, f"{name} is not among the tools")]
    checks = [AnswerCheck("known_tool", True, "")]
    fault = tools.fault(name, arguments, left_open)
    detail = "" if fault is None else f"{fault[0]}: {fault[1]}"
    checks.append(AnswerCheck("schema", fault is None, detail))
    return checks


def _reason(failed: AnswerCheck) -> str:
    if failed.check == "schema":
        return f"schema:{failed.detail.split(': ', 1)[0]}"
    return f"guard:{failed.check}"


def _session(work: _Work, reused: int) -> AnswerSession:
    return AnswerSession(work.request.session, work.head.hex(), len(work.messages), reused)


def _timing(
    began_s: float, parsed_s: float, context_s: float, decided_s: float, ended_s: float
) -> AnswerTiming:
    return AnswerTiming(
        parse=round((parsed_s - began_s) * 1e3, 4),
        context=round((context_s - parsed_s) * 1e3, 4),
        decide=round((decided_s - context_s) * 1e3, 4),
        check=round((ended_s - decided_s) * 1e3, 4),
        total=round((ended_s - began_s) * 1e3, 4),
    )
