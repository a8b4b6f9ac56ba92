"""Which tool fits what was said: a score per tool that all tools share, so that it also knows a
tool that was called a few times, by its name, its description and the words it is asked for with.

The forest of `history.py` knows one class per tool and learns each from its own calls. This one
sees one (context, tool) at a time: how well the words of the user fit the tool's name, its
description and what other tasks said when they called it; which part of a request of several parts
it fits, and whether that part was done; what follows the last events. `pooled` makes one of both.
"""

import math
import re
from collections.abc import Collection, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from reflexarc.provenance.stems import stems
from reflexarc.reflex.associations import Table, Weights, sign
from reflexarc.reflex.context import Context
from reflexarc.reflex.said import Text
from reflexarc.reflex.trees import Forest

FEATURES = (
    "name", "name_behind", "text", "text_behind", "said", "said_behind", "said_most", "part",
    "part_behind", "part_at", "part_after_done", "part_open", "part_open_behind", "parts",
    "called", "calls_since_user", "called_last", "called_ever", "last_event", "last_events",
    "shown", "agent_name_behind", "agent_text", "prior", "known", "unused",
)  # fmt: skip
TABLES = ("name", "text", "said", "events", "shown")
"""Words against a tool's name, its description; words of users, recent events, words of results
against the calls that followed them."""

SHORTLIST = 16
"""Tools that are looked at closely; the rest is as unlikely as the least likely of these."""
_EXPONENT = 0.6
"""Of this score; the other forest's probability has the rest."""
_LEAST = 1e-4
_MAX_CHARS = 4_000
_MAX_WORDS = 240
_MAX_PARTS = 16
_SHOWN_CHARS = 400
_AGENT_CHARS = 600
_UNMATCHED = -9.0
_UNCOUNTED = -1.0
_PART = re.compile(
    r"[.?!;,\n]+|\b(?:and|then|if so|otherwise|afterwards?|also|und|dann|puis|y luego)\b",
    re.IGNORECASE,
)


class _Said:
    """What a user's message says of every tool."""

    __slots__ = (
        "best_part",
        "frame",
        "name",
        "part",
        "parts",
        "place",
        "said",
        "said_most",
        "text",
    )

    def __init__(self, tables: Mapping[str, Table], said: Weights, parts: Weights,
                 words: Sequence[int]) -> None:  # fmt: skip
        self.name = tables["name"].sums([words])[0][0]
        self.text = tables["text"].sums([words])[0][0]
        self.said = _together(said)
        self.said_most = said.max(axis=0) if len(said) else np.zeros(said.shape[1], np.float32)
        self.parts = parts
        self.part = parts.max(axis=0)
        # Rows of the features that stay while nobody speaks, for these tools and System 2's words.
        self.frame: tuple[bytes, Text, Weights] | None = None
        self.best_part = parts.argmax(axis=0)
        self.place = self.best_part / max(1, len(parts) - 1)


def _together(rows: Weights) -> Weights:
    """The evidence of several signs that are not independent."""
    return rows.sum(axis=0) / max(1.0, float(np.sqrt(len(rows))))


def _behind(rows: Weights, allowed: NDArray[np.bool_]) -> Weights:
    """How far each tool stands behind the best that is offered, row by row."""
    return rows - rows[:, allowed].max(axis=1, keepdims=True) if allowed.any() else rows


def _roots(sizes: Sequence[int]) -> Weights:
    """(groups, 1) what `_together` divides by."""
    roots = [max(1.0, math.sqrt(size)) for size in sizes]
    return np.array(roots, dtype=np.float32)[:, None]


def words_of(text: str) -> list[int]:
    """Signs of the words of a message, each once."""
    return [sign(word) for word in dict.fromkeys(stems(text[-_MAX_CHARS:], _MAX_WORDS))]


def parts_of(text: str) -> list[list[int]]:
    """Signs of the words of each part of a request: sentences, clauses, items of a list."""
    parts: list[list[int]] = []
    for part in _PART.split(text[-_MAX_CHARS:]):
        words = [sign(word) for word in dict.fromkeys(stems(part, 60))]
        if words:
            parts.append(words)
    return parts[-_MAX_PARTS:] or [[]]


def _asked(user: Text) -> tuple[list[int], list[list[int]]]:
    """`words_of` and `parts_of` of a user's message, found once for all that ask."""
    found = user.asked
    if found is None:
        found = user.asked = (words_of(user.text), parts_of(user.text))
    return found


