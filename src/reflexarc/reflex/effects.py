"""Read, write or think: a guess from a tool's name and description, for a person to review.

What is declared wins; what cannot be told is a write. The guess leans to one side on purpose: a
read taken for a write costs some speed, a write taken for a read could be made by System 1.
"""

import re
from collections.abc import Iterable

from reflexarc.steps import Effect, ToolSpec


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_READ_VERBS = _words(
    """
    get find list search retrieve lookup read view describe inspect peek locate count
    ls cat pwd grep head tail wc diff du stat
    """
)
# Read only where the description says so too: check in, fetch (any HTTP method), track an event.
_WEAK_READ_VERBS = _words("query fetch check browse track show")
_WRITE_VERBS = _words(
    """
    accept acknowledge ack activate add adjust append apply approve archive assign block book
    buy call cancel change charge clear click close comment commit complete confirm convert copy
    create cp deactivate debit delete deploy deposit disable discard dispatch download drop
    echo edit email enable enqueue enroll exec execute export extend fill flag follow forward
    generate grant import increment decrement insert install invite invoke issue join kill
    launch leave like lock log login logout make mark merge message mkdir modify mount move
    mutate mutation mv navigate notify open order patch pause pay pin place play pop post print
    promote provision publish purchase purge push put quit rebuild reboot record redeem refund
    register reject release remove rename renew replace reply reset reserve resolve restart
    restore resume retry retweet revoke rm rollback rotate run save schedule seek select send
    set share ship sign start stop store submit subscribe swap sync take terminate toggle touch
    transfer trigger truncate turn type unblock unfollow unlock unsubscribe update upgrade
    upload upsert use withdraw write
    """
)
# Nouns where they end the name or stand before a qualifier: get_order, get_order_details.
_NOUNS_TOO = _words(
    "book comment deposit email issue log message order stop place post purchase record refund "
    "schedule store transfer"
)
_QUALIFIERS = _words(
    "address by code count date details history id ids info information items line lines list name "
    "number price stats status summary totals type types"
)
_JOINING = _words("and or then plus also")
# With these a reading verb does not read: it hands out, joins a queue, aims at something.
_TRAPS = _words("input next token to into onto in out off sale")
_TRAP_PAIRS = frozenset(
    {("list", "on"), ("list", "for"), ("show", "notification"), ("show", "dialog"),
     ("show", "message"), ("show", "alert"), ("view", "set")}
)  # fmt: skip
_THINK_WORDS = _words("think thinking thought thoughts scratchpad sequentialthinking")
_THINK_FILLERS = _words("tool step sequential deep a the")

_MUTATING = (
    r"(?:creates?|updates?|deletes?|removes?|saves?|stores?|generates?|closes?|purchases?|"
    r"archives?|executes?|schedules?|reserves?|releases?|renames?|replaces?|revokes?|shares?|"
    r"charges?|changes?|cancels?|merges?|moves?|writes?|makes?|places?|completes?|"
    r"acknowledges?|inserts?|sends?|posts?|e?mails?|modif(?:y|ies)|edits?|books?|orders?|buys?|"
    r"pays?|refunds?|submits?|publish(?:es)?|marks?|sets?|resets?|adds?|appends?|push(?:es)?|"
    r"pops?|clears?|purges?|drops?|increments?|decrements?|locks?|unlocks?|notif(?:y|ies)|"
    r"triggers?|starts?|stops?|restarts?|registers?|subscribes?|uploads?|downloads?|imports?|"
    r"exports?|transfers?|approves?|rejects?|assigns?|overwrites?|truncates?|plays?|clicks?|"
    r"grants?|invites?|appl(?:y|ies)|runs?|opens?|claims?)"
)
_MUTATES = _MUTATING.replace("s?", "s").replace("(?:es)?", "es").replace("(?:y|ies)", "ies")
_ACTS_FIRST = re.compile(
    rf"\W*(?:{_MUTATING}|(?:\w+\W+){{1,3}}?{_MUTATES})\b",
    re.IGNORECASE,
)
# A verb and not a plural noun: something follows that it acts on, or it shouts (SQL).
_ACTS_TOO = re.compile(
    rf"\b(?:and|then|also|or)\W+(?:\w+ly\W+)?{_MUTATING}\s+"
    r"(?:it|them|the|an?|any|all|its|their|each|one|to|if|new|every)\b",
    re.IGNORECASE,
)
_SHOUTED = re.compile(r"\b(?:INSERT|UPDATE|DELETE|POST|PUT|PATCH|DROP|CREATE|ALTER)\b")
_NEGATED = re.compile(
    rf"(?:\bnot|n't|\bnever|\bwithout|\bcannot)\s+(?:\w+\s+)?"
    rf"(?:{_MUTATING}|(?:modify|chang|delet|creat|updat)ing)\b",
    re.IGNORECASE,
)
_READS_FIRST = re.compile(
    r"\W*(?:checks?|gets?|retrieves?|returns?|looks?\s+up|tracks?|shows?|lists?|quer(?:y|ies)|"
    r"search(?:es)?|finds?|fetch(?:es)?|displays?|reads?|views?|describes?|counts?)\b",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"(?<=[.!?;:])\s+|\n+")
