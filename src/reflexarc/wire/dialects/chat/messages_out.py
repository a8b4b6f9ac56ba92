"""Turns written as messages of a chat history."""

from collections.abc import Callable
from typing import Any

from reflexarc.wire.dialects.chat.messages_in import OLD_CALL
from reflexarc.wire.dialects.chat.thoughts import ORIGIN, details_of
from reflexarc.wire.dialects.openai_shared import FAMILY
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

_AUDIO_FORMATS = {
    "audio/wav": "wav",
    "audio/x-wav": "wav",
    "audio/mpeg": "mp3",
    "audio/mp3": "mp3",
}


def write_turns(ask: Ask, losses: Losses, ids: IdMap) -> list[dict[str, Any]]:
    writer = _Writer(ask.dialect, losses, ids)
    messages: list[dict[str, Any]] = []
    for turn in ask.turns:
        messages.extend(writer.turn(turn))
    return messages


class _Writer:
    def __init__(self, origin: str, losses: Losses, ids: IdMap) -> None:
        self._own = origin == ORIGIN
        self._family = origin in FAMILY
        self._losses = losses
        self._ids = ids

    def turn(self, turn: Turn) -> list[dict[str, Any]]:
        if turn.role == "tool":
            return self._results(turn)
        message: dict[str, Any] = {"role": turn.role}
        if turn.name is not None:
            message["name"] = turn.name
        if turn.role == "assistant":
            self._assistant(turn, message)
            if len(message) == 1:
                return []
        else:
            content = self._content(turn.parts)
            if not content and not self._own:
                return []
            message["content"] = content
        self._more(turn.more, message)
        return [message]

    def _assistant(self, turn: Turn, message: dict[str, Any]) -> None:
        said = [part for part in turn.parts if not isinstance(part, Thinking | Call)]
        calls = [part for part in turn.parts if isinstance(part, Call)]
        refusals = [part for part in said if isinstance(part, Refusal)]
        texts = [part for part in said if not isinstance(part, Refusal)]
        audio = [p for p in texts if self._own and isinstance(p, Foreign) and p.what == "audio"]
        content = self._content([part for part in texts if part not in audio])
        if content or calls or refusals or audio:
            message["content"] = content or None
        if refusals:
            message["refusal"] = "\n".join(part.text for part in refusals)
        if audio:
            message["audio"] = audio[0].value
        self._thoughts(turn.parts, message)
        old = [call for call in calls if call.id.startswith(OLD_CALL)]
        new = [self._call(call) for call in calls if call not in old]
        if new:
            message["tool_calls"] = new
        if old:
            message["function_call"] = {"name": old[0].name, "arguments": old[0].arguments}

    def _thoughts(self, parts: tuple[Part, ...], message: dict[str, Any]) -> None:
        """A provider gets back what it thought itself; what another signed is of no use to it."""
        text: list[str] = []
        details: list[Any] = []
        for part in parts:
            if not isinstance(part, Thinking):
                continue
            if part.origin != ORIGIN:
                signed = f"signed by {part.origin}" if part.signature else "unsigned"
                self._losses.lose(f"content.thinking ({signed})")
                continue
            text.append(part.text)
            if part.signature is not None:
                details.extend(details_of(part.signature))
        if any(text):
            message["reasoning_content"] = "".join(text)
        if details:
            message["reasoning_details"] = details

    def _call(self, call: Call) -> dict[str, Any]:
        identity = self._ids.out(call.id)
        if call.cache is not None:
            self._losses.lose("cache_control")
        more = dict(call.more) if self._own else {}
        if not self._own:
            self._losses.lose_all(call.more, "tool_calls.")
        if call.kind == "custom":
            custom = {"name": call.name, "input": call.arguments}
            return {"id": identity, "type": "custom", "custom": custom, **more}
        function = {"name": call.name, "arguments": call.arguments, **more.pop("function", {})}
        written = {"id": identity, "type": "function", "function": function, **more}
        if call.signature is not None:
            if call.origin == "gemini":
                google = {"thought_signature": call.signature}
                written["extra_content"] = {"google": google}
            else:
                self._losses.lose(f"tool_calls.signature (signed by {call.origin})")
        return written

    def _results(self, turn: Turn) -> list[dict[str, Any]]:
        shown: list[dict[str, Any]] = []
        results = [part for part in turn.parts if isinstance(part, Result)]
        messages = [self._result(result, shown) for result in results]
        if shown:
            messages.append({"role": "user", "content": shown})
        return messages

    def _result(self, result: Result, shown: list[dict[str, Any]]) -> dict[str, Any]:
        """`shown` takes what a tool's message has no place for, to stand after all results."""
        old = result.call_id.startswith(OLD_CALL)
        message: dict[str, Any] = {"role": "function" if old else "tool"}
        if not old:
            message["tool_call_id"] = self._ids.out(result.call_id)
        if result.name is not None and (old or (self._own and "name" in result.more)):
            message["name"] = result.name
        texts = [part for part in result.parts if isinstance(part, Text)]
        others = [p for p in result.parts if not (self._own or isinstance(p, Text))]
        message["content"] = self._content(result.parts if self._own else texts)
        if result.is_error:
            self._losses.lose("tool_result.is_error")
        if result.cache is not None:
            if self._own:
                message["cache_control"] = result.cache
            else:
                self._losses.lose("cache_control")
        told = False
        for part in others:
            written = self._part(part)
            if written is None:
                continue
            if not told:
                name = f" ({result.name})" if result.name else ""
                text = f"From the result of call {message.get('tool_call_id', '')}{name}:"
                shown.append({"type": "text", "text": text})
                told = True
            shown.append(written)
        self._more(result.more, message)
        return message

    def _more(self, more: dict[str, Any], message: dict[str, Any]) -> None:
        if self._own:
            message.update(more)
        else:
            self._losses.lose_all(more, "messages.")

    def _content(self, parts: "list[Part] | list[Text] | tuple[Part, ...]") -> Any:
        written = [one for part in parts if (one := self._part(part)) is not None]
        if not written:
            return ""
        if len(written) == 1 and list(written[0]) == ["type", "text"]:
            return written[0]["text"]
        return written

    def _part(self, part: Part) -> dict[str, Any] | None:
        if isinstance(part, Text):
            if not part.text and not self._own:
                return None
            return self._marked({"type": "text", "text": part.text}, part)
        if isinstance(part, Media):
            return self._media(part)
        if isinstance(part, Refusal):
            return {"type": "refusal", "refusal": part.text}
        if isinstance(part, Foreign):
            if self._own:
                return part.value
            self._losses.lose(f"content.{part.what}")
        else:  # a call or thinking where only an assistant has any
            self._losses.lose(f"content.{type(part).__name__.lower()}")
        return None

    def _media(self, media: Media) -> dict[str, Any] | None:
        written = None
        # A file is known to its own provider alone.
        if media.file is None or self._family:
            written = _MEDIA[media.kind](media)
        if written is None:
            self._losses.lose(f"content.{media.kind}")
            return None
        return self._marked(written, media)

    def _marked(self, written: dict[str, Any], part: Text | Media) -> dict[str, Any]:
        if self._own:
            written.update(part.more)
            if part.cache is not None:
                written["cache_control"] = part.cache
        else:
            self._losses.lose_all(part.more, "content.")
            if part.cache is not None:
                self._losses.lose("cache_control")
        return written


