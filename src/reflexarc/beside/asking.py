"""System 1 in process under the gateway's own rules: a chat request as a dict in, a call or None.

It is the gateway's `Decider` that decides here, so that what may act there may act here and nothing
else. What only a gateway has is absent: no store, no audit trail, no audits by System 2. Where
those are demanded, put the gateway in front instead.
"""

import hashlib
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from reflexarc.gateway.deciding import Decider, Loaded
from reflexarc.gateway.frames import Decide, Setup
from reflexarc.gateway.switch import Switch
from reflexarc.reflex import Reflex
from reflexarc.store.place import state_dir
from reflexarc.wire.answers import answer_from_body

_log = logging.getLogger("reflexarc.beside")
_NAME = "in-process"
_LOOK_EVERY_S = 0.2


class MadeCall(msgspec.Struct, frozen=True):
    """A call of the turn; its arguments also as JSON `text`."""

    call_id: str
    tool: str
    arguments: dict[str, Any]
    text: str


class Asked(msgspec.Struct, frozen=True):
    """What System 1 said: `act` with the turn's call (its arguments also as JSON `text`), or
    `escalate`. `calls` are all calls of the turn, that one first. `reason` is one of the gateway's;
    `prompt_tokens` an estimate."""

    action: str
    reason: str
    call_id: str = ""
    tool: str = ""
    arguments: dict[str, Any] = {}
    text: str = ""
    confidence: float = 0.0
    max_error: float = 0.0
    prompt_tokens: int = 0
    decide_ms: float = 0.0
    calls: tuple[MadeCall, ...] = ()

    @property
    def acts(self) -> bool:
        return self.action == "act"


class System1:
    """Asked before System 2 is. Safe to use from several threads: one is answered at a time.

    `max_error` is the largest error it acts under (default: the one the reflex was learned for);
    `acting` may be set at any time: while it is False nothing acts (`off:beside`), and `heard`
    still hears what would have been done. It obeys `reflexarc off` of the state directory `state`
    (default: the usual one) within a fifth of a second. `heard` is called with every answer.
    """

    def __init__(
        self,
        reflex: Reflex | str | Path,
        *,
        max_error: float | None = None,
        max_consecutive_acts: int = 20,
        acting: bool = True,
        heard: Callable[[Asked], None] | None = None,
        state: Path | str | None = None,
        clock_s: Callable[[], float] = time.perf_counter,
        unix_time: Callable[[], float] = time.time,
    ) -> None:
        loaded = reflex if isinstance(reflex, Reflex) else Reflex.load(reflex)
        digest = hashlib.blake2b(loaded.to_bytes(), digest_size=16).digest()
        self.acting = acting
        self._file = None if isinstance(reflex, Reflex) else str(reflex)
        self._max_error = loaded.card.max_error if max_error is None else max_error
        self._heard = heard
        self._clock_s = clock_s
        self._switch = Switch(state_dir(state), unix_time)
        self._looked_s = -_LOOK_EVERY_S
        self._number = 0
        self._lock = threading.Lock()
        setup = Setup([], max_contexts=128, max_consecutive_acts=max_consecutive_acts)
        self._decider = Decider({_NAME: Loaded(loaded, digest)}, setup, clock_s, unix_time)

    def ask(self, request: Mapping[str, Any]) -> Asked:
        """Decides on an OpenAI chat request: `model`, `messages`, `tools` and whatever else it
        sets. Never raises for what is in it: a request or a conversation System 1 does not
        understand escalates, and so does any failure of System 1."""
        with self._lock:
            asked = self._ask(request)
        if self._heard is not None:
            self._heard(asked)
        return asked

    def _ask(self, request: Mapping[str, Any]) -> Asked:
        try:
            body = msgspec.json.encode({**request, "stream": False})
        except (TypeError, ValueError, RecursionError):
            return Asked("escalate", "malformed_body")
        self._number += 1
        asking = Decide(
            id=self._number,
            reflex=_NAME,
            tenant=b"",
            respond=True,
            max_error=self._max_error,
        )
        try:
            decided, answer = self._decider.decide(asking, body)
        except Exception as error:  # any fault of System 1 is an escalation, said aloud
            _log.error("System 1 raised %s; the request escalates", type(error).__name__)
            return Asked("escalate", "system1_error")
        off = self._off(decided.tools) if decided.action == "act" else None
        if decided.action != "act" or off is not None:
            return Asked(
                "escalate", off or decided.reason, tool=decided.tool,
                confidence=decided.confidence, decide_ms=decided.decide_ms,
            )  # fmt: skip
        made = answer_from_body(answer, "application/json").calls
        call = made[0]
        return Asked(
            action="act",
            reason=decided.reason,
            call_id=call.id,
            tool=call.name,
            arguments=call.arguments,
            text=call.raw,
            confidence=decided.confidence,
            max_error=decided.max_error,
            prompt_tokens=decided.prompt_tokens,
            decide_ms=decided.decide_ms,
            calls=tuple(MadeCall(one.id, one.name, one.arguments, one.raw) for one in made),
        )

    def _off(self, tools: Sequence[str]) -> str | None:
        if not self.acting:
            return "off:beside"
        now_s = self._clock_s()
        if now_s - self._looked_s >= _LOOK_EVERY_S:
            self._looked_s = now_s
            self._switch.look()
        reasons = (self._switch.off.reason(_NAME, self._file, tool) for tool in tools)
        return next((reason for reason in reasons if reason is not None), None)
