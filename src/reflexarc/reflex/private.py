"""What of recorded sessions is personal or a secret, found once, so that no artifact keeps it.

A value is told by its pattern, by the field it stands in (`email`, `customer.name`), or by how a
text introduces it ("my name is ..."). A word is private where it mostly stands in such values.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any, cast

from reflexarc.provenance.words import plain_text
from reflexarc.reflex.context import Context
from reflexarc.reflex.sensitive import MIN_TASKS, personal_field, sensitive, spans, told_names
from reflexarc.steps import Session

_SHORTEST = 3
_SHORTEST_WITHIN = 5
_LONGEST = 200
_PRIVATE_SHARE = 0.3
"""Of the tasks a word occurs in: in so many it stands in a personal value, or it stays a word."""
_LONG_NUMBER = 5
_GENERIC = frozenset(
    word
    for line in (
        "com org net edu example www the of and street st avenue ave road rd lane ln drive dr",
        "court ct boulevard place square way suite apt floor",
    )
    for word in line.split()
)
"""Parts of addresses that say nothing about anyone."""


class Private:
    """Personal values and words of some sessions, by the tasks they occur in. Never stored."""

    def __init__(
        self, sessions: Iterable[Session] = (), read: Callable[[Session], Context] | None = None
    ) -> None:
        """`read` gives the context of a whole session, and is asked once for each in order: who
        reads them anyway spares a second reading."""
        self._values: defaultdict[str, set[str]] = defaultdict(set)
        self._words: defaultdict[str, set[str]] = defaultdict(set)
        self._tools: defaultdict[str, set[str]] = defaultdict(set)
        self._arguments: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
        found = _Found()
        for session in sessions:
            self._name(session)
            for value in found.values(session, (read or _context_of)(session)):
                self._add(value, session.task)
        # Every member asks about the same few names.
        self._named: dict[str, bool] = {}
        self._long = [value for value in self._values if len(value) >= _SHORTEST_WITHIN]

    def _name(self, session: Session) -> None:
        """Tools and arguments that a session offers or uses."""
        task = session.task
        for tool in session.tools:
            self._tools[tool.name].add(task)
            properties = tool.parameters.get("properties")
            if isinstance(properties, dict):
                for name in cast("dict[str, Any]", properties):
                    self._arguments[tool.name, name].add(task)
        for message in session.messages:
            for call in message.tool_calls:
                self._tools[call.name].add(task)
                for name in call.arguments:
                    self._arguments[call.name, name].add(task)

    def tool(self, name: str) -> bool:
        """Whether a tool's name may not be kept: offered or called in fewer than three tasks, or
        private."""
        return len(self._tools.get(name, ())) < MIN_TASKS or self.name(name)

    def argument(self, tool: str, name: str) -> bool:
        """The same for the name of an argument."""
        return len(self._arguments.get((tool, name), ())) < MIN_TASKS or self.name(name)

    def _add(self, value: str, task: str) -> None:
        lower = " ".join(value.lower().split())
        if not _SHORTEST <= len(lower) <= _LONGEST:
            return
        self._values[lower].add(task)
        for word in _words(lower):
            self._words[word].add(task)

    def value(self, value: Any) -> bool:
        """Whether a value may not be kept as a constant."""
        if value is None or isinstance(value, bool):
            return False
        return sensitive(value) is not None or self._holds(plain_text(value))

    def name(self, text: str) -> bool:
        """Whether a name (of a tool, an argument, a key, a slot, a model) may not be kept."""
        found = self._named.get(text)
        if found is None:
            found = self._named[text] = sensitive(text) is not None or self._holds(text)
        return found

    def word(self, word: str, tasks: int) -> bool:
        """Whether a word that occurs in so many tasks may not be kept."""
        if sum(c.isdigit() for c in word) >= _LONG_NUMBER or sensitive(word) is not None:
            return True
        return any(
            len(self._words.get(part, ())) >= _PRIVATE_SHARE * tasks for part in _words(word)
        )

    def _holds(self, text: str) -> bool:
        lower = " ".join(text.lower().split())
        return lower in self._values or any(_within(value, lower) for value in self._long)


def _context_of(session: Session) -> Context:
    context = Context()
    context.extend(session.messages)
    return context


def _within(value: str, text: str) -> bool:
    """Whether a text holds a value as whole words: "ann lee" is not within "joann leeds"."""
    at = text.find(value)
    while at >= 0:
        end = at + len(value)
        if not text[max(0, at - 1) : at].isalnum() and not text[end : end + 1].isalnum():
            return True
        at = text.find(value, at + 1)
    return False


def _words(text: str) -> list[str]:
    plain = "".join(c if c.isalnum() else " " for c in text.lower())
    return [word for word in plain.split() if len(word) > 1 and word not in _GENERIC]


class _Found:
    """Personal values of sessions. One text is looked through once, however often it stands in
    them: prompts and results recur."""

    def __init__(self) -> None:
        self._of_text: dict[str, tuple[str, ...]] = {}
        self._personal: dict[str, bool] = {}

    def values(self, session: Session, context: Context) -> Iterable[str]:
        """`context` has read the whole session."""
        for entry in context.entries:
            if isinstance(entry.value, str | int | float) and self._holds_personal(entry.slot):
                yield entry.text
        for message in session.messages:
            for text in (message.content, *(call.raw for call in message.tool_calls)):
                yield from self._in_text(text)

    def _holds_personal(self, slot: str) -> bool:
        personal = self._personal.get(slot)
        if personal is None:
            personal = self._personal[slot] = personal_field(_field(slot))
        return personal

    def _in_text(self, text: str) -> tuple[str, ...]:
        found = self._of_text.get(text)
        if found is None:
            found = (*(value for _, value in spans(text)), *told_names(text))
            self._of_text[text] = found
        return found


def _field(slot: str) -> str:
    """The path of a slot, without its kind and its tool; nothing for a shape of text."""
    kind, _, place = slot.partition(":")
    if kind in ("out", "kv"):
        return place.partition(":")[2]
    return place if kind in ("prev", "sys") else ""