_PREFACE = re.compile(r"^.*?\btool description:\s*", re.IGNORECASE | re.DOTALL)
_SECTIONS = re.compile(r"\b(?:Parameters\s*-{3,}|(?:Parameters|Args|Arguments|Returns|Examples?):)")
_HTTP_GET = re.compile(r"GET[_ /]")
_NAMESPACE = re.compile(r"\.|__|/|:")
_MAX_DESCRIPTION = 4000
DECLARED = "declared"
"""Why an effect is what it is where somebody said so. Anything else is a guess."""


def guess_effect(tool: ToolSpec) -> tuple[Effect, str]:
    """The effect of a tool and why it is taken for that."""
    if tool.effect is not None:
        return tool.effect, DECLARED
    if _HTTP_GET.match(tool.name):
        return "read", "an HTTP GET"
    own_name = [part for part in _NAMESPACE.split(tool.name) if part]
    parts = [part.lower() for part in _PART.findall(own_name[-1] if own_name else "")]
    if not parts:
        return "write", "the name says nothing: taken for a write"
    if not _THINK_WORDS.isdisjoint(parts) and set(parts) <= _THINK_WORDS | _THINK_FILLERS:
        return "think", f"the name says {tool.name!r}"
    why = _writes_by_name(parts)
    if why is not None:
        return "write", why
    verb = next(part for part in parts if part in _READ_VERBS or part in _WEAK_READ_VERBS)
    why = _writes_by_description(tool.description)
    if why is not None:
        return "write", why
    if verb in _WEAK_READ_VERBS and not _reads_by_description(tool.description):
        return "write", f"{verb!r} alone does not tell, and no sentence says that it reads"
    return "read", f"{verb!r} in the name"


def strictest(guesses: Iterable[tuple[Effect, str]]) -> tuple[Effect, str]:
    """Of several readings of one tool the one that allows least: a write, then think, then read."""
    order: dict[Effect, int] = {"write": 0, "think": 1, "read": 2}
    return min(guesses, key=lambda guess: order[guess[0]])


def _writes_by_name(parts: list[str]) -> str | None:
    """Why the name alone makes it a write; None where it reads."""
    joining = next((part for part in parts if part in _JOINING), None)
    if joining is not None:
        return f"{joining!r} in the name: more than one thing happens"
    at = next(
        (
            at
            for at, part in enumerate(parts)
            if part in _READ_VERBS or part in _WEAK_READ_VERBS
        ),
        None,
    )  # fmt: skip
    for place, part in enumerate(parts):
        noun = part in _NOUNS_TOO and at is not None and place > at
        ends = place + 1 == len(parts) or parts[place + 1] in _QUALIFIERS
        if part in _WRITE_VERBS and not (noun and ends):
            return f"{part!r} in the name"
    if at is None:
        return "no reading verb in the name"
    trap = next((part for part in parts[at + 1 :] if part in _TRAPS), None)
    if trap is not None:
        return f"{parts[at]!r} with {trap!r} in the name may do more than read"
    for one, other in _TRAP_PAIRS:
        if one in parts and other in parts:
            return f"{one!r} with {other!r} in the name may do more than read"
    return None


def _writes_by_description(description: str) -> str | None:
    for sentence in _sentences(description):
        kept = _NEGATED.sub("", sentence)
        found = _ACTS_TOO.search(kept) or _SHOUTED.search(kept)
        if found is None and not _READS_FIRST.match(kept):
            found = _ACTS_FIRST.match(kept)
        if found is not None:
            return f"the description says {found.group().strip()[-40:]!r}"
    return None


def _reads_by_description(description: str) -> bool:
    return any(_READS_FIRST.match(sentence) for sentence in _sentences(description))


def _sentences(description: str) -> list[str]:
    own = _SECTIONS.split(_PREFACE.sub("", description[:_MAX_DESCRIPTION]))[0]
    return [sentence for sentence in _SENTENCE.split(own) if sentence.strip()]
