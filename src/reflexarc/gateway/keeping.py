"""Hands each step over to the recorder once all is known of it, and its comparison after it."""

import time
from collections import OrderedDict
from collections.abc import Callable

import msgspec

from reflexarc.gateway.config import Route
from reflexarc.gateway.exchange import Exchange
from reflexarc.gateway.frames import Decided
from reflexarc.gateway.recorder import Recorder
from reflexarc.gateway.told import Told
from reflexarc.store.records import Audited, DecidedBy, Judged, Prediction, StepEnded
from reflexarc.wire.growing import Grown

_MAX_HELD = 4096
_MAX_HELD_BYTES = 64 * 1024 * 1024


class Keeper:
    """`gateway` names this process in the store. Never raises, never waits."""

    def __init__(
        self,
        gateway: str,
        recorder: Recorder,
        clock_s: Callable[[], float],
        unix_time: Callable[[], float] = time.time,
    ) -> None:
        self._gateway = gateway
        self._recorder = recorder
        self._clock_s = clock_s
        self._unix_time = unix_time
        # Steps whose decision is still to come, and what came after them: the recorder tells
        # sessions by the order of their steps.
        self._held: OrderedDict[int, _Held] = OrderedDict()
        self._held_bytes = 0

    def ended(
        self,
        route: Route,
        exchange: Exchange,
        number: int,
        tenant: str,
        told: Told,
        *,
        by: DecidedBy,
        status: int,
        answer: bytes,
        content_type: str,
        decided: Decided | None,
        reason: str = "",
        hold: bool = False,
    ) -> None:
        """One step is over. With `hold` it waits for `decided`, see there."""
        if route.record == "none":
            return
        now_s = self._clock_s()
        timings = {"total": (now_s - exchange.began_s) * 1e3}
        if exchange.sent_s:
            timings["before_upstream"] = (exchange.sent_s - exchange.began_s) * 1e3
        if exchange.head_s:
            timings["upstream_head"] = (exchange.head_s - exchange.sent_s) * 1e3
        copy = exchange.copy
        request = exchange.body or b""
        step = StepEnded(
            number=number,
            gateway=self._gateway,
            request_id=exchange.request_id.decode("latin-1"),
            route=route.path,
            mode=route.mode,
            record=route.record,
            tenant=tenant,
            session=told.session,
            task=told.task,
            began_unix_s=self._unix_time() - (now_s - exchange.began_s),
            decided_by=by,
            status=status,
            content_type=content_type,
            content_encoding=copy.content_encoding if copy is not None else "",
            complete=by == "system1" or (copy is not None and copy.complete),
            request_bytes=len(request),
            timings_ms={name: round(ms, 4) for name, ms in timings.items()},
            reflex=route.reflex,
            action="escalate" if reason else "",
            reason=reason,
            price=route.price.of_tokens() if route.price is not None else None,
            dialect=exchange.client,
            answer_dialect=exchange.client if by == "system1" else exchange.upstream,
            model=exchange.model,
            attempts=list(exchange.spent),
        )
        step = _with_decision(step, decided, reason)
        self._held[number] = _Held(step, request, answer, hold, exchange.grown)
        self._held_bytes += len(request) + len(answer)
        self._release()

    def decided(self, number: int, decided: Decided | None, reason: str = "") -> None:
        """The decision of a step that is held, if it is; without one, why there is none."""
        held = self._held.get(number)
        if held is None or not held.waits:
            return
        held.waits = False
        held.step = _with_decision(held.step, decided, held.step.reason)
        if decided is None and reason and not held.step.reason:
            held.step = msgspec.structs.replace(held.step, action="escalate", reason=reason)
        self._release()

    def judged(self, number: int, predictions: list[Prediction]) -> None:
        self.decided(number, None)
        held = self._held.get(number)
        if held is not None:
            held.predictions = predictions
        else:
            self._recorder.judged(Judged(number, self._gateway, predictions))

    def _release(self) -> None:
        while self._held:
            number, held = next(iter(self._held.items()))
            few = len(self._held) <= _MAX_HELD and self._held_bytes <= _MAX_HELD_BYTES
            if held.waits and few:
                return
            del self._held[number]
            self._held_bytes -= len(held.request) + len(held.answer)
            self._recorder.step(held.step, held.request, held.answer, held.grown)
            if held.predictions is not None:
                self._recorder.judged(Judged(number, self._gateway, held.predictions))

    def audited(self, number: int, route: str, tool: str, outcome: str) -> None:
        self._recorder.audited(
            Audited(number, self._gateway, route, tool, outcome, self._unix_time())
        )

    def close(self) -> None:
        """What is held goes as it is."""
        for held in self._held.values():
            held.waits = False
        self._release()


class _Held(msgspec.Struct):
    """`waits`: its decision is to come."""

    step: StepEnded
    request: bytes
    answer: bytes
    waits: bool
    grown: Grown | None
    predictions: list[Prediction] | None = None


def _with_decision(step: StepEnded, decided: Decided | None, reason: str) -> StepEnded:
    """`reason` is why the gateway let nothing act, whatever System 1 said."""
    if decided is None:
        return step
    return msgspec.structs.replace(
        step,
        action="escalate" if reason else decided.action,
        reason=reason or decided.reason,
        tool=decided.tool,
        confidence=decided.confidence,
        max_error=decided.max_error,
        timings_ms={**step.timings_ms, "decide": round(decided.decide_ms, 4)},
    )
