"""What stands in place of what was cut: a short text that says what it was, why it went and that no
call is needed for it, with an id by which it can be opened again. Rewrites single items."""

from typing import Any, cast

import msgspec

from reflexarc.context.pruning_found import Candidate, Why
from reflexarc.context.pruning_items import tokens_of
from reflexarc.wire.json import decode_strict, encode_json

ID_PREFIX = "cut_"


class Cut(msgspec.Struct, frozen=True):
    """`candidate` goes from here on, and `text` stands there; that saves so many tokens."""

    candidate: Candidate
    id: str
    text: str
    saves_tokens: int


class Removed(msgspec.Struct, frozen=True):
    """What was cut: its JSON text as it stood in the item."""

    id: str
    content: bytes


_SAYS: dict[Why, str] = {
    "read_again": "an earlier state of this file; it was read again further below{by}",
    "written_since": "the file as it was before it was changed further below{by}",
    "repeated": "the same, to the letter, as an earlier result above{by}",
    "image": "an earlier image; newer ones follow below",
}


def cut_of(candidate: Candidate) -> Cut:
    """The same for the same item in the same place of any history."""
    value = candidate.value
    identity = ID_PREFIX + value.digest[:8].hex()
    by = f" (call {candidate.other[:64]})" if candidate.other else ""
    what = "image" if candidate.why == "image" else "result"
    text = (
        f"[{what} left out to save space, about {value.tokens} tokens: "
        f"{_SAYS[candidate.why].format(by=by)}. Do not call again for it. "
        f"Kept as {identity}.]"
    )
    if candidate.why == "image":
        text = text.replace(" Do not call again for it.", "")
    return Cut(candidate, identity, text, value.tokens - tokens_of(len(text.encode())))


def rewritten(dialect: str, raw: bytes, cuts: list[Cut]) -> tuple[bytes, list[Removed]]:
    """One item with these cuts of it made, and what went. Whatever else it holds has the same
    value as before. Raises `MalformedError` for an item that cannot be read."""
    value = decode_strict(raw, "item")
    removed: list[Removed] = []
    paths = {cut.candidate.value.path for cut in cuts}
    for cut in cuts:
        path = cut.candidate.value.path
        if any(path[:end] in paths for end in range(1, len(path))):
            continue  # all around it goes
        holder: Any = value
        for part in path[:-1]:
            holder = holder[part]
        removed.append(Removed(cut.id, encode_json(holder[path[-1]])))
        holder[path[-1]] = _instead(dialect, holder[path[-1]], cut)
    return encode_json(value), removed


def _instead(dialect: str, before: Any, cut: Cut) -> Any:
    if cut.candidate.why != "image":
        return {"result": cut.text} if dialect == "gemini" else cut.text
    if dialect == "gemini":
        return {"text": cut.text}
    kind = "input_text" if dialect == "responses" else "text"
    part: dict[str, Any] = {"type": kind, "text": cut.text}
    mark = cast("dict[str, Any]", before).get("cache_control")
    return part if mark is None else {**part, "cache_control": mark}
