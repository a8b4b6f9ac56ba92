"""Content of messages and of results, read: texts, refusals, images, files, sound."""

from typing import Any

from reflexarc.wire.dialects.shapes import Members, as_list, as_object, fault
from reflexarc.wire.turns import Foreign, Media, Refusal, Text

Content = Text | Media | Refusal | Foreign


def read_content(value: Any, path: str) -> tuple[Content, ...]:
    """A string, or a list of parts. Raises `RequestError`."""
    if isinstance(value, str):
        return (Text(value),)
    return tuple(_read_part(part, f"{path}[{at}]") for at, part in enumerate(as_list(value, path)))


def _read_part(value: Any, path: str) -> Content:
    part = Members(value, path)
    kind = part.needed_text("type")
    if kind in ("input_text", "output_text", "text"):
        return _read_text(part)
    if kind == "refusal":
        return Refusal(part.needed_text("refusal"))
    if kind == "input_image":
        return _read_image(part)
    if kind == "input_file":
        return _read_file(part)
    if kind == "input_audio":
        return _read_audio(part)
    return Foreign(kind, as_object(value, path))


def _read_text(part: Members) -> Text:
    text = part.needed_text("text")
    # Output carries these two always, mostly empty.
    more = {k: v for k, v in part.rest.items() if v or k not in ("annotations", "logprobs")}
    return Text(text, more=more)


def _read_image(part: Members) -> Media:
    given = part.take("image_url")
    if isinstance(given, dict):
        # Chat's form, which many servers take here too.
        inner = Members(given, part.at("image_url"))
        given, detail = inner.needed_text("url"), inner.text("detail")
    else:
        detail = None
    if given is not None and not isinstance(given, str):
        raise fault(part.at("image_url"), "must be a string", given)
    detail = part.text("detail") or detail
    if given is None:
        file = part.needed_text("file_id")
        return Media("image", file=file, detail=detail, more=part.rest)
    media_type, data = split_data_url(given)
    return Media(
        "image",
        media_type=media_type,
        data=data,
        url=given if data is None else None,
        detail=detail,
        more=part.rest,
    )


def _read_file(part: Members) -> Media:
    name, detail = part.text("filename"), part.text("detail")
    given = part.text("file_data")
    if given is not None:
        media_type, data = split_data_url(given)
        return Media(
            "document",
            media_type=media_type,
            data=given if data is None else data,
            name=name,
            detail=detail,
            more=part.rest,
        )
    url = part.text("file_url")
    if url is not None:
        return Media("document", url=url, name=name, detail=detail, more=part.rest)
    file = part.needed_text("file_id")
    return Media("document", file=file, name=name, detail=detail, more=part.rest)


def _read_audio(part: Members) -> Media:
    sound = Members(part.take("input_audio"), part.at("input_audio"))
    data, form = sound.needed_text("data"), sound.needed_text("format")
    return Media("audio", media_type=f"audio/{form}", data=data, more=part.rest)


def split_data_url(url: str) -> tuple[str | None, str | None]:
    """Media type and base64 of a `data:` URL; twice None where it is none that can be put together
    again from these two."""
    if not url.startswith("data:"):
        return None, None
    head, comma, data = url.partition(",")
    if not comma or not head.endswith(";base64"):
        return None, None
    media_type = head[len("data:") : -len(";base64")]
    if not media_type or ";" in media_type:
        return None, None
    return media_type, data
