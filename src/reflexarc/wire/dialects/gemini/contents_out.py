"""The conversation of a request, written as `contents` and `systemInstruction`."""

from typing import Any

from reflexarc.wire.dialects.gemini.parts_out import (
    args_of,
    beside,
    function_call,
    media,
    response_of,
)
from reflexarc.wire.dialects.gemini.shapes import NAME, nested
from reflexarc.wire.dialects.gemini.signatures import SKIP_SIGNATURE, is_before_gemini_3
from reflexarc.wire.ids import IdMap
from reflexarc.wire.losses import Losses
from reflexarc.wire.turns import (
    Ask,
    Call,
    Foreign,
    Media,
    Part,
    Refusal,
    Result,
    Text,
    Thinking,
    Turn,
)

_INSTRUCTING = ("system", "developer")


def contents_of(ask: Ask, losses: Losses, ids: IdMap) -> dict[str, Any]:
    """`systemInstruction`, where there is one, and `contents`. Instructions that do not stand first
    go as the user's words, and are named."""
    return _Writer(ask, losses, ids).body()


class _Writer:
    def __init__(self, ask: Ask, losses: Losses, ids: IdMap) -> None:
        self._turns = ask.turns
        self._own = ask.dialect == NAME
        self._losses = losses
        self._ids = ids
        self._before_3 = is_before_gemini_3(ask.settings.model)
        self._contents: list[dict[str, Any]] = []

    def body(self) -> dict[str, Any]:
        leading = 0
        while leading < len(self._turns) and self._turns[leading].role in _INSTRUCTING:
            leading += 1
        if leading == len(self._turns) and leading and not self._own:
            leading -= 1  # An answer needs something said.
        body: dict[str, Any] = {}
        parts: list[dict[str, Any]] = []
        more: dict[str, Any] = {}
        for turn in self._turns[:leading]:
            parts += self._parts(turn)
            more.update(self._more(turn))
        if parts or more:
            body["systemInstruction"] = {"parts": parts, **more}
        for turn in self._turns[leading:]:
            self._put(turn)
        if not self._contents and not self._own:
            self._contents.append({"role": "user", "parts": [{"text": ""}]})
        body["contents"] = self._contents
        return body

    def _put(self, turn: Turn) -> None:
        if turn.role in _INSTRUCTING:
            self._losses.lose(f"messages.{turn.role} (moved)")
        role = "model" if turn.role == "assistant" else "user"
        parts = self._parts(turn)
        more = self._more(turn)
        if not parts and not more and not self._own:
            return
        last = self._contents[-1] if self._contents else None
        # Elsewhere one turn may be several messages; here a call must follow what it answers.
        follows = turn.joins if self._own else role == "model"
        if last is not None and follows and last["role"] == role:
            last["parts"] += parts
            last.update(more)
            return
        self._contents.append({"role": role, "parts": parts, **more})

    def _more(self, turn: Turn) -> dict[str, Any]:
        if turn.name is not None:
            self._losses.lose("messages.name")
        if self._own:
            return turn.more
        self._losses.lose_all(turn.more, "messages.")
        return {}

    def _parts(self, turn: Turn) -> list[dict[str, Any]]:
        parts: list[dict[str, Any]] = []
        after: list[dict[str, Any]] = []
        signed = False
        for part in turn.parts:
            if isinstance(part, Call):
                parts.append(self._call(part, first=not signed))
                signed = True
            elif isinstance(part, Result):
                parts.append(self._result(part, after))
            elif isinstance(part, Thinking):
                self._think(part, parts)
            else:
                made = self._said(part)
                if made is not None:
                    parts.append(made)
        return parts + after

    def _said(self, part: Part) -> dict[str, Any] | None:
        if isinstance(part, Text):
            self._lose(part, "content.text.")
            if not part.text and not self._own:
                return None
            return {"text": part.text, **(beside(part.more) if self._own else {})}
        if isinstance(part, Refusal):
            self._losses.lose("content.refusal")
            return {"text": part.text} if part.text else None
        if isinstance(part, Media):
            return media(part, self._own, self._losses)
        if isinstance(part, Foreign) and self._own:
            return part.value
        if isinstance(part, Foreign):
            self._losses.lose(f"content.{part.what}")
        return None

    def _lose(self, part: Text | Call | Result, under: str) -> None:
        if part.cache is not None:
            self._losses.lose("cache_control")
        if not self._own:
            self._losses.lose_all(part.more, under)

    def _think(self, part: Thinking, parts: list[dict[str, Any]]) -> None:
        if part.signature is not None and part.origin != NAME:
            self._losses.lose(f"content.thinking (signed by {part.origin})")
        elif part.redacted:
            put_signing(part, parts)
        elif part.text or part.signature is not None or self._own:
            made: dict[str, Any] = {"text": part.text, "thought": True}
            if part.signature is not None:
                made["thoughtSignature"] = part.signature
            made.update(beside(part.more) if part.origin == NAME else {})
            parts.append(made)

    def _call(self, call: Call, first: bool) -> dict[str, Any]:
        self._lose(call, "tool_calls.")
        signature = call.signature
        if signature is not None and call.origin != NAME:
            self._losses.lose(f"tool_calls.signature (signed by {call.origin})")
            signature = None
        if signature is None and first and not self._own and not self._before_3:
            signature = SKIP_SIGNATURE
        args = args_of(call, self._losses)
        return function_call(call, self._ids.out(call.id), args, signature, self._own)

    def _result(self, result: Result, after: list[dict[str, Any]]) -> dict[str, Any]:
        """What models before Gemini 3 do not take inside a result stands after all of them."""
        self._lose(result, "tool_result.")
        inner: dict[str, Any] = {}
        if not (self._own and "id" in result.more):
            inner["id"] = self._ids.out(result.call_id)
        if result.name is not None:
            inner["name"] = result.name
        elif not self._own:
            inner["name"] = "unknown"
        inner["response"] = response_of(result)
        held: list[dict[str, Any]] = []
        for part in result.parts:
            if isinstance(part, Text):
                self._lose(part, "tool_result.text.")
                continue
            if isinstance(part, Foreign) and not self._own:
                self._losses.lose(f"tool_result.{part.what}")
            made = (
                media(part, self._own, self._losses, in_result=self._own or not self._before_3)
                if isinstance(part, Media)
                else part.value
                if self._own
                else None
            )
            if made is not None:
                held.append(made)
        if held and self._before_3 and not self._own:
            called = f"{result.name or 'a tool'} (call {self._ids.out(result.call_id)})"
            after += [{"text": f"From the result of {called}:"}, *held]
        elif held:
            inner["parts"] = held
        made_part: dict[str, Any] = {"functionResponse": inner}
        if self._own:
            inner.update(nested(result.more, "functionResponse"))
            made_part.update(beside(result.more))
        return made_part


def put_signing(part: Thinking, parts: list[dict[str, Any]]) -> None:
    """Puts what only signs where it stood: on the part before it, on an empty text, or alone."""
    where = part.more.get("signs")
    last = parts[-1] if where == "part" and parts else {}
    signable = not {"text", "inlineData", "fileData"}.isdisjoint(last)
    if signable and "thought" not in last and "thoughtSignature" not in last:
        parts[-1] = {**last, "thoughtSignature": part.signature}
        return
    made: dict[str, Any] = {} if where == "bare" else {"text": ""}
    parts.append({**made, "thoughtSignature": part.signature, **beside(part.more)})
