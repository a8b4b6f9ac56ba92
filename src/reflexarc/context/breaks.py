"""Prefix breaks: where a prompt stops being what was sent before it, why, and how much is lost.

Providers reuse the longest beginning that two prompts have in common. Pure: two prompts in, one
finding out. Who was asked when, and where, the caller knows.
"""

from reflexarc.context.changes import Cause, Change, change, is_cut, is_rewritten, value_of
from reflexarc.context.differences import grew, same_bytes
from reflexarc.context.layout import Laid, laid, name_of, place_of
from reflexarc.context.weighing import EXCERPT_CHARS, Broken, Known, again_of, weighed
from reflexarc.context.weighing import Break as Break
from reflexarc.steps.prompt import Piece, Prompt

_CLOSING = b'"]} \t\r\n'
"""With which JSON that is not read may end where it grew."""


def compare(before: Prompt, after: Prompt, known: Known | None = None) -> Break | None:
    """None where `before` is how `after` begins, marks for caches aside: with messages added, with
    a last message that grew, or with its last messages taken back."""
    known = known or Known()
    old, new = laid(before), laid(after)
    whole = before.complete and after.complete
    found = [
        one
        for one in (_of_settings(old, new, known, whole=whole), _of_pieces(old, new, known, whole))
        if one is not None
    ]
    return max(found, key=lambda one: one.lost_bytes, default=None) or _rewritten(old, new, known)


def whole_break(before: Prompt, cause: Cause, known: Known | None = None) -> Break:
    """All of a prompt lost, and read again: it went elsewhere, or came too late."""
    known = known or Known()
    size = sum(known.weight(piece) for piece in laid(before).read)
    return Break(
        cause=cause, kind="settings", path="", before_bytes=size, lost_bytes=size, again_bytes=size
    )


def _of_pieces(old: Laid, new: Laid, known: Known, whole: bool) -> Break | None:
    broken = None
    if whole or (old.tools and new.tools):
        broken = _of_tools(old.tools, new.tools)
    if broken is None and (whole or (old.system and new.system)):
        broken = _of_system(len(old.tools), old.system, new.system)
    if broken is None:
        start = len(old.tools) + len(old.system)
        broken = _of_messages(start, old.messages, new.messages, known)
    return None if broken is None else weighed(broken, old, new, known)


def _of_tools(old: list[Piece], new: list[Piece]) -> Broken | None:
    found = _first(old, new)
    if found is None:
        return None
    at, changed = found
    was, now = _at(old, at), _at(new, at)
    names, new_names = [name_of(one) for one in old[at:]], [name_of(one) for one in new[at:]]
    if changed is not None and names[0] == new_names[0]:
        cause = changed.cause or "tools_schema"
        return Broken(cause, at, was, now, changed.first, (names[0],))
    gone = tuple(name for name in names if name not in new_names)
    come = tuple(name for name in new_names if name not in names)
    if gone and (names[0] in gone or not come):
        return Broken("tools_removed", at, was, None, None, gone)
    if come:
        return Broken("tools_added", at, None, now, None, come)
    if len(names) != len(new_names):  # one that was given twice
        removed = len(names) > len(new_names)
        return Broken("tools_removed" if removed else "tools_added", at, was, now)
    return Broken("tools_order", at, was, now, None, (names[0], new_names[0]))


def _of_system(start: int, old: list[Piece], new: list[Piece]) -> Broken | None:
    found = _first(old, new)
    if found is None:
        return None
    at, changed = found
    cause = changed.cause if changed is not None else None
    first = changed.first if changed is not None else None
    return Broken(cause or "system_changed", start + at, _at(old, at), _at(new, at), first)


