"""From figures to sentences: what a log's work wastes, and where there is nothing to be saved.

What is not in a log is said to be not in it.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Protocol

from reflexarc.bench.waste_breaks import BreakFound
from reflexarc.bench.waste_expiry import CacheExpiry
from reflexarc.bench.waste_figures import Figures
from reflexarc.bench.waste_rows import FileRow, Row
from reflexarc.bench.waste_savings import Saving
from reflexarc.context.reuse import LITTLE

MANY_TURNS = 5
"""Fewer turns of a session say nothing about how it works."""
NEARLY_ALL = 0.9
_DELETED_BY = {"claude-code": "Claude Code", "codex": "Codex"}
REBUILT = "sessions"
"""The format whose prompts are put together from messages, so that they only grow."""
_NAMED = 5
_SESSIONS_NAMED = 3


class _Counted(Protocol):
    @property
    def requests(self) -> int: ...

    @property
    def tokens(self) -> int: ...


def orchestrates(row: Row) -> bool:
    """A session that goes back and forth between conversations: it reuses little of its previous
    turn, and nearly all of an earlier prompt."""
    previous, earlier = row.reused_previous, row.reused_earlier
    return (
        row.turns >= MANY_TURNS
        and previous is not None
        and earlier is not None
        and previous < LITTLE
        and earlier >= NEARLY_ALL
    )


def of_totals(totals: Figures, errors: int) -> list[str]:
    if not totals.requests:
        return ["No request to a model could be read here."]
    read = "not in this log" if totals.prompt is None else f"{totals.prompt:,}"
    written = "not in this log" if totals.output is None else f"{totals.output:,}"
    said = f"{counted(totals.requests, 'request')}: prompt tokens {read}, output tokens {written}"
    if totals.cost_usd is None:
        said += "; what they cost is not known"
    elif totals.kinds["cost_usd"] == "estimated" and totals.cache_read is None:
        said += f"; at most {dollars(totals.cost_usd)}, were nothing cached"
    elif totals.kinds["cost_usd"] == "estimated":
        said += f"; {dollars(totals.cost_usd)} (estimated)"
    else:
        said += f"; {dollars(totals.cost_usd)}"
    if errors:
        said += f"; {counted(errors, 'request')} failed besides"
    return [said + "."]


def of_caches(totals: Figures, hit_rate: float | None) -> list[str]:
    if hit_rate is not None:
        return [f"Caches gave {percent(hit_rate)} of all prompt tokens."]
    if totals.cache_read is not None and totals.prompt:
        lacking = totals.unknown.get("cache_read", 0)
        return [
            f"{totals.cache_read:,} prompt tokens came from caches; of "
            f"{counted(lacking, 'request')} that is not in this log."
        ]
    return ["How much came from caches is not in this log."] if totals.requests else []


def of_reuse(
    turns: int, previous: float | None, earlier: float | None, sessions: Sequence[Row]
) -> list[str]:
    if previous is None or earlier is None:
        return ["How much of each prompt was sent before cannot be told: no prompt is in this log."]
    said = [
        f"Of each prompt, {percent(previous)} (median of {counted(turns, 'turn')}) was already in "
        f"the previous turn's, and {percent(earlier)} in some earlier one."
    ]
    told = [one for one in sessions if one.turns >= MANY_TURNS]
    going = [one for one in told if orchestrates(one)]
    if going:
        named = ", ".join(one.name for one in going[:_SESSIONS_NAMED])
        lacking = len(going) - _SESSIONS_NAMED
        more = f" and {lacking} more" if lacking > 0 else ""
        shares = [one.reused_previous or 0.0 for one in going]
        kept = [one.reused_earlier or 0.0 for one in going]
        said.append(
            f"{len(going)} of {counted(len(told), 'session')} with {MANY_TURNS} turns or more go "
            f"back and forth between conversations ({named}{more}): they reuse little of the "
            f"previous turn (medians up to {percent(max(shares))}) and nearly all of an earlier "
            f"prompt (at least {percent(min(kept))}). A cache must hold several of their prefixes "
            "at a time; a slot that holds the last prompt alone gives them little."
        )
    return said


def of_concentration(below_half: int, turns: int, share_of_recomputed: float) -> list[str]:
    if not turns:
        return []
    if not below_half:
        return ["No turn reuses less than half of its prompt."]
    return [
        f"{percent(below_half / turns)} of turns ({below_half:,} of {turns:,}) reuse less than "
        f"half of their prompt; they cause {percent(share_of_recomputed)} of the tokens that were "
        "not in the previous turn's."
    ]


def of_again(again: _Counted) -> list[str]:
    if not again.requests:
        return []
    return [
        f"{counted(again.requests, 'request')} sent a prompt that had been sent before as it was "
        f"({again.tokens:,} tokens)."
    ]


def of_breaks(
    broken: Sequence[BreakFound], lost_tokens: int, usd: float | None, is_known: bool
) -> list[str]:
    """`is_known`: whether the log holds prompts or cached tokens."""
    if not is_known:
        return ["Whether prefixes broke is not in this log: neither prompts nor cached tokens are."]
    if not broken:
        return ["No prefix broke."]
    causes = Counter[str]()
    for one in broken:
        causes[one.cause] += one.lost_tokens
    named = ", ".join(f"{cause} {tokens:,}" for cause, tokens in causes.most_common(_NAMED))
    money = f", {dollars(usd)} more than from a cache" if usd else ""
    return [
        f"{counted(len(broken), 'prefix break')}: {lost_tokens:,} tokens read anew{money}; tokens "
        f"by cause: {named}."
    ]


def of_expiry(expired: Sequence[CacheExpiry]) -> list[str]:
    if len(expired) < 2:
        return []
    short, long = expired[0], expired[1]
    said = (
        f"A cache that forgets after {short.ttl_s / 60:g} minutes would miss "
        f"{percent(short.share)} of the prompt tokens, one that keeps an hour {percent(long.share)}"
        f"; {percent(long.cold_share)} were never sent before"
        + (" (estimated)." if short.kind == "estimated" else ".")
    )
    if short.cost_usd is not None and long.cost_usd is not None:
        better = "the hour" if long.cost_usd < short.cost_usd else "5 minutes"
        said += (
            f" At published prices {dollars(short.cost_usd)} and {dollars(long.cost_usd)}: "
            f"{better} is cheaper here."
        )
    return [said]


def of_savings(ways: Sequence[Saving]) -> list[str]:
    said: list[str] = []
    for one in ways:
        parts = [
            text
            for value, text in (
                (one.usd, dollars(one.usd or 0)),
                (one.seconds, f"{one.seconds or 0:,.0f} s"),
                (one.tokens, f"{one.tokens or 0:,} tokens read anew"),
            )
            if value
        ]
        if parts:
            kind = " (estimated)" if one.kind == "estimated" else ""
            said.append(f"{capital(one.way)}: {', '.join(parts)} to be saved{kind}; {one.because}.")
        elif one.kind != "absent":
            said.append(f"{capital(one.way)}: nothing to be saved; {one.because}.")
    known = [one for one in ways if one.kind != "absent"]
    if known and not any(one.usd or one.seconds or one.tokens for one in known):
        said.append("In none of these ways is anything to be saved here, which is a good answer.")
    return said


def of_limits(
    files: Iterable[FileRow], unpriced: dict[str, int], by_maker: Sequence[str]
) -> list[str]:
    """What the sums do not hold."""
    said: list[str] = []
    rows = list(files)
    broken = sum(one.report.at_least for one in rows)
    if broken:
        said.append(f"Something in {counted(broken, 'file')} was unreadable: totals are at least.")
    unknown = sum(not one.format and not one.report.at_least for one in rows)
    if unknown:
        verb = "is a log" if unknown == 1 else "are logs"
        said.append(f"{counted(unknown, 'file')} {verb} of no known format, and passed over.")
    deleting = sorted({_DELETED_BY[one.format] for one in rows if one.format in _DELETED_BY})
    if deleting:
        said.append(
            f"Old files are deleted or archived by {' and '.join(deleting)}: what is not here may "
            "have been used all the same."
        )
    if any(one.format == REBUILT for one in rows):
        said.append(
            "Session files hold conversations, not requests: prompts that were edited between "
            "turns do not show in them."
        )
    if unpriced:
        named = ", ".join(
            f"{name} ({counted(number, 'request')})" for name, number in unpriced.items()
        )
        said.append(f"No price is known for {named}: not in the cost.")
    if by_maker:
        said.append(f"No provider is named for {', '.join(by_maker)}: priced as by their makers.")
    return said


def counted(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def percent(share: float) -> str:
    """With as many digits as tell: 99.5%, 12%, 100%."""
    if 0.9995 <= share < 1.0:
        return ">99.9%"
    is_plain = 0.1 <= share < 0.9 or share in (0.0, 1.0)
    return f"{share:.0%}" if is_plain else f"{share:.1%}"


def dollars(usd: float) -> str:
    if 0 < abs(usd) < 0.0001:
        return "under $0.0001"
    if usd and abs(usd) < 0.01:
        return f"${usd:.4f}"
    return f"${usd:,.2f}"


def capital(text: str) -> str:
    return text[:1].upper() + text[1:]