def shown_of(context: Context) -> list[int]:
    """Signs of the words of the result that just came in; none after anything else."""
    if not context.symbols or context.symbols[-1][0] not in "OX":
        return []
    return [sign(w) for w in dict.fromkeys(stems(context.output_text[:_SHOWN_CHARS], 60))]


def events_of(context: Context) -> tuple[int, int]:
    """Signs of the last event and of the last three together."""
    last = context.symbols[-3:]
    return sign("1 " + "".join(last[-1:])), sign("3 " + "\x1f".join(last))


class Evidence:
    """Where associations are looked up: in the tables, or, while learning, without a task."""

    def __init__(self, tables: Mapping[str, Table]) -> None:
        self.tables = tables

    def found(self, name: str, signs: Sequence[int]) -> Weights:
        return self.tables[name].found(signs)

    def sums(self, name: str, groups: Sequence[Sequence[int]]) -> tuple[Weights, list[int]]:
        """What `Table.sums` gives."""
        return self.tables[name].sums(groups)


class ToolFit:
    """How each tool fits a context, as features. Immutable; `tools` in the order of the classes 1,
    2, ... of the other forest."""

    def __init__(self, tools: Sequence[str], tables: Mapping[str, Table], prior: Weights) -> None:
        self.tools = tuple(tools)
        self.tables = dict(tables)
        self.prior = prior
        self._at = {name: at for at, name in enumerate(self.tools)}
        self._evidence = Evidence(self.tables)

    def shortlist(
        self, rows: Weights, allowed: NDArray[np.bool_], tools: NDArray[np.float64] | None = None
    ) -> NDArray[np.intp]:
        """The tools worth a closer look: those that words and events, or the other forest, speak
        for most."""
        if len(self.tools) <= SHORTLIST:
            return np.flatnonzero(allowed)
        quick = np.where(allowed, rows[:, _PART_COLUMN] + rows[:, _EVENT_COLUMN], -np.inf)
        best = np.argsort(-quick, kind="stable")[:SHORTLIST]
        if tools is not None:
            half = SHORTLIST // 2
            best = np.union1d(best[:half], np.argsort(-tools, kind="stable")[:half])
        return best[allowed[best]]

    def rows(
        self, context: Context, allowed: NDArray[np.bool_], counts: Sequence[tuple[int, int]],
        evidence: Evidence | None = None,
    ) -> Weights:  # fmt: skip
        """(tools, features)."""
        look = evidence or self._evidence
        said = self._said(context, look)
        # A column of the features is a row here, written in one run; handed out transposed.
        rows = self._frame(context, said, allowed).copy()
        since = context.called_since_user
        if since:
            self._say_what_is_done(rows, said, since, allowed)
        at = self._at
        for name, times in context.tool_counts.items():
            if name in at:
                rows[_EVER, at[name]] = min(5, times)
        if context.last_call is not None and context.last_call.name in at:
            rows[_LAST, at[context.last_call.name]] = 1.0
        rows[_EVENTS], _ = look.sums("events", [(one,) for one in events_of(context)])
        shown = shown_of(context)
        if shown:
            rows[_SHOWN] = _together(look.found("shown", shown))
        rows[_SINCE] = context.calls_since_user
        if counts:
            rows[-2:, : len(counts)] = np.array(counts, dtype=np.float32).T
        return rows.T

    def _frame(self, context: Context, said: _Said, allowed: NDArray[np.bool_]) -> Weights:
        """(features, tools) as they are where nothing was called: what of them stays until someone
        speaks is written once."""
        key = allowed.tobytes()
        found = said.frame
        if found is not None and found[0] == key and found[1] is context.assistant:
            return found[2]
        agent_name, agent_text = self._agent(context)
        rows = np.zeros((len(FEATURES), len(self.tools)), dtype=np.float32)
        plain = np.stack((said.name, said.text, said.said, said.part, said.part, agent_name))
        rows[_PLAIN] = plain
        rows[_BEHIND] = _behind(plain, allowed)
        for name, column in (
            ("said_most", said.said_most), ("part_at", said.place),
            ("part_after_done", said.place + 1.0), ("agent_text", agent_text),
            ("prior", self.prior), ("parts", len(said.parts)),
        ):  # fmt: skip
            rows[_COLUMN[name]] = column
        rows[-2:] = _UNCOUNTED
        said.frame = (key, context.assistant, rows)
        return rows

    def _say_what_is_done(
        self, rows: Weights, said: _Said, since: Mapping[str, int], allowed: NDArray[np.bool_]
    ) -> None:
        """Which parts of the request were called for, and what is left."""
        done = np.zeros(len(said.parts), dtype=np.bool_)
        reached = -1.0
        for name, times in since.items():
            at = self._at.get(name)
            if at is not None:
                rows[_CALLED, at] = times
                done[said.best_part[at]] = True
                reached = max(reached, float(said.place[at]))
        if done.all():
            left = np.full(len(self.tools), _UNMATCHED, dtype=np.float32)
        else:
            left = said.parts[~done].max(axis=0)
        rows[_OPEN] = left
        rows[_OPEN_BEHIND] = _behind(left[None], allowed)
        rows[_AFTER_DONE] = said.place - reached

    def _agent(self, context: Context) -> tuple[Weights, Weights]:
        """What System 2's newest message names and describes of the tools, worked out once."""
        known = context.agent_of_tools.get(self)
        if known is not None and known[0] is context.assistant:
            return known[1]
        text = context.assistant.text
        words = [words_of(text[-_AGENT_CHARS:]) if text else []]
        found = (self.tables["name"].sums(words)[0][0], self.tables["text"].sums(words)[0][0])
        context.agent_of_tools[self] = (context.assistant, found)
        return found

    def _said(self, context: Context, look: Evidence) -> _Said:
        """What the newest message of the user says, worked out once."""
        known = context.said_of_tools.get(look)
        if known is not None and known[0] == context.user_turns:
            return known[1]
        words, parts = _asked(context.user)
        names, _ = self.tables["name"].sums(parts)
        evidence, sizes = look.sums("said", parts)
        evidence /= _roots(sizes)
        said = _Said(self.tables, look.found("said", words), 2.0 * names + evidence, words)
        context.said_of_tools[look] = (context.user_turns, said)
        return said