def _of_messages(start: int, old: list[Piece], new: list[Piece], known: Known) -> Broken | None:
    found = _first(old, new)
    if found is None:
        return None
    at, changed = found
    if changed is None:  # one list ended: added to, or taken back
        return None
    was, now = old[at], new[at]
    if at == len(old) - 1 and was.role == now.role and _grew(was, now):
        return None
    if at == len(new) - 1 and was.role == now.role and _grew(now, was):
        return None
    place = start + at
    later = {piece.raw for piece in old[at + 1 :]}
    if changed.cause is None:
        later |= {known.meaning(piece) for piece in old[at + 1 :]}
    if _is_in(now, later, known):
        return Broken("history_truncated", place, was, now, changed.first)
    if changed.cause is not None:
        return Broken(changed.cause, place, was, now, changed.first)
    # A summary in place of several, or fewer than there were.
    after_next = {known.meaning(piece) for piece in old[at + 2 :]}
    next_is_later = at + 1 < len(new) and _is_in(new[at + 1], after_next, known)
    fewer = len(new) < len(old)
    if next_is_later or fewer or (was.role == now.role and is_cut(changed.first)):
        return Broken("history_truncated", place, was, now, changed.first)
    return Broken("history_edited", place, was, now, changed.first)


def _of_settings(old: Laid, new: Laid, known: Known, *, whole: bool) -> Break | None:
    """The setting that loses most. A choice of tools and a budget for thinking stand after tools
    and system prompt; all else before them."""
    found: Break | None = None
    pieces = old.read
    sizes = [known.weight(piece) for piece in pieces]
    for name in {**old.settings, **new.settings}:
        was, now = old.settings.get(name), new.settings.get(name)
        if (was and was[0]) == (now and now[0]) or not (whole or (was and now)):
            continue
        cause, start = _setting(name, (was or now or ("",))[0], old)
        lost = sum(sizes[start:])
        if found is not None and found.lost_bytes >= lost:
            continue
        found = Break(
            cause=cause, kind="settings", path=name, piece=start,
            before_bytes=sum(sizes), lost_bytes=lost,
            again_bytes=again_of(pieces[start:], new.read[start:], known),
            was=(was[0] if was else "")[:EXCERPT_CHARS],
            now=(now[0] if now else "")[:EXCERPT_CHARS],
        )  # fmt: skip
    return found


def _setting(name: str, value: str, old: Laid) -> tuple[Cause, int]:
    messages = len(old.tools) + len(old.system)
    word = name.lower()
    if word == "model":
        return "model", 0
    if word == "chat_template_kwargs":
        return ("thinking" if "think" in value else "settings"), 0
    if "think" in word:
        return "thinking", messages
    if "reason" in word or "effort" in word:
        return "thinking", 0  # told in the system prompt
    if "tool_choice" in word or "toolconfig" in word or "tool_config" in word:
        return "tool_choice", messages
    return "settings", 0


def _first(old: list[Piece], new: list[Piece]) -> tuple[int, Change | None] | None:
    """The first place where two lists differ; no change where one of them has ended."""
    for at, (was, now) in enumerate(zip(old, new, strict=False)):
        if was is now or was.raw == now.raw:
            continue
        found = change(was, now)
        if found is not None:
            return at, found
    return None if len(old) == len(new) else (min(len(old), len(new)), None)


def _rewritten(old: Laid, new: Laid, known: Known) -> Break | None:
    before = old.read
    for at, (was, now) in enumerate(zip(before, new.read, strict=False)):
        if was is not now and was.raw != now.raw and is_rewritten(was, now):
            size = sum(known.weight(piece) for piece in before)
            return Break(
                cause="reencoded", kind=now.kind, path=now.path, piece=at, message=place_of(now),
                offset=same_bytes(was.raw.decode("latin-1"), now.raw.decode("latin-1")),
                before_bytes=size,
            )  # fmt: skip
    return None


def _grew(was: Piece, now: Piece) -> bool:
    if was.plain or now.plain:
        return now.raw.startswith(was.raw.rstrip(_CLOSING))
    return grew(value_of(was), value_of(now))


def _is_in(piece: Piece, known_as: set[bytes], known: Known) -> bool:
    return piece.raw in known_as or known.meaning(piece) in known_as


def _at(pieces: list[Piece], at: int) -> Piece | None:
    return pieces[at] if at < len(pieces) else None
