"""Content of messages and of results, written: texts, images, files, sound."""

import base64
from typing import Any

from reflexarc.wire.losses import Losses
from reflexarc.wire.turns import Foreign, Media, Text

_WORDS: dict[str, dict[str, str]] = {
    "chat": {"image": "image_url", "document": "file", "audio": "input_audio"},
    "gemini": {"image": "inlineData", "document": "inlineData", "audio": "inlineData"},
}
# Names of files by their type, where none is given: the API asks for one.
_ENDINGS = {
    "application/pdf": "pdf",
    "text/plain": "txt",
    "text/markdown": "md",
    "text/csv": "csv",
    "text/html": "html",
    "application/json": "json",
}
_SOUNDS = {"mpeg": "mp3", "mp3": "mp3", "wav": "wav", "x-wav": "wav", "wave": "wav"}


class ContentWriter:
    """`dialect` is the one that the content came in, `own` whether it is this one. `under` names
    the place in losses."""

    def __init__(self, dialect: str, own: bool, losses: Losses) -> None:
        self._dialect = dialect
        self._own = own
        self._losses = losses

    def write(
        self, part: Text | Media | Foreign, said: str, under: str = "content"
    ) -> dict[str, Any] | None:
        """One part; `said` is the type of a text here. None where it cannot be said."""
        if isinstance(part, Foreign):
            if self._own:
                return part.value
            self._losses.lose(f"{under}.{part.what}")
            return None
        if part.cache is not None:
            self._losses.lose("cache_control")
        if isinstance(part, Text):
            written: dict[str, Any] | None = {"type": said, "text": part.text}
            if said == "output_text":
                written = {**written, "annotations": []}
        else:
            written = self._media(part, under)
        if written is not None and part.more:
            written.update(self.kept(part.more, under))
        return written

    def kept(self, more: dict[str, Any], under: str) -> dict[str, Any]:
        """What only this dialect knows of a part, where the part came in it."""
        if self._own:
            return {k: v for k, v in more.items() if v is not None}
        self._losses.lose_all(more, f"{under}.")
        return {}

    def _media(self, part: Media, under: str) -> dict[str, Any] | None:
        if part.file is not None and not self._own and self._dialect != "chat":
            # An id of a file is only known to the provider that gave it.
            self._losses.lose(f"{under}.{part.kind} (file)")
            return None
        if part.kind == "image":
            return self._image(part)
        if part.kind == "document":
            return self._file(part)
        if part.kind == "audio" and self._own and part.data is not None:
            form = (part.media_type or "").removeprefix("audio/")
            sound = {"data": part.data, "format": _SOUNDS.get(form, form)}
            return {"type": "input_audio", "input_audio": sound}
        word = _WORDS.get(self._dialect, {}).get(part.kind, part.kind)
        self._losses.lose(f"{under}.{word}")
        return None

    def _image(self, part: Media) -> dict[str, Any]:
        written: dict[str, Any] = {"type": "input_image"}
        if part.file is not None:
            written["file_id"] = part.file
        else:
            written["image_url"] = part.url if part.data is None else _data_url(part, "image/png")
        if part.detail is not None or not self._own:
            written["detail"] = part.detail or "auto"
        return written

    def _file(self, part: Media) -> dict[str, Any]:
        written: dict[str, Any] = {"type": "input_file"}
        if part.file is not None:
            written["file_id"] = part.file
        elif part.url is not None:
            written["file_url"] = part.url
        elif part.text is not None:
            data = base64.b64encode(part.text.encode()).decode()
            written["file_data"] = f"data:{part.media_type or 'text/plain'};base64,{data}"
        elif self._own and part.media_type is None:
            written["file_data"] = part.data or ""
        else:
            written["file_data"] = _data_url(part, "application/pdf")
        if part.name is not None:
            written["filename"] = part.name
        elif "file_data" in written and not self._own:
            usual = "text/plain" if part.text is not None else "application/pdf"
            ending = _ENDINGS.get(part.media_type or usual, "bin")
            written["filename"] = f"document.{ending}"
        if part.detail is not None:
            written["detail"] = part.detail
        return written


def _data_url(part: Media, usual: str) -> str:
    return f"data:{part.media_type or usual};base64,{part.data or ''}"