class ToolChoice:
    """Mends the probabilities of the other forest. Immutable."""

    def __init__(self, fit: ToolFit, forest: Forest) -> None:
        self.fit = fit
        self.forest = forest

    def pooled(
        self, context: Context, probabilities: NDArray[np.float64],
        counts: Sequence[tuple[int, int]],
    ) -> NDArray[np.float64]:  # fmt: skip
        """(1 + tools,) the probabilities of a message and of each tool, those of the tools mended
        by this score. A tool of probability 0 (not offered) keeps it; so does the message's.
        `counts`: known and unused values of the first argument of each counted tool."""
        tools = probabilities[1:]
        allowed = tools > 0.0
        total = float(tools.sum())
        if total <= 0.0 or int(allowed.sum()) < 2:
            return probabilities
        rows = self.fit.rows(context, allowed, counts)
        chosen = self.fit.shortlist(rows, allowed, tools)
        scores = self.forest.probabilities(rows[chosen])[:, 0]
        mended = np.zeros_like(tools)
        mended[allowed] = min(_LEAST, float(scores.min()))
        mended[chosen] = np.maximum(_LEAST, scores)
        mended = mended**_EXPONENT * tools ** (1.0 - _EXPONENT)
        pooled = probabilities.copy()
        pooled[1:] = mended * (total / float(mended.sum()))
        return pooled


_COLUMN = {name: at for at, name in enumerate(FEATURES)}
_PART_COLUMN, _EVENT_COLUMN = _COLUMN["part"], _COLUMN["last_event"]


def _columns(*names: str) -> NDArray[np.intp]:
    return np.array([_COLUMN[name] for name in names], dtype=np.intp)


_PLAIN = _columns("name", "text", "said", "part", "part_open", "agent_name_behind")
_BEHIND = _columns(
    "name_behind", "text_behind", "said_behind", "part_behind", "part_open_behind",
    "agent_name_behind",
)  # fmt: skip
"""How far each tool stands behind the best that is offered, by the columns `_PLAIN`."""
_CALLED, _LAST, _EVER = _COLUMN["called"], _COLUMN["called_last"], _COLUMN["called_ever"]
_EVENTS, _SHOWN = slice(_EVENT_COLUMN, _EVENT_COLUMN + 2), _COLUMN["shown"]
_OPEN, _OPEN_BEHIND = _COLUMN["part_open"], _COLUMN["part_open_behind"]
_AFTER_DONE, _SINCE = _COLUMN["part_after_done"], _COLUMN["calls_since_user"]


def offered_mask(tools: Sequence[str], offered: Collection[str]) -> NDArray[np.bool_]:
    """Which of the tools are offered."""
    return np.array([name in offered for name in tools], dtype=np.bool_)
