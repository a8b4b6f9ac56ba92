"""Read, write or think: a guess from a tool's name and description, for a person to review.

What is declared wins; what cannot be told is a write.
"""

import re

from reflexarc.steps import Effect, ToolSpec


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_READ_VERBS = _words(
    """
    get find list search retrieve query lookup read fetch view show describe count check
    browse inspect peek track locate ls cat pwd grep head tail wc diff du stat
    """
)
_WRITE_VERBS = _words(
    """
    create update delete remove add set insert send write post put patch edit modify
    change cancel book buy order pay refund transfer move copy rename approve reject
    submit close open resolve reply forward execute exec run start stop restart turn lock
    unlock enable disable assign upload save store commit push merge deploy reset replace
    clear purge drop kill register subscribe unsubscribe follow unfollow like retweet
    comment login logout flag mark schedule reserve issue confirm activate deactivate
    adjust fill purchase withdraw deposit touch mkdir rm mv cp echo place make
    """
)
# Nouns where they follow a reading verb: get_order, list_comments, find_store.
_NOUNS_TOO = _words(
    """
    order comment store book post like issue place set schedule move copy change commit
    push head stop start lock mark flag run transfer deposit purchase refund pay
    """
)
_THINK_WORDS = _words(
    """
    think thinking thought thoughts scratchpad
    """
)
_MUTATES = re.compile(
    r"\b(?:creates?|updates?|deletes?|removes?|modif(?:y|ies)|cancels?|sends?|writes?|overwrites?|"
    r"inserts?|refunds?|charges?|books?|submits?|publish(?:es)?|saves?|stores?|marks?|sets?)\b",
    re.IGNORECASE,
)
_NEGATED = re.compile(
    r"\b(?:does not|doesn't|do not|never|without|cannot|no)\b[^.;]*", re.IGNORECASE
)


def guess_effect(tool: ToolSpec) -> tuple[Effect, str]:
    """The effect of a tool and why it is taken for that."""
    if tool.effect is not None:
        return tool.effect, "declared"
    parts = [part.lower() for part in _PART.findall(tool.name)]
    if not parts:
        return "write", "the name says nothing: taken for a write"
    if parts[-1] in _THINK_WORDS or parts[0] in _THINK_WORDS:
        return "think", f"the name says {tool.name!r}"
    at = next((at for at, part in enumerate(parts) if part in _READ_VERBS), len(parts))
    writing = next(
        (
            part
            for place, part in enumerate(parts)
            if part in _WRITE_VERBS and not (place > at and part in _NOUNS_TOO)
        ),
        None,
    )
    if writing is not None:
        return "write", f"{writing!r} in the name"
    if at == len(parts):
        return "write", "no reading verb in the name"
    sentence = re.split(r"(?<=[.!?])\s", tool.description.strip(), maxsplit=1)[0]
    mutates = _MUTATES.search(_NEGATED.sub("", sentence))
    if mutates is not None and mutates.start() < 20:
        return "write", f"the description begins with {mutates.group()!r}"
    return "read", f"{parts[at]!r} in the name"
