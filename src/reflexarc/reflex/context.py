"""The state of one conversation as System 1 sees it, built one message at a time.

Every message is read once, when it is appended; a decision afterwards only looks up what is
here. A context is not thread-safe; a reflex is, so use one context per conversation.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar, cast

import xxhash

from reflexarc.provenance import (
    Entry,
    Origin,
    Record,
    SourceKind,
    assistant_entries,
    now_entries,
    said_entries,
    system_entries,
    told_by_prompt,
    told_now,
    user_entries,
)
from reflexarc.provenance.spans import latest_year
from reflexarc.provenance.words import plain_text, said_words
from reflexarc.reflex.forms import leaves_of, used_names
from reflexarc.reflex.looks import CALL, USER, Memo, Seen
from reflexarc.reflex.prompts import lines_hash, prompt_lines
from reflexarc.reflex.result_reading import Objects as Objects
from reflexarc.reflex.result_reading import Result, with_parts
from reflexarc.reflex.said import EMPTY, Said, Text
from reflexarc.reflex.tape import Tape
from reflexarc.reflex.written import as_list
from reflexarc.steps import Message, ToolCall
from reflexarc.wire.chat import messages_given

_TAIL = 1500
_TOLD_WITHIN = 200
_NONE: frozenset[str] = frozenset()
T = TypeVar("T")

_RECENT = 5


class Event:
    """One event of `symbols`, which has its kind first: the call it is or answers, what came of
    it, and the text of a user or a result."""

    __slots__ = ("call", "kind", "outcome", "text")

    def __init__(self, kind: str, call: ToolCall | None, outcome: str, text: str) -> None:
        self.kind = kind
        self.call = call
        self.outcome = outcome
        self.text = text


def _after(situation: int, what: str, text: str) -> int:
    """The chain of a situation, one link longer."""
    link = f"{situation:x} {what} {text}".encode("utf-8", "surrogatepass")
    return xxhash.xxh3_64_intdigest(link)


class Context:
    """Incremental state of one conversation; `tape`: what was read of it before."""

    def __init__(self, tape: Tape | None = None) -> None:
        # None: each message is read as it comes. Never a fork's: it goes its own way.
        self.tape = tape
        self.length = 0
        self.event = 0
        self.symbols: list[str] = []
        self.log: list[Event] = []
        # By whom it is asked for: what each has read of the log (`trail.py`).
        self.trails: dict[int, tuple[object, object]] = {}
        self.tool_counts: Counter[str] = Counter()
        self.used: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
        self.used_as: defaultdict[str, set[str]] = defaultdict(set)
        self.call_keys: set[str] = set()
        self.last_call: ToolCall | None = None
        self.slots: defaultdict[str, list[Entry]] = defaultdict(list)
        self.entries: list[Entry] = []
        self.objects: list[Objects] = []
        self.user = EMPTY
        self.assistant = EMPTY
        self.user_words: set[str] = set()
        self.user_turns = 0
        self.calls_since_user = 0
        self.called_since_user: Counter[str] = Counter()
        self.output_text = ""
        self.output_words: frozenset[str] = frozenset()
        self.names_in_output = 0
        self.names_mentioned = 0
        self.words_mentioned = 0
        self.prompt_lines: tuple[str, ...] = ()
        self.prompt_hash = lines_hash(())
        self.opaque = False
        # Of the first user message; and of all that users said and System 2 called so far.
        self.opening = 0
        self.situation = 0
        self.seen: list[Seen] = []
        self.memo = Memo()
        # The last ranking made of it: by whom, of what, and itself.
        self.ranked: tuple[object, object, object] | None = None
        # How the words around a user's value speak for an argument: by whose cues, and what for.
        self.cued: dict[object, dict[tuple[int, Entry, str], tuple[float, ...]]] = {}
        # The same of records, which never change.
        self.recorded: dict[object, dict[tuple[int, Record], tuple[float, float]]] = {}
        # What `available` counted, with the sizes of all that it counted.
        self._available: dict[
            tuple[str, str, tuple[str, ...]], tuple[tuple[int, ...], tuple[int, int]]
        ] = {}
        # What the user's newest message says of tools: by whom, of which turn, and itself.
        self.said_of_tools: dict[object, tuple[int, Any]] = {}
        # The same of System 2's newest message.
        self.agent_of_tools: dict[object, tuple[Text, Any]] = {}
        self.remembered: tuple[object, object, object] | None = None
        # Whether a message or record holds a value; neither ever changes.
        self.holds: dict[tuple[Origin | Record, str], bool] = {}
        self._said = Said(EMPTY, EMPTY, self.user_words, ())
        # Values made of what users said (`made_values.py`), and when.
        self.made: dict[str, tuple[int, list[Entry]]] = {}
        # The lists that the values of a slot make (`candidates.py`), by the kind of its values.
        self.items: dict[tuple[str, str], object] = {}
        self._distinct: dict[str, tuple[int, set[str]]] = {}
        self._year = ""
        self._now: datetime | None = None
        self._recent: deque[frozenset[str]] = deque(maxlen=_RECENT)
        self.unanswered_calls = 0
        self._open_calls = 0
        self._tool_of_call: dict[str, str] = {}
        self._waiting: dict[str, deque[ToolCall]] = {}
        self._unanswered: deque[str] = deque()
        self._answered: Counter[str] = Counter()

    def extend(self, messages: Sequence[Message | Mapping[str, Any]]) -> None:
        """Append further messages of the conversation; OpenAI chat objects are read first, so that
        a wrong one (RequestError with its path) appends none of them."""
        for message in messages_given(messages, self.length):
            self._append(message)
            self.length += 1

    def append_call(self, call: ToolCall) -> None:
        """Append a sibling call of a batch whose message has not been appended yet."""
        self._call(call)
        self._open_calls += 1

    @property
    def open_calls(self) -> int:
        """How many calls of a batch were appended whose message was not."""
        return self._open_calls

    def said_now(self) -> Said:
        """What was said last, with what was asked about it so far."""
        said = self._said
        if said.user is not self.user or said.assistant is not self.assistant:
            said = self._said = Said(self.user, self.assistant, self.user_words, self._recent)
        return said

    def distinct(self, slot: str) -> set[str]:
        """The distinct values seen in a slot so far, as text. Do not change it."""
        entries = self.slots.get(slot)
        if not entries:
            return set()
        read, values = self._distinct.get(slot, (0, set[str]()))
        if read < len(entries):
            values.update(entry.text for entry in entries[read:])
            self._distinct[slot] = (len(entries), values)
        return values

    def available(self, tool: str, argument: str, slots: tuple[str, ...]) -> tuple[int, int]:
        """How many distinct values stand in some slots, and how many of them were not given yet as
        this argument; counted again only where there are more of either."""
        used = self.used.get((tool, argument), _NONE)
        # Both only grow: while their sizes stay, so does what is not used yet.
        if len(slots) == 1:
            sizes = (len(self.slots.get(slots[0], ())), len(used))
        else:
            sizes = (*[len(self.slots.get(slot, ())) for slot in slots], len(used))
        key = (tool, argument, slots)
        before = self._available.get(key)
        if before is None or before[0] != sizes:
            values = self.distinct(slots[0])
            if len(slots) > 1:
                values = values.union(*[self.distinct(slot) for slot in slots[1:]])
            unused = len(values - used) if used else len(values)
            before = self._available[key] = (sizes, (len(values), unused))
        return before[1]

    def _append(self, message: Message) -> None:
        self.opaque = self.opaque or message.opaque or message.thinking
        match message.role:
            case "user":
                self._user(message.content)
            case "assistant":
                self._assistant_turn(message)
            case "tool":
                tool = self._tool_name(message)
                self._output(tool, message.content, self._answered_call(tool, message))
            case "system" | "developer":
                self._system(message.role, message.content)

    def _system(self, role: str, text: str) -> None:
        self.prompt_lines += prompt_lines(role, text)
        self.prompt_hash = lines_hash(self.prompt_lines)
        self._year = latest_year(text, self._year)
        origin = self._origin("system_prompt", text)
        self._add(text, lambda: system_entries(text, origin))
        self._tell_time(text, origin, told_by_prompt)

    def _user(self, text: str) -> None:
        self.event += 1
        self.situation = _after(self.situation, "user", " ".join(text.split()).casefold())
        if not self.user_turns:
            self.opening = self.situation
        self.user = Text(text)
        self._recent.append(self.user.said)
        self.user_words |= self.user.said if len(text) <= _TAIL else said_words(text)
        self.user_turns += 1
        self.seen.append(Seen(USER, text))
        self.calls_since_user = 0
        self.called_since_user.clear()
        self.unanswered_calls = 0  # whatever is missing, the conversation went on without it
        self.symbols.append("U")
        self.log.append(Event("U", None, "", text))
        year = self._year = latest_year(text, self._year)
        origin = self._origin("user_message", text)
        self._add(text, lambda: user_entries(text, origin, year))
        self._tell_time(text, origin)
        now = self._now
        self._add(text, lambda: said_entries(text, origin, now, year))

    def _tell_time(
        self, text: str, origin: Origin, told: Callable[[str], datetime | None] = told_now
    ) -> None:
        """What time a prompt, a user or a short result says it is; the last one counts."""
        now = self._once(text, lambda: told(text))
        if now is not None:
            self._now = now
            self._add(text, lambda: now_entries(now, origin))

    def _assistant_turn(self, message: Message) -> None:
        for call in message.tool_calls[self._open_calls :]:
            self._call(call)
        self._open_calls = 0
        text = message.content
        if text:
            self.event += 1
            self.assistant = Text(text)
            self._recent.append(self.assistant.said)
            origin, year = self._origin("assistant_message", text), self._year
            self._add(text, lambda: assistant_entries(text, origin, year))
        if not message.tool_calls:
            self.symbols.append("M")
            self.log.append(Event("M", None, "", ""))

    def _call(self, call: ToolCall) -> None:
        self.event += 1
        self.symbols.append(f"C:{call.name}")
        self.log.append(Event("C", call, "", ""))
        self._waiting.setdefault(call.name, deque()).append(call)
        self.tool_counts[call.name] += 1
        self.calls_since_user += 1
        self.called_since_user[call.name] += 1
        self.unanswered_calls += 1
        self.last_call = call
        origin = self._origin("earlier_call", call.raw)
        self.seen.append(Seen(CALL, call.raw))
        for name, given in call.arguments.items():
            value = as_list(given)[0]
            entry = Entry(f"prev:{name}", value, origin)
            self._put(with_parts((entry,)))
            self.used[call.name, name].add(entry.text)
            self.used_as[name].add(entry.text)
            if isinstance(value, list):
                parts = cast("list[Any]", value)
                self.used[call.name, name].update(plain_text(part) for part in parts)
        self._nested(call, origin)
        self.call_keys.add(call.key)
        self.situation = _after(self.situation, "call", call.key)
        if call.id:
            self._tool_of_call[call.id] = call.name
        self._unanswered.append(call.name)

    def _nested(self, call: ToolCall, origin: Origin) -> None:
        """What stands within the arguments of a call: leaves of objects, parts of texts."""
        for name, text in used_names(call.arguments):
            self.used[call.name, name].add(text)
            self.used_as[name].add(text)
        for path, value in leaves_of(call.arguments) or ():
            if len(path) > 1:
                self._put(with_parts((Entry(f"prev:{'.'.join(path)}", value, origin),)))

    def _tool_name(self, message: Message) -> str:
        named = self._tool_of_call.get(message.tool_call_id or "") or message.name
        if named is None:
            return self._next_unanswered()
        self._answered[named] += 1
        return named

    def _next_unanswered(self) -> str:
        """The tool whose result a message without id and name must be: the first still open."""
        while self._unanswered:
            name = self._unanswered.popleft()
            if not self._answered[name]:
                return name
            self._answered[name] -= 1
        return "unknown"

    def _answered_call(self, tool: str, message: Message) -> ToolCall | None:
        """The call a result answers: of its id, else the oldest of that tool without a result."""
        waiting = self._waiting.get(tool)
        if not waiting:
            return None
        for call in waiting:
            if call.id and call.id == message.tool_call_id:
                waiting.remove(call)
                return call
        return waiting.popleft()

    def _output(self, tool: str, text: str, call: ToolCall | None) -> None:
        self.event += 1
        self.unanswered_calls = max(0, self.unanswered_calls - 1)
        self.output_text = text
        origin, said = self._origin("tool_result", text), self.user_words
        read = self._once(text, lambda: Result(tool, text, origin, said), _size)
        kind = "X" if read.failed else "O"
        self.symbols.append(f"{kind}:{tool}")
        self.log.append(Event(kind, call, read.outcome, text))
        self.output_words = read.words
        self.names_in_output = read.names
        self.names_mentioned = read.names_mentioned
        self.words_mentioned = read.words_mentioned
        self._put(read.entries)
        if len(text) <= _TOLD_WITHIN:
            self._tell_time(text, origin)
        self.seen.append(Seen(tool, text, read.found))
        self.objects += read.objects

    def _origin(self, kind: SourceKind, text: str) -> Origin:
        return Origin(kind, self.length, self.event, text)

    def _once(self, text: str, read: Callable[[], T], size: Callable[[T], int] = lambda _: 1) -> T:
        """What is read of a message, or was when it was first read."""
        return read() if self.tape is None else self.tape.once(text, read, size)

    def _add(self, text: str, read: Callable[[], Iterable[Entry]]) -> None:
        self._put(self._once(text, lambda: with_parts(read()), len))

    def _put(self, entries: list[Entry]) -> None:
        slots = self.slots
        for entry in entries:
            slots[entry.slot].append(entry)
        self.entries += entries


def _size(result: Result) -> int:
    return len(result.entries) + len(result.found)