def _image(media: Media) -> dict[str, Any] | None:
    url = _url(media)
    if url is None:
        return None
    inner = {"url": url, **({"detail": media.detail} if media.detail is not None else {})}
    return {"type": "image_url", "image_url": inner}


def _audio(media: Media) -> dict[str, Any] | None:
    form = _AUDIO_FORMATS.get(media.media_type or "")
    if form is None and (media.media_type or "").startswith("audio/"):
        form = (media.media_type or "").removeprefix("audio/")
    if media.data is None or not form:
        return None
    return {"type": "input_audio", "input_audio": {"data": media.data, "format": form}}


def _document(media: Media) -> dict[str, Any] | None:
    if media.text is not None:
        return {"type": "text", "text": media.text}
    inner: dict[str, Any] = {}
    if media.name is not None:
        inner["filename"] = media.name
    if media.file is not None:
        inner["file_id"] = media.file
    elif media.data is not None:
        inner["file_data"] = _url(media)
        inner.setdefault("filename", "document")
    elif media.url is not None and not media.url.startswith(("http://", "https://")):
        inner["file_data"] = media.url
    else:
        return None
    return {"type": "file", "file": inner}


def _no_form(media: Media) -> dict[str, Any] | None:
    del media
    return None


_MEDIA: dict[str, Callable[[Media], dict[str, Any] | None]] = {
    "image": _image,
    "audio": _audio,
    "document": _document,
    "video": _no_form,
}


def _url(media: Media) -> str | None:
    if media.data is not None:
        return f"data:{media.media_type or 'application/octet-stream'};base64,{media.data}"
    return media.url
